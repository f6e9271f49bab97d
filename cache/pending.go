package cache

import (
	"iter"
	"maps"
	"slices"
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

// size is how many bytes a policy has.
func (c change) size() int64 { return int64(len(c.record) + len(c.snapshot)) }

// waitOverhead is about what it takes to wait for the disk, beside the bytes.
const waitOverhead = 256

// weight is how much waits for the disk with c.
func (c change) weight(key string) int64 { return waitOverhead + int64(len(key)) + c.size() }

// put leaves c to the writer and reports whether there was room.
func (f *File) put(key string, c change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	tooLarge := c.size() > f.limit/maxShare
	if tooLarge {
		c = change{fresh: true} // rather none than the one before
	}
	room := int64(maxPending)
	if c.record == nil {
		room *= 2 // it must not be found any more
	}
	if f.bytes > 0 && f.bytes+c.weight(key) > room {
		f.trouble.unsaved++
		f.troubleLocked(errFlood)
		return false
	}
	if c.family {
		f.dropFamilyLocked(key)
	}
	f.setLocked(key, c.after(f.pending[key], f.pending[headOf(key)]))
	select {
	case f.wake <- struct{}{}:
	default:
	}
	if tooLarge {
		f.trouble.unsaved++
	}
	return !tooLarge
}

// setLocked has c wait in place of what waits for key.
func (f *File) setLocked(key string, c change) {
	if before, is := f.pending[key]; is {
		f.bytes -= before.weight(key)
	}
	f.pending[key] = c
	f.bytes += c.weight(key)
}

// giveBackLocked has changes wait again that could not be written, but for what
// has been changed since.
func (f *File) giveBackLocked(changes map[string]change) {
	if f.ended {
		return
	}
	for key, c := range changes {
		later, is := f.pending[key]
		switch {
		case is:
			c = later.after(c, change{})
		case f.pending[headOf(key)].family:
			continue
		}
		f.setLocked(key, c)
	}
}

// parts divides changes into transactions of maxBatch policies, in the order of
// their keys, but those first that drop a family.
func parts(changes map[string]change) iter.Seq[map[string]change] {
	keys := slices.SortedFunc(maps.Keys(changes), func(a, b string) int {
		if changes[a].family != changes[b].family {
			return map[bool]int{true: -1, false: 1}[changes[a].family]
		}
		return strings.Compare(a, b)
	})
	return func(yield func(map[string]change) bool) {
		for some := range slices.Chunk(keys, maxBatch) {
			part := make(map[string]change, len(some))
			for _, key := range some {
				part[key] = changes[key]
			}
			if !yield(part) {
				return
			}
		}
	}
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
			f.bytes -= c.weight(key)
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
