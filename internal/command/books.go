package command

import (
	"sync/atomic"

	"heed/internal/terms"
	"heed/rules"
)

// books holds the terms in force, which a reload replaces whole. The zero value
// holds none.
type books struct{ current atomic.Pointer[terms.Book] }

// now returns the terms in force.
func (b *books) now() *terms.Book { return b.current.Load() }

// ofRun returns what now does for a run, which came over the control socket and
// so is known: nobody is asked who it is. c, which may be nil, stands before all
// other clients.
func (b *books) ofRun(c *terms.Client) func() *terms.Book {
	type pair struct{ base, own *terms.Book }
	var last atomic.Pointer[pair]
	return func() *terms.Book {
		base := b.now()
		p := last.Load()
		if p == nil || p.base != base {
			p = &pair{base, base.ForRun(c)}
			last.Store(p)
		}
		return p.own
	}
}

// runName is the name of the client that a run declares itself to be.
const runName = "run"

// client returns the entry that stands for a run that declared who it is; nil
// when it did not.
func (j *join) client() *terms.Client {
	if j.Agent == "" && j.UserAgent == "" {
		return nil
	}
	c := &terms.Client{Name: runName, SendUserAgent: j.UserAgent}
	if j.Agent != "" {
		c.Agent = rules.Declare(j.Agent)
	}
	return c
}
