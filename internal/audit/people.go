package audit

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"heed/rules"
)

// People stands in counts for the hosts that exempt clients ask for: where
// people go is nobody's business.
const People = "(people)"

// maxPeople bounds how many exempt clients are counted by their address.
const maxPeople = 10_000

// exempt reports whether e is of people, who are not judged.
func (e *Entry) exempt() bool { return e.Decision.Reason == rules.ReasonExempt }

// countedHost is the host that e counts for.
func (e *Entry) countedHost() string {
	if e.exempt() {
		return People
	}
	return e.Host
}

// person is an exempt client: the entry that fits it, and its address.
type person struct{ name, address string }

// people counts the requests of exempt clients, a day at a time.
type people struct {
	day    string // UTC
	counts map[person]uint64
}

// count adds e.
func (p *people) count(e *Entry) {
	k := person{e.ClientName, e.Client}
	if address, _, err := net.SplitHostPort(e.Client); err == nil {
		k.address = address
	}
	if p.counts == nil {
		p.counts, p.day = map[person]uint64{}, e.Time.UTC().Format(time.DateOnly)
	}
	if _, known := p.counts[k]; !known && len(p.counts) >= maxPeople {
		k = person{Other, Other}
	} else if !known {
		k = person{strings.Clone(k.name), strings.Clone(k.address)}
	}
	p.counts[k]++
}

// peopleLocked logs a line for each exempt client of a day that is over at now,
// and forgets the day.
func (l *Log) peopleLocked(now time.Time) {
	if l.people.counts == nil || l.people.day == now.UTC().Format(time.DateOnly) {
		return
	}
	all := make([]person, 0, len(l.people.counts))
	for k := range l.people.counts {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b person) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.address, b.address))
	})
	ctx := context.Background()
	for _, k := range all {
		r := slog.NewRecord(now, slog.LevelInfo, "exempt", 0)
		r.AddAttrs(slog.String("client", k.address), slog.String("client_name", k.name), slog.String("day", l.people.day), slog.Uint64("requests", l.people.counts[k]))
		if !l.handler.Enabled(ctx, r.Level) {
			break
		}
		if err := l.handler.Handle(ctx, r); err != nil {
			l.failed.Store(&err)
		}
	}
	l.people = people{}
}
