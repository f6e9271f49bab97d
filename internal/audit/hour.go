package audit

import (
	"cmp"
	"slices"
	"time"

	"heed/rules"
)

// hour counts by minute, for an hour, in place: a slot is emptied when a later
// minute claims it.
type hour struct {
	minute [60]int64 // unix time in minutes that the slot counts; 0: none
	counts [60]Counts
}

// at returns the slot of the minute that t lies in.
func (h *hour) at(t time.Time) *Counts {
	m := t.Unix() / 60
	i := ((m % 60) + 60) % 60
	if h.minute[i] != m {
		h.minute[i], h.counts[i] = m, Counts{}
	}
	return &h.counts[i]
}

// Hour returns the counts of the sixty minutes that end with now's minute.
func (t *Tally) Hour(now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum Counts
	last := now.Unix() / 60
	for i := range t.hour.minute {
		if m := t.hour.minute[i]; m <= last && m > last-60 {
			sum.plus(&t.hour.counts[i])
		}
	}
	return sum
}

// maxTroubles is how many origins are remembered as troubled.
const maxTroubles = 100

// Trouble is an origin whose robots.txt could not be had when it was last
// asked about, so that it is refused or judged by an old copy. A site that
// cannot be reached at all is not listed: it would fail without heed as well.
type Trouble struct {
	Origin string    `json:"origin"`
	State  string    `json:"state"` // "unreachable" or "stale"
	Err    string    `json:"error"`
	Seen   time.Time `json:"seen"`     // when a request last met it
	Retry  time.Time `json:"retry_at"` // when the file is asked for again; zero if not known
}

type troubles map[rules.Origin]*trouble

type trouble struct {
	source rules.Source
	seen   time.Time
}

// see remembers or forgets e's origin as its policy says.
func (t *troubles) see(e *Entry) {
	if e.Policy == nil {
		return
	}
	s := e.Policy.Source()
	known := (*t)[s.Origin]
	switch ill := s.Stale || s.State == rules.Unreachable && !s.NoConnection; {
	case !ill && known != nil:
		delete(*t, s.Origin)
	case ill && known != nil:
		known.source, known.seen = s, e.Time
	case ill:
		t.remember(s, e.Time)
	}
}

// remember adds an origin, when there is room for it.
func (t *troubles) remember(s rules.Source, now time.Time) {
	if *t == nil {
		*t = troubles{}
	}
	if len(*t) >= maxTroubles {
		t.forget(now)
	}
	if len(*t) < maxTroubles {
		(*t)[s.Origin] = &trouble{s, now}
	}
}

// forget drops the origins that nobody asked about in the hour before now.
func (t troubles) forget(now time.Time) {
	for o, k := range t {
		if now.Sub(k.seen) > time.Hour {
			delete(t, o)
		}
	}
}

// Troubles returns the origins in trouble that a request met within the hour
// before now, in the order of their names.
func (t *Tally) Troubles(now time.Time) []Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble.forget(now)
	list := make([]Trouble, 0, len(t.trouble))
	for o, k := range t.trouble {
		x := Trouble{Origin: o.String(), State: "unreachable", Seen: k.seen, Retry: k.source.RetryAt}
		if k.source.Stale {
			x.State = "stale"
		}
		if k.source.Err != nil {
			x.Err = clip(k.source.Err.Error())
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b Trouble) int { return cmp.Compare(a.Origin, b.Origin) })
	return list
}
