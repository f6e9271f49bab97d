package counts

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/rules"
)

// Counts are requests by result. Requests is the sum of Classes, and of the next
// four: there a request of which nothing was seen that could be judged counts as
// NotJudged whatever its verdict.
type Counts struct {
	Requests    uint64 `json:"requests"`
	Allowed     uint64 `json:"allowed"`
	Refused     uint64 `json:"refused"`
	WouldRefuse uint64 `json:"would_refuse"`
	NotJudged   uint64 `json:"not_judged"`

	// SiteRefused are the allowed requests that the site refused.
	SiteRefused uint64 `json:"site_refused"`

	// ByPath and ByHost are the judged requests by how they were judged.
	ByPath uint64 `json:"by_path"`
	ByHost uint64 `json:"by_host"`

	// Classes are the requests by class, and WouldBe those that were only observed
	// by the class of their refusal; Classes has these as allowed or failed.
	Classes reason.Counts `json:"classes"`
	WouldBe reason.Counts `json:"would_be"`
}

// add counts q.
func (c *Counts) add(q *request) {
	c.Requests++
	c.Classes[q.class]++
	if q.observed {
		c.WouldBe[q.wouldBe]++
	}
	if q.refused {
		c.SiteRefused++
	}
	switch q.judged {
	case audit.NotJudged:
		c.NotJudged++
		return
	case audit.ByPath:
		c.ByPath++
	case audit.ByHost:
		c.ByHost++
	}
	switch q.decision.Verdict {
	case rules.Allow:
		c.Allowed++
	case rules.WouldRefuse:
		c.WouldRefuse++
	default:
		c.Refused++
	}
}

// plus adds o to c.
func (c *Counts) plus(o *Counts) {
	c.Requests += o.Requests
	c.Allowed += o.Allowed
	c.Refused += o.Refused
	c.WouldRefuse += o.WouldRefuse
	c.NotJudged += o.NotJudged
	c.ByPath += o.ByPath
	c.ByHost += o.ByHost
	c.SiteRefused += o.SiteRefused
	c.Classes.Add(&o.Classes)
	c.WouldBe.Add(&o.WouldBe)
}

// Coverage returns how many requests were judged, and by which part of them.
func (c *Counts) Coverage() string {
	var judged []string
	if c.ByPath > 0 {
		judged = append(judged, c.Share(c.ByPath)+" by their path")
	}
	if c.ByHost > 0 {
		judged = append(judged, c.Share(c.ByHost)+" by their host alone")
	}
	text := cmp.Or(strings.Join(judged, ", "), "none")
	if c.NotJudged > 0 {
		text += "; " + c.Share(c.NotJudged) + " could not be judged at all"
	}
	return text
}

// Share returns n of the requests with their percentage.
func (c *Counts) Share(n uint64) string {
	return fmt.Sprintf("%d (%.1f%%)", n, 100*float64(n)/float64(max(1, c.Requests)))
}

// ring holds a T for each of the last periods of one length. A T is cleared when that of a
// later period takes its place.
type ring[T any] struct {
	length time.Duration
	slots  []ringSlot[T]
}

type ringSlot[T any] struct {
	number int64 // of the period since 1970; 0: unused
	of     T
}

func newRing[T any](length time.Duration, count int) ring[T] {
	return ring[T]{length, make([]ringSlot[T], count)}
}

// slot returns the number of the period that t lies in, and its slot, which may hold another
// one still.
func (r *ring[T]) slot(t time.Time) (number int64, s *ringSlot[T]) {
	number = t.UnixNano() / int64(r.length)
	n := int64(len(r.slots))
	return number, &r.slots[((number%n)+n)%n]
}

// at returns the T of the period that t lies in; nil when that of a later one has its place.
func (r *ring[T]) at(t time.Time) *T {
	number, s := r.slot(t)
	switch {
	case s.number > number:
		return nil
	case s.number < number:
		*s = ringSlot[T]{number: number}
	}
	return &s.of
}

// dropAfter clears the periods after that of now.
func (r *ring[T]) dropAfter(now time.Time) {
	last, _ := r.slot(now)
	for i := range r.slots {
		if r.slots[i].number > last {
			r.slots[i] = ringSlot[T]{}
		}
	}
}

// each calls f with the T of the last periods, the last one that of now: most of them, or all
// that there are.
func (r *ring[T]) each(now time.Time, most int, f func(*T)) {
	last, _ := r.slot(now)
	for i := range r.slots {
		if s := &r.slots[i]; s.number <= last && s.number > last-int64(min(most, len(r.slots))) {
			f(&s.of)
		}
	}
}

// A span is a time that ends now, in periods.
const (
	minute = iota
	hour
	day
	spans
)

// spanOf are the length of the periods of each span, and their number.
var spanOf = [spans]struct {
	length time.Duration
	count  int
}{
	minute: {5 * time.Second, 12},
	hour:   {time.Minute, 60},
	day:    {PeriodLength, 96},
}

// last returns the counts of the last periods of a span, the last one now's.
func (c *Counter) last(span, most int, now time.Time) (sum Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.periods[span].each(now, most, sum.plus)
	return sum
}

// Minute returns the counts of the sixty seconds before now, of which up to five may be
// missing.
func (c *Counter) Minute(now time.Time) Counts { return c.last(minute, spanOf[minute].count, now) }

// FiveMinutes returns the counts of the five minutes that end with now's minute.
func (c *Counter) FiveMinutes(now time.Time) Counts { return c.last(hour, 5, now) }

// Hour returns the counts of the sixty minutes that end with now's minute.
func (c *Counter) Hour(now time.Time) Counts { return c.last(hour, spanOf[hour].count, now) }

// Period is the counts of a quarter of an hour.
type Period struct {
	From time.Time // in UTC
	Counts
}

// PeriodLength is the length of a Period.
const PeriodLength = 15 * time.Minute

// Day returns the 96 periods that end with now's, the first one first.
func (c *Counter) Day(now time.Time) []Period {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Period, spanOf[day].count)
	now = now.Truncate(PeriodLength).UTC()
	for i := range all {
		all[i].From = now.Add(time.Duration(i+1-len(all)) * PeriodLength)
		if number, s := c.periods[day].slot(all[i].From); s.number == number {
			all[i].Counts = s.of
		}
	}
	return all
}
