package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"heed/rules"
)

// PaceCount counts the waits for a turn at one host; Host is Other for those
// beyond the bound.
type PaceCount struct {
	Host string `json:"host"`
	Waits
	Refused uint64        `json:"refused"` // because their turn was too far off
	Left    uint64        `json:"left"`    // before their turn came
	Owed    time.Duration `json:"owed_ns"` // the longest remaining wait of those that left
}

// paceLocked counts e's wait for its turn.
func (t *Tally) paceLocked(e *Entry) {
	if e.TurnWaited < waitedFrom && e.Owed == 0 {
		return
	}
	c := t.turns.at(e.countedHost(), Other, maxHosts, strings.Clone)
	if e.TurnWaited >= waitedFrom {
		c.Requests++
		c.Total += e.TurnWaited
		c.Longest = max(c.Longest, e.TurnWaited)
	}
	switch {
	case e.Decision.Reason == rules.ReasonPaced:
		c.Refused++
	case e.Decision.Reason == rules.ReasonClientLeft:
		c.Left++
		c.Owed = max(c.Owed, e.Owed)
	}
}

// pacedLocked returns the counts, the longest total wait first.
func (t *Tally) pacedLocked() []PaceCount {
	all := make([]PaceCount, 0, len(t.turns))
	for host, c := range t.turns {
		c.Host = host
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b PaceCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Host, b.Host))
	})
	return all
}
