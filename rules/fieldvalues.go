package rules

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The readers of field values. Each reports false for fields of another kind
// and for values that it cannot understand, which have no effect.

// maxDelay is the longest delay; a longer one counts as this.
const maxDelay = 365 * 24 * time.Hour

// Delay returns the time between two requests that a Crawl-delay or a
// Cache-delay requires: a number of seconds, with a decimal point or comma.
func (f Field) Delay() (d time.Duration, ok bool) {
	if f.Kind != CrawlDelay && f.Kind != CacheDelay {
		return 0, false
	}
	number := strings.Replace(f.Value, ",", ".", 1)
	if number == "" || number[0] == 'e' || number[0] == 'E' || strings.Trim(number, "0123456789.eE") != "" {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return time.Duration(min(seconds, maxDelay.Seconds()) * float64(time.Second)), true
}

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

// Rate returns the value of a Request-rate: "1/10s", "30/1m 0800-1845".
func (f Field) Rate() (r Rate, ok bool) {
	words := strings.Fields(f.Value)
	if f.Kind != RequestRate || len(words) == 0 || len(words) > 2 {
		return Rate{}, false
	}
	documents, per, ok := strings.Cut(words[0], "/")
	if !ok || per == "" {
		return Rate{}, false
	}
	unit := time.Second
	switch per[len(per)-1] {
	case 's', 'm', 'h':
		unit = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour}[per[len(per)-1]]
		per = per[:len(per)-1]
	}
	n, ok1 := countOf(documents)
	t, ok2 := countOf(per)
	if !ok1 || !ok2 {
		return Rate{}, false
	}
	r = Rate{Documents: n, Per: min(time.Duration(t), maxDelay/unit) * unit}
	if len(words) == 2 {
		r.Window, ok = window(words[1])
	}
	return r, ok
}

// countOf reads a number from 1 on; one too long to be meant is the largest.
func countOf(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return int(n), n > 0
}

// Window returns the value of a Visit-time: "0600-0845".
func (f Field) Window() (w Window, ok bool) {
	if f.Kind != VisitTime {
		return Window{}, false
	}
	return window(f.Value)
}

func window(s string) (w Window, ok bool) {
	from, to, ok := strings.Cut(strings.ReplaceAll(s, ":", ""), "-")
	if !ok {
		return Window{}, false
	}
	w.From, ok = minuteOf(strings.TrimSpace(from))
	if ok {
		w.To, ok = minuteOf(strings.TrimSpace(to))
	}
	if !ok {
		return Window{}, false
	}
	return w, true
}

// minuteOf reads four digits of a clock; 2400 is midnight, too.
func minuteOf(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	if len(s) != 4 || err != nil || n > 2400 || n%100 > 59 {
		return 0, false
	}
	return int(n/100*60+n%100) % (24 * 60), true
}

// Understood reports whether the field's value can be understood; otherwise the line has no
// effect. What a usage signal says is not a matter of this package.
func (f Field) Understood() (ok bool) {
	switch f.Kind {
	case CrawlDelay, CacheDelay:
		_, ok = f.Delay()
	case RequestRate:
		_, ok = f.Rate()
	case VisitTime:
		_, ok = f.Window()
	case Sitemap: // an absolute URL
		u, err := url.Parse(f.Value)
		ok = err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
	case CleanParam: // parameters with "&" between them, and perhaps the beginning of a path
		words := strings.Fields(f.Value)
		ok = (len(words) == 1 || len(words) == 2) && !slices.Contains(strings.Split(words[0], "&"), "")
	default:
		ok = true
	}
	return ok
}
