package dashboard

import (
	"cmp"
	"fmt"
	"slices"

	"heed/internal/audit/store"
	"heed/internal/reason"
	"heed/rules"
)

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
