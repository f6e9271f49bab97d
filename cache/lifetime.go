package cache

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/internal/pace/retryafter"
)

// freshness is the lifetime that the header of an answer states.
type freshness struct {
	lifetime time.Duration // clamped to minLifetime and maxLifetime
	grace    time.Duration // see graceOf
	stated   bool          // by the answer; false: the default
	noStore  bool
}

// freshnessOf returns the lifetime of an answer received at now, for a shared cache: s-maxage
// before max-age before Expires (RFC 9111 §4.2.1), less its age on arrival. Invalid values
// count as expired; of contradictory ones the shortest is used.
func freshnessOf(h http.Header, now time.Time) freshness {
	cc := cacheControl(h)
	f := freshness{lifetime: defaultLifetime, noStore: cc.noStore}
	if d, ok := lifetimeOf(h, cc, now); ok {
		f.stated, f.lifetime = true, min(max(d, minLifetime), maxLifetime)
	}
	f.grace = cc.grace(maxLifetime - f.lifetime)
	return f
}

// lifetimeOf returns the stated lifetime, without minLifetime and maxLifetime; ok is false
// when h states none.
func lifetimeOf(h http.Header, cc directives, now time.Time) (d time.Duration, ok bool) {
	switch {
	case cc.noStore || cc.noCache:
		return 0, true
	case cc.sMaxAge >= 0:
		d = cc.sMaxAge
	case cc.maxAge >= 0:
		d = cc.maxAge
	case h.Get("Expires") != "":
		d = untilExpires(h, now)
	default:
		return 0, false
	}
	if age, err := strconv.ParseUint(h.Get("Age"), 10, 31); err == nil {
		d -= time.Duration(age) * time.Second
	}
	return d, true
}

// grace returns how long after its lifetime an answer may be used while the site is requested
// again, at most most: the value in the answer (RFC 5861 §3), or revalidateGrace. It is zero
// when the answer forbids any use after its lifetime (RFC 9111 §4.2.4).
func (d directives) grace(most time.Duration) time.Duration {
	switch {
	case d.noStore || d.noCache || d.mustRevalidate:
		return 0
	case d.whileRevalidate >= 0:
		return min(d.whileRevalidate, most)
	case d.sMaxAge >= 0: // implies proxy-revalidate (RFC 9111 §5.2.2.10)
		return 0
	}
	return min(revalidateGrace, most)
}

// directives are the members of Cache-Control that heed uses. Ages are negative when they are
// missing.
type directives struct {
	sMaxAge, maxAge time.Duration
	whileRevalidate time.Duration // stale-while-revalidate
	noStore         bool
	noCache         bool // no-cache, or private: not for a shared cache (RFC 9111 §5.2.2.7)
	mustRevalidate  bool // or proxy-revalidate
}

func cacheControl(h http.Header) directives {
	d := directives{sMaxAge: -1, maxAge: -1, whileRevalidate: -1}
	for _, line := range h.Values("Cache-Control") {
		for member := range strings.SplitSeq(line, ",") {
			switch name, value, _ := strings.Cut(strings.TrimSpace(member), "="); strings.ToLower(name) {
			case "no-store":
				d.noStore = true
			case "no-cache", "private":
				d.noCache = true
			case "must-revalidate", "proxy-revalidate":
				d.mustRevalidate = true
			case "stale-while-revalidate":
				d.whileRevalidate = shorter(d.whileRevalidate, deltaSeconds(value))
			case "s-maxage":
				d.sMaxAge = shorter(d.sMaxAge, deltaSeconds(value))
			case "max-age":
				d.maxAge = shorter(d.maxAge, deltaSeconds(value))
			}
		}
	}
	return d
}

// shorter returns the lesser of two ages; a negative first one is ignored.
func shorter(a, b time.Duration) time.Duration {
	if a < 0 {
		return b
	}
	return min(a, b)
}

// deltaSeconds parses a number of seconds, quoted or not. An invalid number is 0; one that is
// too large is the largest (RFC 9111 §1.2.2).
func deltaSeconds(s string) time.Duration {
	if s = strings.Trim(s, `"`); s == "" || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		n = math.MaxInt32
	}
	return time.Duration(n) * time.Second
}

// untilExpires returns Expires minus Date, both of which are by the site's clock.
func untilExpires(h http.Header, now time.Time) time.Duration {
	expires, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return expires.Sub(now)
}

// variesByAgent reports whether the answer may depend on the User-Agent (RFC 9110 §12.5.5).
func variesByAgent(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h.Values("Vary"), "User-Agent")
}

// Waits before a site that failed is requested again.
const (
	// ownRetry is the wait after a failure of heed itself.
	ownRetry = 10 * time.Second

	// A site's Retry-After is obeyed within these limits. The lower one doubles with every
	// failure up to lastConnect, so that a site that always sends 0 is not requested without
	// end.
	minRetryAfter = time.Second
	maxRetryAfter = maxLifetime

	// Each wait is lengthened by up to a quarter (see backoff), so that the
	// longest are 15 minutes and one minute.
	firstRetry   = time.Minute
	lastRetry    = 12 * time.Minute
	firstConnect = time.Second
	lastConnect  = 48 * time.Second
)

// retryIn returns the wait after a failure: the time that the site asks for, or a wait that
// grows with every failure. A site that was never reached has no load from requests, and is
// tried sooner.
func retryIn(a answer, failures int, now time.Time, jitter float64) time.Duration {
	if a.local {
		return ownRetry
	}
	if a.noConnection {
		return backoff(firstConnect, lastConnect, failures, jitter)
	}
	if d, ok := retryafter.Parse(a.header, now); ok {
		return min(max(d, backoff(minRetryAfter, lastConnect, failures, 0)), maxRetryAfter)
	}
	return backoff(firstRetry, lastRetry, failures, jitter)
}

// backoff returns a wait that doubles with each failure, from first to last, and is extended
// by up to a quarter.
func backoff(first, last time.Duration, failures int, jitter float64) time.Duration {
	d := last
	if shift := failures - 1; shift < 10 {
		d = min(first<<shift, last)
	}
	return d + time.Duration(jitter*float64(d)/4)
}
