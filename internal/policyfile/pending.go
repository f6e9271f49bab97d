package policyfile

import (
	"strings"
)

// change is a pending change of one key. Without a record the key is deleted.
type change struct {
	record, snapshot []byte
	family           bool // before that, its family is deleted: see familyOf
}

// familyOf returns the key whose deletion deletes key too.
func familyOf(key string) string { return key[:strings.LastIndexByte(key, '\n')+1] }

// size returns the bytes of a policy.
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
