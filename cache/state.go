package cache

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heed/rules"
)

// How long things are believed, and when a site that failed is asked again.
const (
	minLifetime     = 5 * time.Minute
	maxLifetime     = 24 * time.Hour // RFC 9309 §2.4
	defaultLifetime = time.Hour
	staleLimit      = 30 * 24 * time.Hour // RFC 9309 §2.3.1.4 names it

	minRetryAfter = 10 * time.Second
	maxRetryAfter = maxLifetime

	// Each wait is lengthened by up to a quarter (see backoff), so that the
	// longest are 15 minutes and one minute.
	firstRetry   = time.Minute
	lastRetry    = 12 * time.Minute
	firstConnect = time.Second
	lastConnect  = 48 * time.Second

	// clockSlack is how far an entry may lie in the future before the clock is
	// held to have been set back, and the entry to be of unknown age.
	clockSlack = time.Minute
)

// entry is what is known of one origin, for one way of asking. It is immutable.
type entry struct {
	// The first four are read with every request, and lie together for it.
	policy *rules.Policy
	madeAt time.Time
	askAt  time.Time // when the site is asked again
	// denied is set while the site's last word on its robots.txt was 401 or
	// 403, so that it is to be asked once more as the client.
	denied bool

	failures int           // of the same kind, one after the other
	lifetime time.Duration // of the copy, for a 304 that states none
	noStore  bool          // the copy must not outlive its lifetime
	tags     validators    // of the copy; zero when it has none
}

// validators let a copy be confirmed instead of sent again (RFC 9110 §8.8).
type validators struct {
	url          string // the one that gave them, after redirects
	etag         string
	lastModified string
}

// maxValidator is how long an ETag or Last-Modified may be to be kept.
const maxValidator = 1024

// validatorsOf returns what h, an answer from url, gives to ask again with.
func validatorsOf(h http.Header, url string) validators {
	v := validators{url: url, etag: h.Get("ETag"), lastModified: h.Get("Last-Modified")}
	if v.etag == "" && v.lastModified == "" || len(v.etag) > maxValidator || len(v.lastModified) > maxValidator {
		return validators{}
	}
	return v
}

// answer is what one fetch brought.
type answer struct {
	origin       rules.Origin
	as           string      // the client's User-Agent it was asked as; empty: our own
	url          string      // that gave the final answer
	status       int         // of the final answer; 0 when there was none
	header       http.Header // of the final answer
	body         []byte      // decoded, whole lines; only with 200, 203 and 204
	note         string      // for Source.Note
	err          error       // why there is no usable answer; status may be set all the same
	noConnection bool        // the origin itself was never reached
}

// outcome is what an answer means.
type outcome uint8

const (
	failed    outcome = iota // nothing can be said: unreachable (RFC 9309 §2.3.1.4)
	absent                   // there is no file to read (§2.3.1.3)
	read                     // a file (§2.3.1.1)
	confirmed                // the copy at hand is still right (RFC 9110 §15.4.5)
)

// next is the whole state machine: what is known after an answer, given what
// was known before. prev is nil for an origin never asked. jitter, from 0 up
// to 1, spreads the retries of many proxies.
func next(prev *entry, a answer, now time.Time, jitter float64) *entry {
	what, err := a.outcome(prev)
	switch what {
	case read:
		return a.accept(rules.Available, now)
	case absent:
		return a.accept(rules.Unavailable, now)
	case confirmed:
		return prev.confirm(a, now)
	default:
		return prev.fail(a, err, now, jitter)
	}
}

// outcome classifies a; the error says why when it is failed.
func (a *answer) outcome(prev *entry) (outcome, error) {
	switch {
	case a.err != nil:
		return failed, a.err
	case a.status == http.StatusNotModified && prev.hasCopy() && prev.tags.url == a.url:
		return confirmed, nil
	case a.status == http.StatusOK, a.status == http.StatusNonAuthoritativeInfo, a.status == http.StatusNoContent:
		return read, nil
	case a.status == http.StatusTooManyRequests, a.status == http.StatusProxyAuthRequired:
		// 407 is the word of a proxy on the way: the site said nothing.
	case a.status >= 400 && a.status < 500:
		return absent, nil
	}
	said := strings.TrimSpace(strconv.Itoa(a.status) + " " + http.StatusText(a.status))
	return failed, fmt.Errorf("%s answered %s", a.origin.RobotsURL(), said)
}

// accept makes the entry of an answer that replaces all that was known.
func (a *answer) accept(state rules.State, now time.Time) *entry {
	f := freshnessOf(a.header, now)
	e := &entry{
		madeAt:   now,
		askAt:    now.Add(f.lifetime),
		lifetime: f.lifetime,
		noStore:  f.noStore,
		denied:   a.status == http.StatusUnauthorized || a.status == http.StatusForbidden,
	}
	if state == rules.Available && !f.noStore {
		e.tags = validatorsOf(a.header, a.url)
	}
	e.policy = rules.New(rules.Source{
		Origin: a.origin, State: state, Status: a.status,
		FetchedAt: now, FreshUntil: e.askAt,
		RetriedAs: a.as, Note: a.note,
	}, a.body)
	return e
}

// confirm restarts the clock of e's copy (RFC 9111 §4.3.4).
func (e *entry) confirm(a answer, now time.Time) *entry {
	n := *e
	if f := freshnessOf(a.header, now); f.stated {
		n.lifetime, n.noStore = f.lifetime, f.noStore
	}
	if tags := validatorsOf(a.header, a.url); tags.etag != "" {
		n.tags = tags
	}
	if n.noStore {
		n.tags = validators{}
	}
	n.madeAt, n.askAt, n.failures = now, now.Add(n.lifetime), 0
	src := e.policy.Source()
	src.Status, src.FetchedAt, src.FreshUntil = a.status, now, n.askAt
	src.Stale, src.Err, src.NoConnection = false, nil, false
	n.policy = e.policy.With(src)
	return &n
}

// fail makes the entry after a failure: the copy at hand, stale, as long as it
// may be used, else an unreachable origin. e may be nil.
func (e *entry) fail(a answer, err error, now time.Time, jitter float64) *entry {
	n := entry{failures: 1}
	if e != nil && e.failures > 0 && e.policy.Source().NoConnection == a.noConnection {
		n.failures = e.failures + 1
	}
	retryAt := now.Add(retryIn(a, n.failures, now, jitter))
	n.madeAt, n.askAt = now, retryAt
	n.denied = e != nil && e.denied
	if !e.usable(now) {
		n.policy = rules.New(rules.Source{
			Origin: a.origin, State: rules.Unreachable, Status: a.status,
			FetchedAt: now, RetryAt: retryAt, Err: err,
			NoConnection: a.noConnection, RetriedAs: a.as,
		}, nil)
		return &n
	}
	src := e.policy.Source()
	src.Status, src.FreshUntil = a.status, retryAt
	src.Stale, src.Err, src.NoConnection = true, err, a.noConnection
	n.policy = e.policy.With(src)
	n.lifetime, n.tags = e.lifetime, e.tags
	return &n
}

// retryIn returns how long a site is left alone after a failure: as long as it
// asks for, else a wait that grows with every failure. A site that was never
// reached carries no burden, so it is tried sooner: people expect one that
// comes up to work.
func retryIn(a answer, failures int, now time.Time, jitter float64) time.Duration {
	if a.noConnection {
		return backoff(firstConnect, lastConnect, failures, jitter)
	}
	if d, ok := retryAfter(a.header, now); ok {
		return min(max(d, minRetryAfter), maxRetryAfter)
	}
	return backoff(firstRetry, lastRetry, failures, jitter)
}

// backoff doubles from first to last, lengthened by up to a quarter.
func backoff(first, last time.Duration, failures int, jitter float64) time.Duration {
	d := last
	if shift := failures - 1; shift < 10 {
		d = min(first<<shift, last)
	}
	return d + time.Duration(jitter*float64(d)/4)
}

// fresh reports whether e may be used without asking the site. A nil e is not
// fresh, and neither is one made before the clock was set back.
func (e *entry) fresh(now time.Time) bool {
	return e != nil && now.Before(e.askAt) && e.madeAt.Sub(now) <= clockSlack
}

// hasCopy reports whether e holds a file, fresh or stale. e may be nil.
func (e *entry) hasCopy() bool {
	return e != nil && e.policy.Source().State == rules.Available
}

// usable reports whether e's copy may stand in while the site cannot be asked.
func (e *entry) usable(now time.Time) bool {
	return e.hasCopy() && !e.noStore && now.Sub(e.policy.Source().FetchedAt) <= staleLimit
}

// size returns about how many bytes e holds beside itself.
func (e *entry) size() int {
	return e.policy.Size() + len(e.tags.url) + len(e.tags.etag) + len(e.tags.lastModified) +
		heldBy(e.policy.Source().Err)
}

// heldBy returns about how many bytes an error holds: a failed verification
// holds on to the site's certificates.
func heldBy(err error) int {
	if err == nil {
		return 0
	}
	n := len(err.Error())
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		for _, c := range verification.UnverifiedCertificates {
			n += parsedCertificate * len(c.Raw)
		}
	}
	return n
}

// parsedCertificate is about how many times its DER form a certificate takes
// once parsed.
const parsedCertificate = 4
