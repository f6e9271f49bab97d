// Package policyfile keeps cached policies in one file on disk across restarts, for any number
// of caches.
//
// File (file.go) queues changes, which a goroutine writes. rows.go is the file,
// an SQLite database; health.go handles a file that cannot be written or is damaged. The
// package is separate so that package cache does not need SQLite.
package policyfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"heed/cache"
	"heed/internal/base/sqlite"
)

const (
	// writeDelay is how long a change waits for others: one transaction, and one wait for the
	// disk, writes all of them.
	writeDelay = 200 * time.Millisecond
	// maxPending is the maximum number of octets that wait for the disk, some thousand policies;
	// as many more may be written at the time. Policies beyond it are not saved, and are
	// fetched again after a restart.
	maxPending = 8 << 20
	// pages is about the size of the page caches of the connections to the file, in bytes.
	pages = 4 << 20
	// retryDelay is the wait after a failed write.
	retryDelay = 5 * time.Second
	// maxShare divides the size of the file: one policy may take so much of it.
	maxShare = 8
	// damagedSuffix is appended to the name of a damaged file. The next one replaces it.
	damagedSuffix = ".damaged"
)

// Memory is the most memory that a File takes, in octets: pending changes, those that are being
// written, and pages.
const Memory = 2*maxPending + pages

// File keeps policies in one file on disk, for any number of caches: see ForRoute. A goroutine
// writes changes within a second; policies are read when they are requested. Make one with
// Open; it is safe for concurrent use.
//
// A damaged file, also when it is found later, is renamed and a new one begun. While the disk
// is full or broken, or another program has locked the file, heed continues with the policies
// in memory, and saves again afterwards.
type File struct {
	path  string
	limit int64
	log   *slog.Logger
	wake  chan struct{} // of capacity one
	quit  chan struct{}
	done  chan struct{} // closed when the writer has ended

	flushing sync.Mutex // held while writing

	mu      sync.Mutex
	db      *database         // nil while it cannot be opened
	info    os.FileInfo       // of the file behind db
	closed  bool              // by Close, or because the file was damaged twice
	pending map[string]change // not written yet
	writing map[string]change // being written; immutable
	bytes   int64             // of pending
	damages int
	failure failure
}

// Open opens the file at path, and creates it with mode 0600 if there is none. It uses about
// limit octets, and removes the policies that were written longest ago. log receives damage and
// failures to save. The error says what is wrong with the path.
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

// Close writes pending changes and closes the file. Afterwards nothing is found and nothing
// saved.
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

// fileStore is the PolicyStore of one route, whose keys have the same prefix.
type fileStore struct {
	file   *File
	prefix string
}

// Load returns what was saved, also when it is not written yet.
func (w *fileStore) Load(key string) (record, snapshot []byte, ok bool) {
	return w.file.load(w.prefix + key)
}

// Save queues a change.
func (w *fileStore) Save(key string, record, snapshot []byte) bool {
	return w.file.put(w.prefix+key, change{record: record, snapshot: snapshot})
}

// Drop queues the deletion of key, and of its family when key is the head of one.
func (w *fileStore) Drop(key string) bool {
	key = w.prefix + key
	return w.file.put(key, change{family: familyOf(key) == key})
}

// load reads pending changes, then the file.
func (f *File) load(key string) (record, snapshot []byte, ok bool) {
	c, waits, db := f.waiting(key)
	if waits {
		return bytes.Clone(c.record), bytes.Clone(c.snapshot), c.record != nil
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

// write writes pending changes until Close.
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
	if _, _, db := f.waiting(""); db != nil {
		_ = db.shrink(f.limit, time.Now()) // a failure is that of the next write, too
	}
	for open := true; open; {
		select {
		case <-f.wake:
			open = wait(writeDelay)
		case <-f.quit:
			open = false
		}
		for !f.Flush() && open {
			open = wait(retryDelay)
		}
	}
}

// Flush writes all pending changes, and reports success. Changes that could not be written
// stay pending.
func (f *File) Flush() bool {
	f.flushing.Lock()
	defer f.flushing.Unlock()
	f.mu.Lock()
	f.writing, f.pending, f.bytes = f.pending, map[string]change{}, 0
	db, err := f.readyLocked()
	writing := f.writing
	f.mu.Unlock()
	if len(writing) == 0 {
		return true
	}
	if err == nil {
		err = db.write(f.limit, writing, time.Now())
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
		f.requeueLocked(writing)
		f.failedLocked(err)
		return false
	default:
		f.recoveredLocked()
	}
	return true
}

// OpenReadOnly returns a PolicyStore that reads the entries of one route in the file at path,
// as File.ForRoute stores them. The file is open only during a read, which sees what a File has
// written; a file that is missing or damaged is empty.
func OpenReadOnly(path, id string) cache.PolicyStore {
	sum := sha256.Sum256([]byte(id))
	return &readOnlyStore{path, string(sum[:16])}
}

// readOnlyTime is how long a read waits for a process that writes the file.
const readOnlyTime = 50 * time.Millisecond

// readOnlyStore is the PolicyStore of OpenReadOnly.
type readOnlyStore struct{ path, prefix string }

// Load opens the file, reads the entry and closes it.
func (w *readOnlyStore) Load(key string) (record, snapshot []byte, ok bool) {
	c, err := sqlite.Open(w.path, "ro", readOnlyTime)
	if err != nil {
		return nil, nil, false
	}
	defer c.Close()
	record, snapshot, err = readRow(c, w.prefix+key)
	return record, snapshot, err == nil && record != nil
}

// Save does nothing.
func (w *readOnlyStore) Save(string, []byte, []byte) bool { return false }

// Drop does nothing.
func (w *readOnlyStore) Drop(string) bool { return false }

// change is a pending change of one key. Without a record the key is deleted.
type change struct {
	record, snapshot []byte
	family           bool // before that, its family is deleted: see familyOf
}

// familyOf returns the key whose deletion deletes key too.
func familyOf(key string) string { return key[:strings.LastIndexByte(key, '\n')+1] }

// size returns the octets of a policy.
func (c change) size() int64 { return int64(len(c.record) + len(c.snapshot)) }

// waitOverhead is about the memory of a pending change, without its bytes.
const waitOverhead = 256

// weight returns the memory of c while it is pending.
func (c change) weight(key string) int64 { return waitOverhead + int64(len(key)) + c.size() }

// put queues c for the writer, and reports whether there was room.
func (f *File) put(key string, c change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	tooLarge := c.size() > f.limit/maxShare
	if tooLarge {
		c = change{} // an old policy must not stay
	}
	room := int64(maxPending)
	if c.record == nil {
		room *= 2 // a deletion may use more room
	}
	if f.bytes > 0 && f.bytes+c.weight(key) > room {
		f.failure.Unsaved++
		f.failedLocked(errTooFast)
		return false
	}
	if c.family {
		f.dropFamilyLocked(key)
	}
	c.family = c.family || f.pending[key].family
	f.setLocked(key, c)
	select {
	case f.wake <- struct{}{}:
	default:
	}
	if tooLarge {
		f.failure.Unsaved++
	}
	return !tooLarge
}

// setLocked queues c, in place of a pending change of key.
func (f *File) setLocked(key string, c change) {
	if before, is := f.pending[key]; is {
		f.bytes -= before.weight(key)
	}
	f.pending[key] = c
	f.bytes += c.weight(key)
}

// requeueLocked queues changes again that could not be written, except for keys
// that have changed since.
func (f *File) requeueLocked(changes map[string]change) {
	if f.closed {
		return
	}
	for key, c := range changes {
		later, is := f.pending[key]
		switch {
		case is:
			later.family = later.family || c.family
			c = later
		case f.pending[familyOf(key)].family:
			continue
		}
		f.setLocked(key, c)
	}
}

// dropFamilyLocked removes pending changes of the family of head, except that of head.
func (f *File) dropFamilyLocked(head string) {
	for key, c := range f.pending {
		if key != head && familyOf(key) == head {
			f.bytes -= c.weight(key)
			delete(f.pending, key)
		}
	}
}

// waiting returns the pending change of key, if there is one.
func (f *File) waiting(key string) (c change, waits bool, db *database) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, batch := range []map[string]change{f.writing, f.pending} {
		if next, is := batch[key]; is || batch[familyOf(key)].family {
			c, waits = next, true
		}
	}
	return c, waits, f.db
}
