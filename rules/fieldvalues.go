package rules

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"heed/rules/clock"
)

// The readers of field values. Each reports false for fields of another kind
// and for values that it cannot understand, which have no effect.

// Delay returns the time between two requests that a Crawl-delay or a
// Cache-delay requires: a number of seconds, or what obviously means one (see clock.Seconds).
func (f Field) Delay() (d time.Duration, ok bool) {
	if f.Kind != CrawlDelay && f.Kind != CacheDelay {
		return 0, false
	}
	d, _, ok = clock.Seconds(f.Value)
	return d, ok
}

// Rate is a number of documents that may be fetched in a time (Conner 1996).
type Rate = clock.Rate

// Window is a time of the day in UTC.
type Window = clock.Window

// Rate returns the value of a Request-rate: "1/10s", "30/1m 0800-1845" (see clock.RateOf).
func (f Field) Rate() (Rate, bool) {
	if f.Kind != RequestRate {
		return Rate{}, false
	}
	r, _, ok := clock.RateOf(f.Value)
	return r, ok
}

// Window returns the value of a Visit-time: "0600-0845" (see clock.Hours).
func (f Field) Window() (w Window, ok bool) {
	if f.Kind != VisitTime {
		return Window{}, false
	}
	w, _, ok = clock.Hours(f.Value)
	return w, ok
}

// Exact reports whether the value of a field about speed has the form of its document, so
// that other robots understand it; true for other fields.
func (f Field) Exact() bool {
	exact := true
	switch f.Kind {
	case CrawlDelay:
		_, exact, _ = clock.Seconds(f.Value)
	case RequestRate:
		_, exact, _ = clock.RateOf(f.Value)
	case VisitTime:
		_, exact, _ = clock.Hours(f.Value)
	}
	return exact
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
