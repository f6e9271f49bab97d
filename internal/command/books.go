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
// so is known: nobody is asked who it is. What it asks for stands before all else.
func (b *books) ofRun(r terms.Run) func() *terms.Book {
	type pair struct{ base, own *terms.Book }
	var last atomic.Pointer[pair]
	return func() *terms.Book {
		base := b.now()
		p := last.Load()
		if p == nil || p.base != base {
			p = &pair{base, base.ForRun(r)}
			last.Store(p)
		}
		return p.own
	}
}

// runName is the name of the client that a run declares itself to be.
const runName = "run"

// terms returns what the run asks for itself.
func (j *join) terms() (terms.Run, error) {
	r := terms.Run{Observe: j.Observe, Reason: serviceOfRun}
	for _, text := range j.Services {
		p, err := terms.ParseHostPattern(text)
		if err != nil {
			return r, err
		}
		r.Services = append(r.Services, p)
	}
	if j.Agent == "" && j.UserAgent == "" {
		return r, nil
	}
	r.Client = &terms.Client{Name: runName, SendUserAgent: j.UserAgent}
	if j.Agent != "" {
		r.Client.Agent = rules.Declare(j.Agent)
	}
	return r, nil
}

// serviceOfRun is the reason that the record quotes for `heed run --service`.
const serviceOfRun = "declared by heed run --service"
