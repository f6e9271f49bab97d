// Package retryafter reads the field in which an answer asks for a wait.
package retryafter

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"heed/rules/clock"
)

// fields are the names of the field: that of RFC 9110 §10.2.3, and names that some sites use
// in its place, with the unit of their numbers. They count when those before them are missing.
var fields = []struct {
	name string
	unit time.Duration
}{{"Retry-After", time.Second}, {"X-Retry-After", time.Second}, {"Retry-After-Ms", time.Millisecond}}

// Parse returns how long after now an answer's Retry-After (RFC 9110 §10.2.3)
// asks for: a number of seconds, or a date, which is read by the clock that the
// answer's own Date shows. Forms that the standard does not have are read where their meaning
// is obvious ("2 minutes", "PT30S", a time of Unix, a date of ISO 8601), and of several values
// the longest wait counts. It is negative for a date that has passed; ok is false
// when the field is missing or cannot be understood.
func Parse(h http.Header, now time.Time) (d time.Duration, ok bool) {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	for _, f := range fields {
		for _, value := range h[f.name] {
			if wait, is := parse(strings.TrimSpace(value), f.unit, now); is && (!ok || wait > d) {
				d, ok = wait, true
			}
		}
		if len(h[f.name]) > 0 {
			break
		}
	}
	return d, ok
}

// Unread returns the value of a Retry-After that Parse cannot understand; empty when it is
// understood or missing. It is the site's: hostile until escaped.
func Unread(h http.Header) string {
	if _, ok := Parse(h, time.Now()); ok {
		return ""
	}
	for _, f := range fields {
		if value := strings.TrimSpace(strings.Join(h[f.name], ", ")); value != "" {
			return value[:min(len(value), maxUnread)]
		}
	}
	return ""
}

// maxUnread is how many octets of a value are returned.
const maxUnread = 100

// unixTimes are between which numbers a number of seconds is a time of Unix: a wait of thirty
// years is not meant. Above it the unit is the millisecond.
const minUnix, maxUnix = 1e9, 1e11

// parse reads one value.
func parse(value string, unit time.Duration, now time.Time) (time.Duration, bool) {
	if value != "" && strings.Trim(value, "0123456789") == "" {
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil, n > maxUnix*1000: // too long for a number: longer than anything
			return clock.Most, true
		case n >= maxUnix:
			return time.UnixMilli(n).Sub(now), true
		case n >= minUnix:
			return time.Unix(n, 0).Sub(now), true
		}
		return time.Duration(n) * unit, true // at most 32 years
	}
	if at, err := http.ParseTime(value); err == nil {
		return at.Sub(now), true
	}
	if at, ok := clock.Date(value); ok {
		return at.Sub(now), true
	}
	d, _, ok := clock.Seconds(value)
	return d, ok
}
