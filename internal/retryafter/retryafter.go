// Package retryafter reads the field in which an answer asks for a wait.
package retryafter

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Parse returns how long after now an answer's Retry-After (RFC 9110 §10.2.3)
// asks for: a number of seconds, or a date, which is read by the clock that the
// answer's own Date shows. It is negative for a date that has passed; ok is false
// when the field is missing or invalid.
func Parse(h http.Header, now time.Time) (d time.Duration, ok bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 32)
		if err != nil { // too long for a number: longer than anything
			seconds = 1<<31 - 1
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return at.Sub(now), true
}
