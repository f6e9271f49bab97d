// Package memory trades memory for CPU time in a heed that serves.
//
// A request leaves about 10 KB of garbage. With Go's default target, 100 %, a small
// heap is collected many times a second under load, which takes a tenth of the CPU
// time. With 400 % it is collected a quarter as often, and a heed with 10 MB of live
// data uses about 50 MB. The target is lowered when the heap grows, and memory
// that is not used is returned to the system when heed is idle.
//
// memory.go has the target, container.go the limit of a container, copybuffer.go pooled
// memory for copying, stack.go room on the stacks of new connections.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// The target of the garbage collector: how many per cent of the live heap may be
// allocated before the next collection.
const (
	highTarget = 400
	lowTarget  = 100 // Go's default

	// smallHeap bounds what a high target adds: a heap does not grow beyond it by a
	// target above lowTarget. In bytes.
	smallHeap = 256 << 20
)

const (
	// checkEvery is the interval between two checks whether heed is idle.
	checkEvery = 5 * time.Second
	// idleBelow is the largest number of octets that an idle heed allocates in checkEvery.
	idleBelow = 1 << 20
	// returnAfter is how long heed has to be idle before memory is returned. Afterwards
	// the next 6,000 requests take 8 % more CPU time, to get it back.
	returnAfter = time.Minute
	// leastReturned is how many octets the heap has to grow before an idle heed looks for
	// memory to return.
	leastReturned = 8 << 20
	// limitShare is the share of a container's memory that the Go heap may use. The rest
	// is for SQLite, whose memory the garbage collector does not count, and the kernel.
	limitShare = 0.8
)

// Manage sets the target and the limit of the garbage collector for this process until
// stop is called. The variables GOGC and GOMEMLIMIT have precedence: when either is
// set, Manage does nothing.
func Manage() (stop func()) { return manage(returnAfter) }

// manage is Manage with another returnAfter.
func manage(returnAfter time.Duration) (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	if limit := containerLimit(os.DirFS("/")); limit > 0 {
		debug.SetMemoryLimit(int64(float64(limit) * limitShare))
	}
	m := &manager{done: make(chan struct{}), target: highTarget}
	m.before = debug.SetGCPercent(highTarget)
	runtime.SetFinalizer(&cycle{m}, (*cycle).ended)
	go m.returnWhenIdle(returnAfter)
	return m.stop
}

// manager is a running Manage.
type manager struct {
	before int           // the target before Manage
	done   chan struct{} // closed by stop

	mu      sync.Mutex
	target  int // the current one
	stopped bool
}

func (m *manager) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	close(m.done)
	debug.SetGCPercent(m.before)
}

// cycle is garbage: its finalizer runs after each collection.
type cycle struct{ *manager }

// ended adjusts the target to what the collection left, and waits for the next.
func (c *cycle) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	if target := targetFor(read().live); target != c.target {
		c.target = target
		debug.SetGCPercent(target)
	}
	runtime.SetFinalizer(c, (*cycle).ended)
}

// targetFor returns the target for a live heap of so many bytes.
func targetFor(live uint64) int {
	if live == 0 {
		return highTarget
	}
	return int(min(max(smallHeap*100/live, 100+lowTarget), 100+highTarget)) - 100
}

// returnWhenIdle returns unused memory to the system whenever heed has been idle for a
// time.
func (m *manager) returnWhenIdle(after time.Duration) {
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	least := uint64(0) // the size of the heap after memory was last returned
	idle := time.Duration(0)
	for last := read(); ; {
		select {
		case <-m.done:
			return
		case <-check.C:
		}
		now := read()
		if idle += checkEvery; !isIdle(last, now) {
			idle = 0
		}
		if idle >= after && now.size >= least+leastReturned {
			debug.FreeOSMemory()
			least = read().size
		}
		last = now
	}
}

// isIdle reports whether little was allocated between two readings.
func isIdle(before, now reading) bool { return now.allocated-before.allocated < idleBelow }

// reading is what the runtime reports, in bytes.
type reading struct {
	allocated uint64 // since the start
	live      uint64 // after the last collection
	size      uint64 // of the heap, with garbage and what is free
}

func read() reading {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return reading{allocated: s[0].Value.Uint64(), live: s[1].Value.Uint64(), size: s[2].Value.Uint64() + s[3].Value.Uint64()}
}
