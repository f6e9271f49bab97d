package audit

import (
	"cmp"
	"slices"
	"time"

	"heed/rules"
)

// hour is a ring of counts, one slot per minute. A slot is cleared when a later
// minute uses it.
type hour struct {
	minute [60]int64 // unix time of the slot in minutes; 0: unused
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

// past returns the slot of the minute that t lies in, or an unused one when the ring
// no longer has that minute.
func (h *hour) past(t time.Time) *Counts {
	m := t.Unix() / 60
	if i := ((m % 60) + 60) % 60; h.minute[i] == m {
		return &h.counts[i]
	}
	return &Counts{}
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

// maxFailing bounds the origins listed by Troubles.
const maxFailing = 100

// Trouble is an origin whose robots.txt could not be fetched when a request
// last needed it, so that requests are refused or judged by a stale copy. A site
// that is unreachable is not listed: it would fail without heed as well.
type Trouble struct {
	Origin string    `json:"origin"`
	State  string    `json:"state"` // "unreachable" or "stale"
	Err    string    `json:"error"`
	Seen   time.Time `json:"seen"`     // when a request last needed the file
	Retry  time.Time `json:"retry_at"` // when the file is fetched again; zero: not known
}

// failingOrigins are the origins whose robots.txt could not be fetched.
type failingOrigins map[rules.Origin]*failingOrigin

type failingOrigin struct {
	source rules.Source
	seen   time.Time
}

// update adds or removes e's origin, depending on its policy. It adds none beyond
// maxFailing.
func (t *failingOrigins) update(e *Entry) {
	if e.Policy == nil {
		return
	}
	s := e.Policy.Source()
	known := (*t)[s.Origin]
	switch failing := s.Stale || s.State == rules.Unreachable && !s.NoConnection; {
	case !failing && known != nil:
		delete(*t, s.Origin)
	case failing && known != nil:
		known.source, known.seen = s, e.Time
	case failing:
		if *t == nil {
			*t = failingOrigins{}
		}
		if len(*t) >= maxFailing {
			t.expire(e.Time)
		}
		if len(*t) < maxFailing {
			(*t)[s.Origin] = &failingOrigin{s, e.Time}
		}
	}
}

// expire removes the origins that no request needed in the hour before now.
func (t failingOrigins) expire(now time.Time) {
	for o, k := range t {
		if now.Sub(k.seen) > time.Hour {
			delete(t, o)
		}
	}
}

// Troubles returns the origins whose robots.txt could not be fetched and that a
// request needed in the hour before now, ordered by name.
func (t *Tally) Troubles(now time.Time) []Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failing.expire(now)
	list := make([]Trouble, 0, len(t.failing))
	for o, k := range t.failing {
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
