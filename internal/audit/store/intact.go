package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"heed/internal/audit/store/wal"
	"heed/internal/base/ownfile"
	"heed/internal/base/sqlite"
)

// files are audit.db and the two files that SQLite keeps beside it, its write-ahead log and
// the index of that. SQLite does not notice when another program cuts, replaces or removes
// them.
type files struct {
	name       string              // of audit.db
	claim      *ownfile.Descriptor // audit.db, locked
	log, index *ownfile.Descriptor // for reading; nil before open
	size       int64               // of audit.db after the last write
	held       bool                // the claim holds it: see ownfile.Descriptor.Hold
}

// open opens the files beside audit.db, which SQLite has made.
func (s *files) open() (err error) {
	if s.log, err = ownfile.OpenBeside(s.name, "-wal"); err == nil {
		s.index, err = ownfile.OpenBeside(s.name, "-shm")
	}
	return err
}

// close closes all files that are open.
func (s *files) close() error {
	err := s.claim.Close()
	for _, f := range []*ownfile.Descriptor{s.log, s.index} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

var errGone = errors.New("it is no longer where it was: bring it back, or restart heed to begin a new one")

// present returns an error when a file has another name now, or is not open.
func (s *files) present() error {
	if wal.SameFile(s.name, s.claim.File, 0) != nil {
		return errGone
	}
	if s.log == nil || s.index == nil {
		return errHealing
	}
	return cmp.Or(wal.SameFile(s.name+"-wal", s.log.File, 0), wal.SameFile(s.name+"-shm", s.index.File, 0))
}

// Octets of the write-ahead log (https://sqlite.org/walformat.html).
const (
	logHeader   = 32
	frameHeader = 24
	indexHeader = 48 // there are two copies
)

// itself returns an error when audit.db has no header, or is shorter than it was when this
// process last wrote to it.
func (s *files) itself() error {
	head := make([]byte, headerSize)
	if _, err := s.claim.ReadAt(head, 0); err != nil || string(head[:len(magic)]) != magic {
		return errCut(s.name)
	}
	info, err := s.claim.Stat()
	if err == nil && info.Size() < s.size {
		if whole := wholeSize(head); whole == 0 || info.Size() < whole {
			return errCut(s.name)
		}
		s.size = info.Size() // another program has made it smaller: VACUUM
	}
	return err
}

// whole returns an error when audit.db has no header, or when its write-ahead log has
// less than the index says that SQLite wrote to it.
func (s *files) whole() error {
	head := make([]byte, headerSize)
	if _, err := s.claim.ReadAt(head, 0); err != nil || string(head[:len(magic)]) != magic {
		return errCut(s.name)
	}
	if s.index == nil {
		return nil
	}
	var before []byte
	for range 10 {
		i, h := make([]byte, 2*indexHeader), make([]byte, logHeader)
		if _, err := s.index.ReadAt(i, 0); err != nil || i[12] == 0 {
			return errCut(s.name + "-shm")
		}
		frames, page := int64(binary.NativeEndian.Uint32(i[16:])), int64(binary.NativeEndian.Uint16(i[14:]))
		if frames == 0 || !bytes.Equal(i[:indexHeader], i[indexHeader:]) { // it is empty, or being written
			return nil
		}
		_, err := s.log.ReadAt(h, 0)
		info, err2 := s.log.Stat()
		if err == nil && err2 == nil && bytes.Equal(h[16:24], i[32:40]) && info.Size() >= logHeader+frames*(frameHeader+page) {
			return nil
		}
		if bytes.Equal(i, before) { // else another program has begun the log anew meanwhile
			break
		}
		before = i
	}
	return errCut(s.name + "-wal")
}

// complete returns an error unless audit.db is present, whole, and as long as it was when
// this process last wrote to it. The caller holds Writer.completing.
func (s *files) complete() error {
	return cmp.Or(s.present(), s.whole(), s.itself())
}

// sized notes the length of audit.db after a write, which can also shorten it.
func (s *files) sized() {
	if info, err := s.claim.Stat(); err == nil {
		s.size = info.Size()
	}
}

func errCut(name string) error {
	return fmt.Errorf("%s was cut or overwritten: %w", name, errDamaged)
}

var errDamaged = errors.New("restart heed")

// isDamage reports whether err is that of a record which this heed wrote and another
// program, or a disk, has changed since.
func isDamage(err error) bool {
	return sqlite.IsDamage(err) || sqlite.Primary(err) == sqlite.Constraint || errors.Is(err, errDamaged) || errors.Is(err, errApart) || errors.Is(err, wal.ErrDamaged)
}

// replaceDamaged moves a record aside that could not be opened for the reason cause, and
// begins one that follows it. It takes over the tail if that has all rows from the first;
// otherwise the tail moves with the record, and the new one counts the decisions that
// neither has. An error that is not about damage is returned.
func (w *Writer) replaceDamaged(cause error) error {
	if !isDamage(cause) {
		return cause
	}
	w.follows = "a record that was damaged"
	known := int64(0)
	if w.db != nil {
		known, w.follows = w.db.head.last[entryTable], headOf(w.db.store, &w.db.head)+", which was damaged"
	}
	aside, err := asideOf(w.path, "damaged")
	if err == nil {
		err = moveFiles(w.path, aside, "", "-wal", "-shm", "-journal")
	}
	if err != nil {
		return errors.Join(cause, err)
	}
	id, lost := "", int64(0)
	if err = w.openFiles(lockTimeout); isDamage(err) {
		if w.db != nil {
			id = w.db.store
		}
		if err = moveFiles(w.path, aside, wal.Suffixes[:]...); err == nil {
			err = os.Remove(w.path)
		}
		if err == nil {
			lost = max(0, lastInTail(aside, id)-known)
			w.follows += fmt.Sprintf("; %d decisions are missing in it", lost)
			err = w.openFiles(lockTimeout)
		}
	}
	if err != nil {
		return errors.Join(cause, err)
	}
	if w.lost = lost; lost > 0 {
		w.lostWhy = "they were in " + aside + ", which was damaged"
	}
	w.o.Log.Error("the record was damaged by another program: it was moved, and a new one continues it", "file", w.path, "moved_to", aside, "lost", lost, "error", cause)
	return nil
}

// moveFiles renames the files beside path that have these suffixes, if there are any.
func moveFiles(path, to string, suffixes ...string) error {
	for _, s := range suffixes {
		if err := os.Rename(path+s, to+s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// lastInTail returns the number of the last decision in the tail of the record; 0 when
// the tail has none that can be read.
func lastInTail(path, id string) (last int64) {
	for n := range Schema.decisions(wal.Blocks(path, id, true)) {
		last = max(last, n)
	}
	return last
}
