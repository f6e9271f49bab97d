package policyfile

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// change is what is to become of one key. Without a record it is dropped.
type change struct {
	record, snapshot []byte
	family           bool // so is, before, all that familyOf holds together with it
}

// familyOf returns the key that key is dropped together with.
func familyOf(key string) string { return key[:strings.LastIndexByte(key, '\n')+1] }

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
	if f.closed {
		return false
	}
	tooLarge := c.size() > f.limit/maxShare
	if tooLarge {
		c = change{} // rather none than the one before
	}
	room := int64(maxPending)
	if c.record == nil {
		room *= 2 // it must not be found any more
	}
	if f.bytes > 0 && f.bytes+c.weight(key) > room {
		f.failure.unsaved++
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
		f.failure.unsaved++
	}
	return !tooLarge
}

// setLocked queues c in place of what is queued for key.
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

// dropFamilyLocked takes out what waits for the family of head, but head.
func (f *File) dropFamilyLocked(head string) {
	for key, c := range f.pending {
		if key != head && familyOf(key) == head {
			f.bytes -= c.weight(key)
			delete(f.pending, key)
		}
	}
}

// waiting returns what is to become of key, if anything is.
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
