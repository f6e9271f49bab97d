package dashboard

import (
	"cmp"
	"fmt"
	"heed/internal/audit/store"
	"heed/internal/reason"
	"heed/rules"
	"net/http"
	"slices"
)

// basesRead is how many bases are read together, since requests of one time have bases with
// near ids.
const basesRead = 256

// basis returns a basis of the record.
func (d *record) basis(r *store.Reader, id int64) (basis, error) {
	d.names.Lock()
	defer d.names.Unlock()
	if b, ok := d.names.bases[id]; ok {
		return b, nil
	}
	if d.names.bases == nil || len(d.names.bases) > maxKept {
		d.names.bases = map[int64]basis{}
	}
	from := id - id%basesRead
	err := r.Bases(from, from+basesRead, func(b *store.Basis) {
		d.names.bases[b.ID] = basis{classOf(&b.Verdict, false), b.Verdict}
	})
	b, ok := d.names.bases[id]
	if err == nil && !ok {
		err = &shownError{http.StatusInternalServerError, "The record lacks a row that it refers to.\nSee heed audit verify."}
	}
	return b, err
}

// client returns a client of the record.
func (d *record) client(r *store.Reader, id int64) (*store.Client, error) {
	d.names.Lock()
	defer d.names.Unlock()
	if c := d.names.clients[id]; c != nil {
		return c, nil
	}
	if d.names.clients == nil || len(d.names.clients) > maxKept {
		d.names.clients = map[int64]*store.Client{}
	}
	c, err := r.Client(id)
	if err == nil {
		d.names.clients[id] = c
	}
	return c, err
}

// verdicts are the verdicts by their names in the record.
var verdicts = map[string]rules.Verdict{
	rules.Allow.String(): rules.Allow, rules.Refuse.String(): rules.Refuse, rules.WouldRefuse.String(): rules.WouldRefuse,
}

// classOf returns the class of a recorded verdict; failed is as for reason.ClassOf.
func classOf(v *store.Verdict, failed bool) reason.Class {
	return reason.ClassOf(verdicts[v.Verdict], rules.Reason(v.Reason), failed)
}

// top yields the mostListed keys with the most requests, the largest number first.
func top[K comparable](all map[K]*reason.Counts) func(func(K, *reason.Counts) bool) {
	type entry struct {
		key K
		n   int64
	}
	before := func(a, b entry) int {
		if c := cmp.Compare(b.n, a.n); c != 0 {
			return c
		}
		return cmp.Compare(fmt.Sprint(a.key), fmt.Sprint(b.key)) // the same ones each time
	}
	var best []entry
	for k, c := range all {
		e := entry{k, c.Sum()}
		if len(best) == mostListed && before(e, best[mostListed-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, e, before)
		best = slices.Insert(best, at, e)
		best = best[:min(len(best), mostListed)]
	}
	return func(yield func(K, *reason.Counts) bool) {
		for _, e := range best {
			if !yield(e.key, all[e.key]) {
				return
			}
		}
	}
}
