package cache

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	// writeDelay is how long what is to be saved waits for company: one
	// transaction, and one wait for the disk, serves all of it.
	writeDelay = 200 * time.Millisecond
	// maxPending is how many bytes may wait for the disk, thousands of policies.
	// What comes on top is not saved, and asked for again after a restart.
	maxPending = 4 << 20
	// maxShare is what part of the file one policy may take: an eighth.
	maxShare = 8
	// lockPatience is how long another process may take to let go of the file.
	lockPatience = 500 * time.Millisecond
	// damagedSuffix is what a damaged file is set aside under. There is one at
	// most: the next one replaces it.
	damagedSuffix = ".damaged"
)

// File keeps policies in one file on disk, for any number of caches: see Way.
// What is saved is written within a second, by a goroutine of the File's own;
// nothing is read before it is asked for. Make one with OpenFile; it is safe
// for concurrent use.
//
// A damaged file, found so at the start or later, is set aside and a new one
// begun. A disk that is full or broken costs what cannot be saved, no more.
type File struct {
	path  string
	limit int64
	log   *slog.Logger
	wake  chan struct{} // has room for one
	quit  chan struct{}
	done  chan struct{} // closed when the writer has ended

	flushing sync.Mutex // held by who writes

	mu      sync.Mutex
	db      *bbolt.DB         // nil after the file was damaged twice, and when closed
	pending map[string]change // waits for the writer
	writing map[string]change // the writer is at it; immutable
	bytes   int64             // of pending
	damages int
	toldAt  time.Time // when the log last heard of what cannot be saved
}

// OpenFile opens the file at path, made with mode 0600 if there is none. Of it
// about limit bytes are used: the policies written longest ago make room. It may
// be twice as long, since what is written anew is written beside the old. log
// hears of damage and of what cannot be saved. The error says what is wrong with
// the place, for a person.
func OpenFile(path string, limit int64, log *slog.Logger) (*File, error) {
	f := &File{
		path: path, limit: limit, log: log, pending: map[string]change{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	db, err := f.open()
	if err != nil {
		return nil, err
	}
	f.db = db
	go f.write()
	return f, nil
}

// open opens the file, or a new one when what is there is damaged.
func (f *File) open() (*bbolt.DB, error) {
	db, err := openBolt(f.path)
	if damage := (*damage)(nil); errors.As(err, &damage) {
		f.damages++
		if err := f.setAside(damage); err != nil {
			return nil, err
		}
		db, err = openBolt(f.path)
	}
	var place *fs.PathError
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("the policies file %s is in use by another heed\nGive each a file of its own in [cache] file, or a state directory of its own", f.path)
	case errors.As(err, &place):
		err = place.Err
	}
	return nil, fmt.Errorf("the policies file %s cannot be opened: %w\nMake its directory writable, or name another file in [cache] file", f.path, err)
}

// setAside moves a damaged file out of the way.
func (f *File) setAside(why *damage) error {
	aside := f.path + damagedSuffix
	if err := os.Rename(f.path, aside); err != nil {
		return fmt.Errorf("the policies file %s is damaged and cannot be moved: %w\nRemove it", f.path, err)
	}
	f.log.Warn("the policies file is damaged: it was set aside, and policies are fetched anew",
		"file", f.path, "moved_to", aside, "damage", why.what)
	return nil
}

// Close writes what waits and closes the file. Afterwards nothing is found and
// nothing saved.
func (f *File) Close() error {
	close(f.quit)
	<-f.done
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.db == nil {
		return nil
	}
	db := f.db
	f.db = nil
	return db.Close()
}

// Way returns the part of f that is for one way to the sites: who goes another
// one must not be given what was fetched over this.
func (f *File) Way(id string) Keeper {
	sum := sha256.Sum256([]byte(id))
	return &fileWay{f, string(sum[:16])}
}

// fileWay is the Keeper of one way. All keys of one begin alike and are equally
// long there.
type fileWay struct {
	file   *File
	prefix string
}

// Load finds what was saved, written or not.
func (w *fileWay) Load(key string) (record, snapshot []byte, ok bool) {
	return w.file.load(w.prefix + key)
}

// Save has the writer write.
func (w *fileWay) Save(key string, record, snapshot []byte) bool {
	return w.file.put(w.prefix+key, change{record: record, snapshot: snapshot, fresh: snapshot != nil})
}

// Drop has the writer remove key, and its family when it is the head of one.
func (w *fileWay) Drop(key string) {
	key = w.prefix + key
	w.file.put(key, change{fresh: true, family: headOf(key) == key})
}

// troubleLocked tells the log, not more than once a minute.
func (f *File) troubleLocked(why any) {
	if now := time.Now(); now.Sub(f.toldAt) > time.Minute {
		f.toldAt = now
		f.log.Warn("policies cannot be saved and will be fetched again after a restart", "file", f.path, "error", why)
	}
}

// load looks at what waits for the writer first.
func (f *File) load(key string) (record, snapshot []byte, ok bool) {
	c, waits, db := f.waiting(key)
	if waits && c.fresh {
		return clone(c.record), clone(c.snapshot), c.record != nil
	}
	if db == nil {
		return nil, nil, false
	}
	record, snapshot, err := readBolt(db, key)
	if damage := (*damage)(nil); errors.As(err, &damage) {
		f.damaged(db, damage)
		return nil, nil, false
	}
	if waits {
		record = clone(c.record)
	}
	return record, snapshot, record != nil
}

// write saves what waits, again and again, until Close.
func (f *File) write() {
	defer close(f.done)
	debug.SetPanicOnFault(true) // see guarded
	for open := true; open; {
		select {
		case <-f.wake:
			select {
			case <-time.After(writeDelay):
			case <-f.quit:
			}
		case <-f.quit:
			open = false
		}
		f.flush()
	}
}

// flush writes all that waits, in one transaction.
func (f *File) flush() {
	f.flushing.Lock()
	defer f.flushing.Unlock()
	f.mu.Lock()
	f.writing, f.pending, f.bytes = f.pending, map[string]change{}, 0
	db, batch := f.db, f.writing
	f.mu.Unlock()
	var err error
	if db != nil && len(batch) > 0 {
		err = writeBolt(db, f.limit, batch, time.Now())
	}
	f.mu.Lock()
	f.writing = nil
	f.mu.Unlock()
	if damage := (*damage)(nil); errors.As(err, &damage) {
		f.damaged(db, damage)
	} else if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.troubleLocked(err)
	}
}

// damaged sets the file behind db aside and begins a new one; when that too
// turns out to be damaged, the disk cannot be trusted, and f goes on without.
// db is not closed: after a fault inside it that might never end.
func (f *File) damaged(db *bbolt.DB, why *damage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.db != db {
		return // somebody else found it first
	}
	f.db = nil
	if f.damages++; f.damages > 1 {
		f.log.Error("the policies file is damaged again: nothing is kept on disk until the next start", "file", f.path, "damage", why.what)
		return
	}
	if err := f.setAside(why); err != nil {
		f.log.Error(err.Error())
		return
	}
	if next, err := openBolt(f.path); err == nil {
		f.db = next
	} else {
		f.log.Error("policies are not kept on disk until the next start", "file", f.path, "error", err)
	}
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
