// Package policyfile keeps cached policies in one file on disk across restarts, for any
// number of caches.
//
// File (file.go) takes what is to be saved and has it written by a goroutine of its own
// (pending.go: what waits); rows.go is the file, an SQLite database; health.go is what
// happens when it cannot be written or is damaged. It is a package of its own so that
// package cache does not need SQLite.
package policyfile

import (
	"crypto/sha256"
	"errors"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"heed/cache"
	"heed/internal/sqlite"
)

const (
	// writeDelay is how long what is to be saved waits for company: one
	// transaction, and one wait for the disk, serves all of it.
	writeDelay = 200 * time.Millisecond
	// maxPending is how many bytes may wait for the disk, some thousand policies,
	// and as many again while the disk is at it. What comes on top is not saved,
	// and asked for again after a restart.
	maxPending = 8 << 20
	// maxBatch is how many policies one transaction writes.
	maxBatch = 1024
	// pages is about how many bytes of memory the pages of the file take that its
	// connections keep.
	pages = 4 << 20
	// retryDelay is how long a disk is left alone that did not take what it was
	// given.
	retryDelay = 5 * time.Second
	// maxShare is what part of the file one policy may take: an eighth.
	maxShare = 8
	// damagedSuffix is what a damaged file is set aside under. There is one at
	// most: the next one replaces it.
	damagedSuffix = ".damaged"
	// earlierSuffix is what a file is set aside under that a heed before this one wrote.
	earlierSuffix = ".earlier"
)

// Memory is how many bytes of memory a File takes at the most: what waits for the disk,
// what is being written, and pages of the file.
const Memory = 2*maxPending + pages

// File keeps policies in one file on disk, for any number of caches: see ForRoute.
// What is saved is written within a second, by a goroutine of the File's own;
// nothing is read before it is asked for. Make one with Open; it is safe
// for concurrent use.
//
// A damaged file, found so at the start or later, is set aside and a new one
// begun. While the disk is full or broken, or the file locked by another program, heed
// goes on with what is in memory, and saves again when that is over.
type File struct {
	path  string
	limit int64
	log   *slog.Logger
	wake  chan struct{} // has room for one
	quit  chan struct{}
	done  chan struct{} // closed when the writer has ended

	flushing sync.Mutex // held by who writes

	mu      sync.Mutex
	db      *database         // nil while there is none to be had
	info    os.FileInfo       // of the file behind db
	closed  bool              // by Close, or since the file was damaged twice
	pending map[string]change // waits for the writer
	writing map[string]change // the writer is at it; immutable
	bytes   int64             // of pending
	damages int
	failure failure
}

// Open opens the file at path, made with mode 0600 if there is none. Of it about limit
// bytes are used: the policies written longest ago make room. log hears of damage and of
// what cannot be saved. The error says what is wrong with the path, for a person.
func Open(path string, limit int64, log *slog.Logger) (*File, error) {
	f := &File{
		path: path, limit: limit, log: log, pending: map[string]change{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	f.mu.Lock()
	err := f.openLocked()
	if err != nil && isTemporary(err) {
		f.failedLocked(err)
		err = nil
	}
	f.mu.Unlock()
	if err != nil {
		return nil, openError(path, err)
	}
	go f.write()
	return f, nil
}

// Close writes what waits and closes the file. Afterwards nothing is found and
// nothing saved.
func (f *File) Close() error {
	close(f.quit)
	<-f.done
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.db == nil {
		return nil
	}
	db := f.db
	f.db = nil
	return db.close()
}

// ForRoute returns the entries of one route. Routes share nothing: a site may answer them
// differently.
func (f *File) ForRoute(id string) cache.PolicyStore {
	sum := sha256.Sum256([]byte(id))
	return &fileStore{f, string(sum[:16])}
}

// fileStore is the PolicyStore of one route. All keys of one begin alike and are equally
// long there.
type fileStore struct {
	file   *File
	prefix string
}

// Load finds what was saved, written or not.
func (w *fileStore) Load(key string) (record, snapshot []byte, ok bool) {
	return w.file.load(w.prefix + key)
}

// Save has the writer write.
func (w *fileStore) Save(key string, record, snapshot []byte) bool {
	return w.file.put(w.prefix+key, change{record: record, snapshot: snapshot})
}

// Drop has the writer remove key, and its family when it is the head of one.
func (w *fileStore) Drop(key string) bool {
	key = w.prefix + key
	return w.file.put(key, change{family: familyOf(key) == key})
}

// load looks at what waits for the writer first.
func (f *File) load(key string) (record, snapshot []byte, ok bool) {
	c, waits, db := f.waiting(key)
	if waits {
		return clone(c.record), clone(c.snapshot), c.record != nil
	}
	if db == nil {
		return nil, nil, false
	}
	record, snapshot, err := db.read(key)
	if damage := (*damage)(nil); errors.As(err, &damage) {
		f.damaged(db, damage)
		return nil, nil, false
	}
	return record, snapshot, record != nil
}

// write saves what waits, again and again, until Close.
func (f *File) write() {
	defer close(f.done)
	wait := func(d time.Duration) (open bool) {
		select {
		case <-time.After(d):
			return true
		case <-f.quit:
			return false
		}
	}
	for open := true; open; {
		select {
		case <-f.wake:
			open = wait(writeDelay)
		case <-f.quit:
			open = false
		}
		for !f.flush() && open {
			open = wait(retryDelay)
		}
	}
}

// flush writes all that waits, and reports whether that went well. What could
// not be written waits on.
func (f *File) flush() bool {
	f.flushing.Lock()
	defer f.flushing.Unlock()
	f.mu.Lock()
	f.writing, f.pending, f.bytes = f.pending, map[string]change{}, 0
	db, err := f.readyLocked()
	left := maps.Clone(f.writing)
	f.mu.Unlock()
	if len(left) == 0 {
		return true
	}
	for part := range parts(left) {
		if err == nil {
			err = db.write(f.limit, part, time.Now())
		}
		if err != nil {
			break
		}
		maps.DeleteFunc(left, func(key string, _ change) bool { _, is := part[key]; return is })
	}
	if damage := (*damage)(nil); errors.As(err, &damage) {
		f.damaged(db, damage)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing = nil
	switch {
	case f.closed:
	case err != nil:
		f.requeueLocked(left)
		f.failedLocked(err)
		return false
	default:
		f.recoveredLocked()
	}
	return true
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// OpenReadOnly returns a PolicyStore that finds what the file at path holds for one route
// to the sites, as File.ForRoute keeps it, and changes nothing. It has the file open
// only while it looks; a file that is missing or damaged holds nothing.
func OpenReadOnly(path, id string) cache.PolicyStore {
	sum := sha256.Sum256([]byte(id))
	return &readOnlyStore{path, string(sum[:16])}
}

// readOnlyTime is how long a look into a file waits for who writes it.
const readOnlyTime = 50 * time.Millisecond

// readOnlyStore is the PolicyStore of OpenReadOnly.
type readOnlyStore struct{ path, prefix string }

// Load opens the file, looks and closes it.
func (w *readOnlyStore) Load(key string) (record, snapshot []byte, ok bool) {
	c, err := sqlite.Open(w.path, "ro", readOnlyTime)
	if err != nil {
		return nil, nil, false
	}
	defer c.Close()
	record, snapshot, err = readRow(c, w.prefix+key)
	return record, snapshot, err == nil && record != nil
}

// Save saves nothing.
func (w *readOnlyStore) Save(string, []byte, []byte) bool { return false }

// Drop drops nothing.
func (w *readOnlyStore) Drop(string) bool { return false }
