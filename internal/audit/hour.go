package audit

import (
	"cmp"
	"slices"
	"time"

	"heed/rules"
)

// span is a time that ends now, in slots.
type span int

const (
	minute span = iota
	hour
	day
	spans = iota
)

// slots are the width of the slots of each span, and their number.
var slots = [spans]struct {
	width time.Duration
	count int
}{
	minute: {5 * time.Second, 12},
	hour:   {time.Minute, 60},
	day:    {15 * time.Minute, 96},
}

// ring holds the counts of the slots of a span. A slot is cleared when a later one takes its
// place. The zero value is empty.
type ring struct {
	number []int64 // of each slot since 1970; 0: unused
	counts []Counts
}

// slot returns the number of the slot of s that t lies in, and its index.
func (s span) slot(t time.Time) (number int64, at int) {
	number = t.UnixNano() / int64(slots[s].width)
	n := int64(slots[s].count)
	return number, int(((number % n) + n) % n)
}

// at returns the counts of the slot that t lies in.
func (r *ring) at(s span, t time.Time) *Counts {
	if r.number == nil {
		r.number, r.counts = make([]int64, slots[s].count), make([]Counts, slots[s].count)
	}
	n, i := s.slot(t)
	if r.number[i] != n {
		r.number[i], r.counts[i] = n, Counts{}
	}
	return &r.counts[i]
}

// past returns the counts of the slot that t lies in, or unused ones when the ring no longer
// has that slot.
func (r *ring) past(s span, t time.Time) *Counts {
	if n, i := s.slot(t); r.number != nil && r.number[i] == n {
		return &r.counts[i]
	}
	return &Counts{}
}

// sum returns the counts of the last slots of the span, the last one now's; all of them when
// there are no more.
func (r *ring) sum(s span, now time.Time, most int) (sum Counts) {
	last, _ := s.slot(now)
	for i, n := range r.number {
		if n <= last && n > last-int64(min(most, slots[s].count)) {
			sum.plus(&r.counts[i])
		}
	}
	return sum
}

// Minute returns the counts of the sixty seconds before now, of which up to five may be
// missing.
func (t *Tally) Minute(now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rings[minute].sum(minute, now, slots[minute].count)
}

// FiveMinutes returns the counts of the five minutes that end with now's minute.
func (t *Tally) FiveMinutes(now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rings[hour].sum(hour, now, 5)
}

// Hour returns the counts of the sixty minutes that end with now's minute.
func (t *Tally) Hour(now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rings[hour].sum(hour, now, slots[hour].count)
}

// Period is the counts of a quarter of an hour.
type Period struct {
	From time.Time // in UTC
	Counts
}

// PeriodLength is the length of a Period.
var PeriodLength = slots[day].width

// Day returns the 96 periods that end with now's, the first one first.
func (t *Tally) Day(now time.Time) []Period {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Period, slots[day].count)
	now = now.Truncate(PeriodLength).UTC()
	for i := range all {
		all[i].From = now.Add(time.Duration(i+1-len(all)) * PeriodLength)
		all[i].Counts = *t.rings[day].past(day, all[i].From)
	}
	return all
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
