package cache

import (
	"strings"

	"go.etcd.io/bbolt"
)

// change is what is to become of one key. Without a record it is dropped.
type change struct {
	record, snapshot []byte
	fresh            bool // the snapshot on disk is not to be used any more
	family           bool // nothing on disk is, of the keys that headOf holds together
}

// headOf returns the key that key is dropped together with.
func headOf(key string) string { return key[:strings.LastIndexByte(key, '\n')+1] }

// size is how much waits for the disk with c.
func (c change) size() int64 { return int64(len(c.record) + len(c.snapshot)) }

// put leaves c to the writer and reports whether there was room.
func (f *File) put(key string, c change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.db == nil {
		return false
	}
	tooLarge := c.size() > f.limit/maxShare
	if tooLarge {
		c = change{fresh: true} // rather none than the one before
	}
	before := f.pending[key]
	if f.bytes > 0 && f.bytes+c.size() > maxPending {
		f.troubleLocked("they come faster than the disk takes them")
		return false
	}
	if c.family {
		f.dropFamilyLocked(key)
	}
	c = c.after(before, f.pending[headOf(key)])
	f.pending[key] = c
	f.bytes += c.size() - before.size()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return !tooLarge
}

// after returns what c comes to when before was to become of the same key, and
// head of the head of its family.
func (c change) after(before, head change) change {
	if c.snapshot == nil && !c.fresh {
		c.snapshot, c.fresh = before.snapshot, before.fresh || head.family
	}
	c.family = c.family || before.family
	return c
}

// dropFamilyLocked takes out what waits for the family of head, but head.
func (f *File) dropFamilyLocked(head string) {
	for key, c := range f.pending {
		if key != head && headOf(key) == head {
			f.bytes -= c.size()
			delete(f.pending, key)
		}
	}
}

// waiting returns what is to become of key, if anything is.
func (f *File) waiting(key string) (c change, waits bool, db *bbolt.DB) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, batch := range []map[string]change{f.writing, f.pending} {
		next, is := batch[key]
		head := batch[headOf(key)]
		switch {
		case is:
			c, waits = next.after(c, head), true
		case head.family:
			c, waits = change{fresh: true}, true
		}
	}
	return c, waits, f.db
}
