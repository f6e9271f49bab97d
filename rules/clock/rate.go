package clock

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"heed/internal/base/memo"
)

// Rate is a number of documents that may be fetched in a time (Conner 1996).
type Rate struct {
	Documents int
	Per       time.Duration
	// Window is when the rate applies; its zero value is all day.
	Window Window
}

// Delay returns the time between two requests that keeps the rate.
func (r Rate) Delay() time.Duration { return r.Per / time.Duration(max(1, r.Documents)) }

// Window is a time of the day in UTC, from the minute From to the minute
// before To, both counted from midnight. It may cross midnight. The zero
// value is all day.
type Window struct{ From, To int }

// Contains reports whether t is in the window.
func (w Window) Contains(t time.Time) bool {
	t = t.UTC()
	minute := t.Hour()*60 + t.Minute()
	if w.From < w.To {
		return w.From <= minute && minute < w.To
	}
	return w.From == w.To || minute >= w.From || minute < w.To
}

// Next returns when the window begins after t.
func (w Window) Next(t time.Time) time.Time {
	utc := t.UTC()
	day := time.Date(utc.Year(), utc.Month(), utc.Day(), 0, 0, 0, 0, time.UTC)
	begin := day.Add(time.Duration(w.From) * time.Minute)
	if begin.Before(utc) {
		begin = begin.Add(24 * time.Hour)
	}
	return t.Add(begin.Sub(utc))
}

// RateOf reads a Request-rate (Conner 1996): "1/10s", "30/1m 0800-1845". Other forms are read
// as well: "1 / 10 sec", "1 per minute", "60/h", "0.5/1s". Hours that cannot be read count as
// all day.
func RateOf(s string) (r Rate, exact, ok bool) {
	if m := strictRate().FindStringSubmatch(s); m != nil {
		n, ok1 := countOf(m[1])
		t, ok2 := countOf(m[2])
		unit := cmp.Or(units[strings.ToLower(m[3])], time.Second)
		r, exact = Rate{Documents: n, Per: min(time.Duration(t), Most/unit) * unit}, true
		if m[4] != "" {
			r.Window, exact, ok = Hours(strings.TrimSpace(m[4]))
			exact = exact && ok
		}
		return r, exact && ok1 && ok2, ok1 && ok2
	}
	m := looseRate().FindStringSubmatch(plain(s))
	if m == nil || len(s) > maxText || m[2]+m[3] == "" {
		return Rate{}, false, false
	}
	documents, per := numberOf(m[1]), numberOf(cmp.Or(m[2], "1"))
	unit, known := units[cmp.Or(m[3], "s")]
	if !known {
		return Rate{}, false, false
	}
	r = Rate{Documents: int(min(documents, 1<<30)), Per: duration(per, unit)}
	if whole := float64(r.Documents); whole != documents { // "0.5/1s"
		r = Rate{Documents: 1, Per: duration(per/documents, unit)}
	}
	r.Window, _, _ = Hours(m[4])
	return r, false, documents > 0 && r.Per > 0
}

var (
	strictRate = memo.Expression(`^\s*(\d+)/(\d+)([smh]?)(\s+\S+)?\s*$`)
	looseRate  = memo.Expression(`^(\d+(?:[.,]\d+)?)\s*(?:[\p{L} ]*/|[\p{L} ]*\b(?:per|every|each|in|pro|par|por)\b)\s*(\d+(?:[.,]\d+)?)?\s*(\p{L}*)[\s,;(@]*(.*)$`)
)

// countOf reads a number from 1 on; one too long to be meant is the largest.
func countOf(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return int(n), n > 0
}

// Hours reads a time of the day in UTC, such as a Visit-time: "0600-0845", from one minute to
// the minute before another, both counted from midnight. Other forms are read as well:
// "6:00 - 8:45", "6-8", "8am to 6pm", "0600–0845 UTC".
func Hours(s string) (w Window, exact, ok bool) {
	exact = strictHours().MatchString(s)
	m := looseHours().FindStringSubmatch(plain(s))
	if m == nil || len(s) > maxText {
		return Window{}, false, false
	}
	from, ok1 := minuteOf(m[1], m[2])
	to, ok2 := minuteOf(m[3], m[4])
	if !ok1 || !ok2 {
		return Window{}, false, false
	}
	return Window{from, to}, exact, true
}

var (
	strictHours = memo.Expression(`^\d\d:?\d\d\s*-\s*\d\d:?\d\d$`)
	looseHours  = memo.Expression(`^(?:from )?(\d{1,2}[:.h]?\d{0,2}h?|\d{1,2}[:.]\d{2}[:.]\d{2}) ?(am|pm)?(?: ?(?:utc|gmt|z))? ?(?:-+|to|until|till|bis|\.\.) ?(\d{1,2}[:.h]?\d{0,2}h?|\d{1,2}[:.]\d{2}[:.]\d{2}) ?(am|pm)?(?: ?(?:utc|gmt|z)| h)?$`)
)

// minuteOf reads a time on a clock; 24:00 is midnight, too. half is am, pm or empty.
func minuteOf(s, half string) (int, bool) {
	digits := strings.NewReplacer(":", "", ".", "", "h", "").Replace(s)
	switch len(digits) {
	case 1, 2:
		digits += "00"
	case 6:
		digits = digits[:4]
	}
	n, err := strconv.Atoi(digits)
	hour, minute := n/100, n%100
	switch {
	case err != nil, minute > 59, hour > 24, hour == 24 && minute > 0, half != "" && (hour < 1 || hour > 12):
		return 0, false
	case half == "am":
		hour %= 12
	case half == "pm":
		hour = hour%12 + 12
	}
	return (hour*60 + minute) % (24 * 60), true
}
