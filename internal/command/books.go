package command

import (
	"sync"
	"sync/atomic"

	"heed/internal/terms"
	"heed/proxy"
)

// books holds what is in force: the settings, and what was added to their terms
// while heed runs. The zero value holds nothing.
type books struct {
	current atomic.Pointer[force]

	mu  sync.Mutex                            // held to change current
	add func(settled *terms.Book) *terms.Book // nil: nothing was added
}

// force is what is in force at one moment. It is immutable.
type force struct {
	*generation
	settings proxy.Settings // of the shared listeners
}

// now returns the terms in force.
func (b *books) now() *terms.Book { return b.live().Book }

// live returns what the shared listeners go by; it is never nil.
func (b *books) live() *proxy.Settings {
	if f := b.current.Load(); f != nil {
		return &f.settings
	}
	return &proxy.Settings{}
}

// renew puts a generation in force, with what was added.
func (b *books) renew(g *generation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.putLocked(g)
}

// amend says what is added to the terms of the settings from now on, after
// reloads too. add returns another Book and leaves its argument as it is.
func (b *books) amend(add func(settled *terms.Book) *terms.Book) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add = add
	b.putLocked(b.current.Load().generation)
}

func (b *books) putLocked(g *generation) {
	book := g.book
	if b.add != nil {
		book = b.add(book)
	}
	b.current.Store(&force{g, g.settings(g.egress, book)})
}

// ofRun returns what live does for a run, which came over the control socket
// and so is known: nobody is asked who it is. What it asks for stands before all
// else; out returns the run's way to the sites.
func (b *books) ofRun(r terms.Run, out func(*egresses) *egress) func() *proxy.Settings {
	type pair struct {
		base *force
		own  proxy.Settings
	}
	var last atomic.Pointer[pair]
	return func() *proxy.Settings {
		for {
			base := b.current.Load()
			if p := last.Load(); p != nil && p.base == base {
				return &p.own
			}
			e := out(base.ways)
			if e == nil && b.current.Load() != base {
				continue // others have just taken their place
			}
			p := &pair{base, base.generation.settings(e, forRun(base.settings.Book, r))}
			last.Store(p)
			return &p.own
		}
	}
}

// forRun returns b for a run that asks for r itself.
func forRun(b *terms.Book, r terms.Run) *terms.Book {
	return amended(b.ForRun(r), func(in *inForce) { in.Run = saidByRun(r) })
}

// runName is the name of the client that a run declares itself to be.
const runName = "run"

// terms returns what the run asks for itself.
func (j *join) terms() (terms.Run, error) {
	said := saidOnce{UserAgent: j.UserAgent, Observe: j.Observe, Services: j.Services}
	if j.Agent != "" {
		said.Agent = []string{j.Agent}
	}
	return said.terms()
}

// serviceOfRun is the reason that the record quotes for `heed run --service`.
const serviceOfRun = "declared by heed run --service"
