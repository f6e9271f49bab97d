package command

import "sync"

// runWays are the ways that one run takes to the sites: one among those in
// force, and for a moment, while a reload replaces them, one among the next.
type runWays struct {
	way way

	mu    sync.Mutex
	taken map[*egresses]*egress
	ended bool // the run is over: nothing is taken any more
}

// take opens the run's way among ways.
func (r *runWays) take(ways *egresses) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.taken[ways] != nil {
		return nil
	}
	e, err := ways.take(r.way)
	if err != nil {
		return err
	}
	if r.taken == nil {
		r.taken = map[*egresses]*egress{}
	}
	r.taken[ways] = e
	return nil
}

// of returns what was taken among ways; nil when nothing was.
func (r *runWays) of(ways *egresses) *egress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken[ways]
}

// give gives back what was taken among ways.
func (r *runWays) give(ways *egresses) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.taken[ways]; e != nil && !r.ended {
		delete(r.taken, ways)
		ways.give(e)
	}
}

// giveAll gives everything back when the run is over. What is still under way may
// end on it.
func (r *runWays) giveAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for ways, e := range r.taken {
		ways.give(e)
	}
}
