package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"heed/rules"
)

// PaceCount is what taking turns cost at one host; Host is Other for those beyond
// the bound.
type PaceCount struct {
	Host string `json:"host"`
	Waits
	Refused uint64        `json:"refused"` // since their turn was too far off
	Left    uint64        `json:"left"`    // before their turn came
	Owed    time.Duration `json:"owed_ns"` // by the one of those that left earliest before its turn
}

// turnLocked counts what e's turn cost.
func (t *Tally) turnLocked(e *Entry) {
	if e.Waited < waitedFrom && e.Owed == 0 {
		return
	}
	c := t.turnsLocked(e.countedHost())
	if e.Waited >= waitedFrom {
		c.Requests++
		c.Total += e.Waited
		c.Longest = max(c.Longest, e.Waited)
	}
	switch {
	case e.Decision.Reason == rules.ReasonPaced:
		c.Refused++
	case e.Decision.Reason == rules.ReasonLeft:
		c.Left++
		c.Owed = max(c.Owed, e.Owed)
	}
}

func (t *Tally) turnsLocked(host string) *PaceCount {
	if t.turns == nil {
		t.turns = map[string]*PaceCount{}
	}
	if t.turns[host] == nil && len(t.turns) >= maxHosts {
		host = Other
	}
	c := t.turns[host]
	if c == nil {
		c = &PaceCount{Host: strings.Clone(host)}
		t.turns[c.Host] = c
	}
	return c
}

// pacedLocked returns the counts, those first that cost most.
func (t *Tally) pacedLocked() []PaceCount {
	all := make([]PaceCount, 0, len(t.turns))
	for _, c := range t.turns {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b PaceCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Host, b.Host))
	})
	return all
}
