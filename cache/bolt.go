package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The file has four buckets:
//
//	heed policies  format -> boltFormat
//	records      key -> checksum, age, record
//	snapshots      key -> checksum, snapshot
//	ages           age -> key: the order in which records were written
//
// A checksum covers the key and all that follows it. An age is the time in
// nanoseconds since 1970 and a number that makes it unique, both big-endian.
var (
	boltHead      = []byte("heed policies")
	boltFormatKey = []byte("format")
	boltFormat    = []byte("1")
	boltRecords   = []byte("records")
	boltSnapshots = []byte("snapshots")
	boltAges      = []byte("ages")
)

const (
	sumLen = 4
	ageLen = 12
	// growStep is by how much the file grows at a time.
	growStep = 1 << 20
	// boltOverhead is about what a policy takes in the file beside its bytes
	// and its key, which is stored three times.
	boltOverhead = 150
)

// maxRemoved bounds one transaction that makes room.
const maxRemoved = 20_000

// maxFileAge is how long a record is kept that was not written again: longer
// than a copy may be used.
const maxFileAge = staleLimit + 24*time.Hour

// damage is the error of a file that is corrupt.
type damage struct{ what string }

// Error describes the damage.
func (d *damage) Error() string { return d.what }

// guarded runs fn and turns what a damaged file does to bbolt into an error: it
// panics where its pages do not fit together, and reading a file that has
// become shorter is a fault of the memory it is mapped to.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = &damage{fmt.Sprint(v)}
		}
	}()
	return fn()
}

// openBolt opens the file at path. The error is a *damage when the file is to
// blame, not its location.
func openBolt(path string) (db *bbolt.DB, err error) {
	err = guarded(func() error {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType,
		})
		if err != nil {
			return err
		}
		db.AllocSize = growStep
		if err = db.Update(prepare); err != nil {
			db.Close() // the first error counts
		}
		return err
	})
	var place *fs.PathError
	var errno syscall.Errno
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout), errors.As(err, &place), errors.As(err, &errno):
		return nil, err
	}
	return nil, &damage{err.Error()}
}

// prepare makes the buckets of a new file and looks whether an old one is whole
// and of our format.
func prepare(tx *bbolt.Tx) error {
	if info, err := os.Stat(tx.DB().Path()); err == nil && info.Size() < tx.Size() {
		return &damage{fmt.Sprintf("it has %d bytes of %d", info.Size(), tx.Size())}
	}
	head := tx.Bucket(boltHead)
	if head == nil {
		if name, _ := tx.Cursor().First(); name != nil {
			return &damage{"it holds something else"}
		}
		var err error
		if head, err = tx.CreateBucket(boltHead); err == nil {
			err = head.Put(boltFormatKey, boltFormat)
		}
		if err != nil {
			return err
		}
	}
	if format := head.Get(boltFormatKey); !bytes.Equal(format, boltFormat) {
		return &damage{fmt.Sprintf("its format is %q, this heed's is %q", format, boltFormat)}
	}
	for _, name := range [][]byte{boltRecords, boltSnapshots, boltAges} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

// readBolt returns copies of what is stored under key; nil when nothing is.
func readBolt(db *bbolt.DB, key string) (record, snapshot []byte, err error) {
	err = guarded(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			value, err := checked(key, tx.Bucket(boltRecords).Get([]byte(key)))
			if err != nil || value == nil {
				return err
			}
			if len(value) < ageLen {
				return &damage{"a record is cut short"}
			}
			record = clone(value[ageLen:])
			value, err = checked(key, tx.Bucket(boltSnapshots).Get([]byte(key)))
			snapshot = clone(value)
			return err
		})
	})
	return record, snapshot, err
}

// appendAge appends the age of what is the nth that was written at now.
func appendAge(b []byte, now time.Time, n uint32) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(now.UnixNano()))
	return binary.BigEndian.AppendUint32(b, n)
}

// summed returns the parts, one after the other, behind their checksum.
func summed(key []byte, parts ...[]byte) []byte {
	b := make([]byte, sumLen, 64)
	for _, p := range parts {
		b = append(b, p...)
	}
	binary.BigEndian.PutUint32(b, checksum(key, b[sumLen:]))
	return b
}

// checked returns what summed was given, or that it is not that any more. nil
// stays nil.
func checked(key string, b []byte) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	if len(b) < sumLen || binary.BigEndian.Uint32(b) != checksum([]byte(key), b[sumLen:]) {
		return nil, &damage{"a checksum does not fit"}
	}
	return b[sumLen:], nil
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(key), crc32.IEEETable, value)
}

// writeBolt makes all changes in one transaction, and room for them before.
func writeBolt(db *bbolt.DB, limit int64, batch map[string]change, now time.Time) error {
	need := int64(0)
	for key, c := range batch {
		need += footprint(len(key), len(c.record)+len(c.snapshot))
	}
	return guarded(func() error {
		if err := makeRoom(db, limit-need, now); err != nil {
			return err
		}
		return db.Update(func(tx *bbolt.Tx) error { return changeAll(tx, batch, now) })
	})
}

func changeAll(tx *bbolt.Tx, batch map[string]change, now time.Time) error {
	w := newBoltWriter(tx, now)
	for key, c := range batch { // before what was saved for the families afterwards
		if c.family {
			if err := w.dropFamily([]byte(key)); err != nil {
				return err
			}
		}
	}
	for key, c := range batch {
		if err := w.change([]byte(key), c); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes the records written longest ago until about limit bytes of
// the file are in use, and those that are too old to be used.
func makeRoom(db *bbolt.DB, limit int64, now time.Time) error {
	dead := appendAge(nil, now.Add(-maxFileAge), 0)
	excess, idle := int64(0), false
	look := func(tx *bbolt.Tx) error {
		stats := db.Stats()
		used := tx.Size() - int64(stats.FreePageN+stats.PendingPageN)*int64(db.Info().PageSize)
		excess = used - limit
		if tx.Size() > 2*limit { // long values want free room in one piece: make more of it
			excess += limit / 4
		}
		oldest, _ := tx.Bucket(boltAges).Cursor().First()
		idle = oldest == nil || excess <= 0 && bytes.Compare(oldest, dead) > 0
		return nil
	}
	if err := db.View(look); err != nil || idle {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		w := newBoltWriter(tx, now)
		for range maxRemoved {
			age, key := w.ages.Cursor().First()
			if age == nil || excess <= 0 && bytes.Compare(age, dead) > 0 {
				break
			}
			freed, err := w.remove(clone(key), clone(age))
			if err != nil {
				return err
			}
			excess -= freed
		}
		return nil
	})
}

// boltWriter is the buckets of one transaction.
type boltWriter struct {
	records, snapshots, ages *bbolt.Bucket
	now                      time.Time
	count                    uint32
}

func newBoltWriter(tx *bbolt.Tx, now time.Time) *boltWriter {
	w := &boltWriter{
		records: tx.Bucket(boltRecords), snapshots: tx.Bucket(boltSnapshots), ages: tx.Bucket(boltAges), now: now,
	}
	w.ages.FillPercent = 0.9 // written at its end alone
	return w
}

func (w *boltWriter) change(key []byte, c change) error {
	if err := w.forgetAge(key); err != nil {
		return err
	}
	if c.record == nil {
		return errors.Join(w.records.Delete(key), w.snapshots.Delete(key))
	}
	w.count++
	age := appendAge(nil, w.now, w.count)
	if err := errors.Join(w.ages.Put(age, key), w.records.Put(key, summed(key, age, c.record))); err != nil {
		return err
	}
	if c.snapshot == nil {
		return w.snapshots.Delete(key)
	}
	return w.snapshots.Put(key, summed(key, c.snapshot))
}

// dropFamily removes all whose keys begin with head.
func (w *boltWriter) dropFamily(head []byte) error {
	for {
		key, _ := w.records.Cursor().Seek(head)
		if key == nil || !bytes.HasPrefix(key, head) {
			return nil
		}
		if err := w.change(clone(key), change{}); err != nil {
			return err
		}
	}
}

// forgetAge removes when key was written last.
func (w *boltWriter) forgetAge(key []byte) error {
	value, err := checked(string(key), w.records.Get(key))
	if err != nil || len(value) < ageLen {
		return err
	}
	return w.ages.Delete(clone(value[:ageLen]))
}

// remove removes all of key, and returns about how many bytes that frees.
func (w *boltWriter) remove(key, age []byte) (freed int64, err error) {
	freed = footprint(len(key), len(w.records.Get(key))+len(w.snapshots.Get(key)))
	return freed, errors.Join(w.ages.Delete(age), w.records.Delete(key), w.snapshots.Delete(key))
}

// footprint is about how many bytes of the file a policy uses.
func footprint(key, values int) int64 { return int64(boltOverhead + 3*key + values) }
