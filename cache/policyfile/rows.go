package policyfile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"syscall"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/base/sqlite"
)

// application is the application_id of the files, and format their user_version.
const (
	application = 0x68656564 // "heed"
	format      = 1
)

// schema creates a new file. A row that is written again gets the largest rowid, so that
// rowids are in the order of writing. sum covers key, record and snapshot.
var schema = fmt.Sprintf(`
CREATE TABLE IF NOT EXISTS policy (
	key      BLOB PRIMARY KEY,
	saved    INTEGER NOT NULL, -- nanoseconds since 1970
	record   BLOB NOT NULL,
	snapshot BLOB,
	sum      INTEGER NOT NULL
);
PRAGMA application_id = %d;
PRAGMA user_version = %d`, application, format)

const (
	// rowOverhead is about the size of a row, without the values and the key, which is stored
	// twice.
	rowOverhead = 100
	// lockTime is how long to wait for a lock of another process.
	lockTime = 500 * time.Millisecond
	// maxRemoved is the maximum number of rows that one transaction removes to make room.
	maxRemoved = 20_000
	// maxAge is how long a policy is kept after it was written: longer than a copy of a
	// robots.txt may be used (RFC 9309 §2.4).
	maxAge = 31 * 24 * time.Hour
)

// damage is the error of a file that is corrupt, or in another format.
type damage struct{ what string }

// Error describes the damage.
func (d *damage) Error() string { return d.what }

// database is an open file.
type database struct {
	writing sync.Mutex // for writer; locked before reading
	writer  *sqlite.Conn
	reading sync.Mutex // for reader
	reader  *sqlite.Conn
	lock    *ownfile.Descriptor // the file, locked: another heed would set it aside under this one
	logs    [2]os.FileInfo      // of the files with logSuffixes, which SQLite has open
	closed  bool                // changes with both locked
}

// openDatabase opens the file at path, made with mode 0600 if there is none. The error is a
// *damage when the file is to blame, not its location.
func openDatabase(path string) (_ *database, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, errNoFile // reading a pipe may block
	}
	file, err := ownfile.Claim(path)
	if errors.Is(err, ownfile.ErrClaimed) {
		return nil, errInUse
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > 0 {
		if err := check(path); err != nil {
			return nil, explained(err)
		}
	}
	d := &database{lock: file}
	if d.writer, err = sqlite.Open(path, "rwc", lockTime); err == nil {
		err = d.writer.InTransaction(func() error { _, err := d.writer.Exec(schema); return err })
		if err == nil {
			d.reader, err = sqlite.Open(path, "rw", lockTime)
		}
		if err != nil {
			err = errors.Join(err, d.writer.Close())
		}
	}
	if err != nil {
		return nil, explained(err)
	}
	for i, suffix := range logSuffixes {
		d.logs[i], _ = os.Stat(path + suffix) // see hasLogs
	}
	return d, nil
}

// logSuffixes are those of the files that SQLite has beside the one at a path: the write-ahead
// log and its index.
var logSuffixes = [...]string{"-wal", "-shm"}

// hasLogs reports whether the files beside the one at path are those that SQLite has open. It
// does not notice when they are removed, and writes to files that no start will find.
func (d *database) hasLogs(path string) bool {
	for i, suffix := range logSuffixes {
		if is, err := os.Stat(path + suffix); err != nil || d.logs[i] == nil || !os.SameFile(is, d.logs[i]) {
			return false
		}
	}
	return true
}

// settle has SQLite write to the file what is in the log.
func (d *database) settle() error {
	d.reading.Lock()
	defer d.reading.Unlock()
	row, err := d.writer.One("PRAGMA wal_checkpoint(PASSIVE)")
	if err == nil && (row == nil || row[0] != int64(0) || row[1] != row[2]) {
		err = errInUse // another program reads an earlier state
	}
	return err
}

// check returns an error unless the file has the format of heed, or is empty. It changes nothing.
func check(path string) error {
	c, err := sqlite.Open(path, "ro", lockTime)
	if err != nil {
		return err
	}
	defer c.Close()
	var of [3]int64
	for i, query := range []string{"PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema"} {
		if of[i], err = sqlite.Value[int64](c, query); err != nil {
			return err
		}
	}
	switch of {
	case [3]int64{}, [3]int64{application, format, 2}: // the table and the index of its key
		return nil
	}
	if of[0] == application {
		return &damage{what: fmt.Sprintf("its format is %d, this heed's is %d", of[1], format)}
	}
	if table, err := sqlite.Value[int64](c, "SELECT count(*) FROM sqlite_schema WHERE name = 'policy'"); err != nil || table == 0 {
		return cmp.Or(err, errForeign)
	}
	return &damage{what: "it is not marked as heed's"}
}

// explained returns err as what openDatabase, read and write return.
func explained(err error) error {
	switch primary := sqlite.Primary(err); {
	case err == nil:
		return nil
	case sqlite.IsDamage(err), primary == sqlite.Failed: // the table has another form
		return &damage{what: err.Error()}
	case primary == sqlite.Full:
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	case primary == sqlite.Busy:
		return errInUse
	}
	return err
}

// close closes d; afterwards reads find nothing and writes fail.
func (d *database) close() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.reading.Lock()
	defer d.reading.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return errors.Join(d.reader.Close(), d.writer.Close(), d.lock.Close())
}

// read returns the values stored under key, or nil.
func (d *database) read(key string) (record, snapshot []byte, err error) {
	d.reading.Lock()
	defer d.reading.Unlock()
	if d.closed {
		return nil, nil, nil
	}
	return readRow(d.reader, key)
}

func readRow(c *sqlite.Conn, key string) (record, snapshot []byte, err error) {
	row, err := c.One("SELECT record, snapshot, sum FROM policy WHERE key = ?", []byte(key))
	if err != nil || row == nil {
		return nil, nil, explained(err)
	}
	record, isOctets := row[0].([]byte)
	snapshot, _ = row[1].([]byte)
	if sum, _ := row[2].(int64); !isOctets || sum != checksum(key, record, snapshot) {
		return nil, nil, &damage{what: "a checksum does not fit"}
	}
	return record, snapshot, nil
}

func checksum(key string, parts ...[]byte) int64 {
	sum := crc32.ChecksumIEEE([]byte(key))
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		sum = crc32.Update(sum, crc32.IEEETable, p)
	}
	return int64(sum)
}

// write makes all changes in one transaction, after it has made room for them.
func (d *database) write(limit int64, batch map[string]change, now time.Time) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.closed {
		return errClosed
	}
	need, purge := int64(0), false
	for key, c := range batch {
		need += rowOverhead + 2*int64(len(key)) + c.size()
		purge = purge || c.family
	}
	_, err := d.makeRoom(limit-need, now)
	if err == nil {
		err = d.writer.InTransaction(func() error { return d.changeAll(batch, now) })
	}
	if err == nil && purge {
		_ = d.settle() // so that what was purged does not return when the log is removed
	}
	return explained(err)
}

func (d *database) changeAll(batch map[string]change, now time.Time) error {
	for key, c := range batch { // before what was saved for the families afterwards
		if !c.family {
			continue
		}
		end := []byte(key) // of the keys that begin so
		end[len(end)-1]++
		if _, err := d.writer.Exec("DELETE FROM policy WHERE key >= ? AND key < ?", []byte(key), end); err != nil {
			return err
		}
	}
	for key, c := range batch {
		var err error
		if c.record == nil {
			_, err = d.writer.Exec("DELETE FROM policy WHERE key = ?", []byte(key))
		} else {
			var snapshot any // NULL for nil
			if c.snapshot != nil {
				snapshot = c.snapshot
			}
			_, err = d.writer.Exec("REPLACE INTO policy (key, saved, record, snapshot, sum) VALUES (?, ?, ?, ?, ?)",
				[]byte(key), now.UnixNano(), c.record, snapshot, checksum(key, c.record, c.snapshot))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shrink makes the file smaller when it is larger than limit, an eighth more allowed: it was
// written under a larger one.
func (d *database) shrink(limit int64, now time.Time) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.closed {
		return nil
	}
	octets, err := d.writer.Size()
	if err != nil || octets <= limit+limit/maxShare {
		return explained(err)
	}
	for removed := int64(1); err == nil && removed > 0; {
		removed, err = d.makeRoom(limit, now)
	}
	if err == nil {
		_, err = d.writer.Exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
	}
	return explained(err)
}

// makeRoom removes the policies that were written longest ago until about limit octets of the
// file are in use, and those older than maxAge, at most maxRemoved.
func (d *database) makeRoom(limit int64, now time.Time) (removed int64, err error) {
	used, err := sqlite.Value[int64](d.writer, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size")
	if err != nil {
		return 0, err
	}
	dead := now.Add(-maxAge).UnixNano()
	if first, err := sqlite.Value[int64](d.writer, "SELECT saved FROM policy ORDER BY rowid LIMIT 1"); err != nil || used <= limit && first > dead {
		return 0, err
	}
	oldest := fmt.Sprintf("(SELECT rowid AS id, saved, %d + 2 * length(key) + length(record) + ifnull(length(snapshot), 0) AS octets FROM policy ORDER BY rowid LIMIT %d)", rowOverhead, maxRemoved)
	if odd, err := sqlite.Value[int64](d.writer, "SELECT count(*) FROM "+oldest+" WHERE typeof(saved) <> 'integer' OR octets IS NULL"); err != nil || odd > 0 {
		return 0, cmp.Or[error](err, &damage{what: "a row is not as heed writes it"})
	}
	return d.writer.Exec(fmt.Sprintf(`DELETE FROM policy WHERE rowid IN (SELECT id FROM (
	SELECT id, saved, %d - sum(octets) OVER (ORDER BY id) + octets AS used FROM %s) WHERE used > %d OR saved <= %d)`, used, oldest, limit, dead))
}
