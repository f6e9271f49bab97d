package audit

import (
	"cmp"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"heed/internal/memo"
)

// People replaces, in counts, the hosts that exempt clients request: heed does
// not record which sites people visit.
const People = "(people)"

// Other replaces, in counts, all names beyond a bound.
const Other = "(others)"

// maxPeople bounds how many exempt clients are counted by their address.
const maxPeople = 10_000

// person is an exempt client: the name of its [[client]] and its address.
type person struct{ name, address string }

func (p person) clone() person { return person{strings.Clone(p.name), strings.Clone(p.address)} }

// people counts the requests of exempt clients on one day.
type people struct {
	day    string // UTC
	counts memo.Bounded[person, uint64]
}

// count adds e.
func (p *people) count(e *Entry) {
	k := person{e.ClientName, e.Client}
	if address, _, err := net.SplitHostPort(e.Client); err == nil {
		k.address = address
	}
	if p.counts == nil {
		p.day = e.Time.UTC().Format(time.DateOnly)
	}
	*p.counts.At(k, person{Other, Other}, maxPeople, person.clone)++
}

// logExemptLocked logs a line for each exempt client and clears the counts when
// their day is over at now. The lines have the present time: at the end of heed now is
// tomorrow.
func (l *Log) logExemptLocked(now time.Time) {
	if l.people.counts == nil || l.people.day == now.UTC().Format(time.DateOnly) {
		return
	}
	all := slices.SortedFunc(maps.Keys(l.people.counts), func(a, b person) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.address, b.address))
	})
	for _, k := range all {
		l.log(time.Now(), slog.LevelInfo, "exempt", slog.String("client", k.address), slog.String("client_name", k.name),
			slog.String("day", l.people.day), slog.Uint64("requests", *l.people.counts[k]))
	}
	l.people = people{}
}
