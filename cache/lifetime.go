package cache

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// freshness is what an answer says about how long it holds.
type freshness struct {
	lifetime time.Duration // clamped to minLifetime and maxLifetime
	grace    time.Duration // see graceOf
	stated   bool          // the answer said it, it is not the default
	noStore  bool
}

// freshnessOf reads the lifetime of an answer received at now, for a shared
// cache: s-maxage before max-age before Expires (RFC 9111 §4.2.1), less the age
// it arrived with. What is invalid counts as expired, of what contradicts
// itself the shortest holds.
func freshnessOf(h http.Header, now time.Time) freshness {
	cc := cacheControl(h)
	f := freshness{lifetime: defaultLifetime, noStore: cc.noStore}
	if d, ok := lifetimeOf(h, cc, now); ok {
		f.stated, f.lifetime = true, min(max(d, minLifetime), maxLifetime)
	}
	f.grace = cc.grace(maxLifetime - f.lifetime)
	return f
}

// lifetimeOf returns what h states, not clamped; ok is false when it states
// nothing.
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

// grace returns for how long after its lifetime an answer may still be used
// while the site is asked again, most at the most: what the answer itself says
// (RFC 5861 §3), else revalidateGrace. Not at all when it forbids any use
// after its time (RFC 9111 §4.2.4).
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

// directives are the members of Cache-Control that count here. Ages are
// negative when not given.
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
			name, value, _ := strings.Cut(strings.TrimSpace(member), "=")
			switch strings.ToLower(name) {
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

// shorter returns the lesser of two ages of which the first may not be given.
func shorter(a, b time.Duration) time.Duration {
	if a < 0 {
		return b
	}
	return min(a, b)
}

// deltaSeconds reads a number of seconds, quoted or not; what is no number is
// none, and what is too large is as large as can be (RFC 9111 §1.2.2).
func deltaSeconds(s string) time.Duration {
	s = strings.Trim(s, `"`)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		n = math.MaxInt32
	}
	return time.Duration(n) * time.Second
}

// untilExpires returns Expires less Date, so that the site's clock is compared
// with itself.
func untilExpires(h http.Header, now time.Time) time.Duration {
	expires, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	return expires.Sub(sentAt(h, now))
}

// variesByAgent reports whether the answer may be another for another
// User-Agent (RFC 9110 §12.5.5).
func variesByAgent(h http.Header) bool {
	for _, line := range h.Values("Vary") {
		for name := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(name), "User-Agent") {
				return true
			}
		}
	}
	return false
}

// sentAt returns the answer's Date, or now when it has none.
func sentAt(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// retryAfter reads Retry-After in either form (RFC 9110 §10.2.3). It may be
// negative: a moment that has passed.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if strings.Trim(v, "0123456789") == "" {
		return deltaSeconds(v), true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return t.Sub(sentAt(h, now)), true
}
