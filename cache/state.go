package cache

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heed/rules"
)

// What is known of an origin moves through these states. The names are those
// of rules.State where a policy shows them; the clock is always a parameter.
//
//	answer of the site                    becomes
//	200, 203, 204                         Available: parsed (RFC 9309 §2.3.1.1)
//	2xx that is a challenge page          failure
//	304 to our own condition              the copy at hand, its clock restarted
//	401, 403                              Unavailable, asked once more as the client; strict: closed
//	other 4xx but 407 and 429             Unavailable: there is no file (§2.3.1.3)
//	all else, and no answer               failure
//
//	a failure                             becomes
//	with a copy that may stand in         Available and Stale (§2.4); see profile.go
//	without                               Unreachable: refused (§2.3.1.4)
//
// An entry is fresh until askAt: it answers at once. Until waitAt it answers
// at once while the site is asked beside it; after that callers wait for the
// site. For what the site said, waitAt is never later than maxLifetime after it
// said so. A failing site is asked again after a wait that grows (retryIn).

// How long things are believed.
const (
	minLifetime     = 5 * time.Minute
	maxLifetime     = 24 * time.Hour // RFC 9309 §2.4
	defaultLifetime = time.Hour
	staleLimit      = 30 * 24 * time.Hour // RFC 9309 §2.3.1.4 names it

	// revalidateGrace is for how long after its time an entry still answers at
	// once while the site is asked beside it, when the site does not say
	// (stale-while-revalidate, RFC 5861 §3).
	revalidateGrace = 5 * time.Minute

	// clockSlack is how far an entry may lie in the future before the clock is
	// held to have been set back, and the entry to be of unknown age.
	clockSlack = time.Minute
)

// outcome is what an answer means.
type outcome uint8

const (
	failed    outcome = iota // nothing can be said: unreachable (RFC 9309 §2.3.1.4)
	absent                   // there is no file to read (§2.3.1.3)
	read                     // a file (§2.3.1.1)
	confirmed                // the copy at hand is still right (RFC 9110 §15.4.5)
	closed                   // a denial that closes the site
)

// next is the whole state machine: what is known after an answer, given what
// was known before. prev is nil for an origin never asked. jitter, from 0 up
// to 1, spreads the retries of many proxies.
func next(prev *entry, a answer, now time.Time, jitter float64, profile rules.Profile) *entry {
	what, err := a.outcome(prev, profile)
	switch what {
	case read:
		return a.accept(rules.Available, nil, now, profile)
	case absent:
		return a.accept(rules.Unavailable, nil, now, profile)
	case closed:
		return a.accept(rules.Unreachable, err, now, profile)
	case confirmed:
		return prev.confirm(a, now)
	default:
		return prev.fail(a, err, now, jitter, profile)
	}
}

// outcome classifies a; the error says why when it is failed or closed.
func (a *answer) outcome(prev *entry, profile rules.Profile) (outcome, error) {
	switch {
	case a.err != nil:
		return failed, a.err
	case a.status == http.StatusNotModified && prev.copy() != nil && prev.tags.url == a.url:
		return confirmed, nil
	case a.status == http.StatusOK, a.status == http.StatusNonAuthoritativeInfo, a.status == http.StatusNoContent:
		if wall := challenge(a.header, a.body); wall != "" {
			return failed, fmt.Errorf("%s: %w", a.origin.RobotsURL(), tell(nil, "was answered with a bot wall's challenge page (%s)", wall))
		}
		return read, nil
	case a.denies() && denialCloses(profile):
		return closed, a.unlike()
	case a.status == http.StatusTooManyRequests, a.status == http.StatusProxyAuthRequired:
		// 407 is the word of a proxy on the way: the site said nothing.
	case a.status >= 400 && a.status < 500:
		return absent, nil
	}
	return failed, a.unlike()
}

// denies reports whether the site keeps its robots.txt from us.
func (a *answer) denies() bool {
	return a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
}

// unlike says that the status is none a robots.txt comes with.
func (a *answer) unlike() error {
	said := strings.TrimSpace(strconv.Itoa(a.status) + " " + http.StatusText(a.status))
	return fmt.Errorf("%s answered %s", a.origin.RobotsURL(), said)
}

// accept makes the entry of an answer that replaces all that was known.
func (a *answer) accept(state rules.State, err error, now time.Time, profile rules.Profile) *entry {
	f := freshnessOf(a.header, now)
	e := &entry{
		madeAt:   now,
		askAt:    now.Add(f.lifetime),
		denied:   a.denies(),
		varies:   variesByAgent(a.header),
		lifetime: f.lifetime,
		grace:    f.grace,
		noStore:  f.noStore,
	}
	e.waitAt = e.askAt.Add(f.grace)
	if state == rules.Available && !f.noStore {
		e.tags = validatorsOf(a.header, a.url)
	}
	src := rules.Source{
		Origin: a.origin, State: state, Status: a.status,
		FetchedAt: now, FreshUntil: e.askAt, Err: err,
		RetriedAs: a.as, Note: a.note, Snapshot: a.answered(now, state == rules.Available),
	}
	if state == rules.Unreachable {
		src.FreshUntil, src.RetryAt, e.waitAt = time.Time{}, e.askAt, e.askAt
	}
	e.policy = rules.NewAs(profile, src, a.body)
	return e
}

// confirm restarts the clock of e's copy (RFC 9111 §4.3.4).
func (e *entry) confirm(a answer, now time.Time) *entry {
	n := *e
	if f := freshnessOf(a.header, now); f.stated {
		n.lifetime, n.grace, n.noStore = f.lifetime, f.grace, f.noStore
	}
	if tags := validatorsOf(a.header, a.url); tags.etag != "" {
		n.tags = tags
	}
	if n.noStore {
		n.tags = validators{}
	}
	if a.header.Get("Vary") != "" {
		n.varies = variesByAgent(a.header)
	}
	n.madeAt, n.askAt = now, now.Add(n.lifetime)
	n.waitAt = n.askAt.Add(n.grace)
	n.failures, n.failingSince, n.setAside = 0, time.Time{}, nil
	src := e.copy().Source()
	src.Status, src.FetchedAt, src.FreshUntil = a.status, now, n.askAt
	src.Stale, src.Err, src.NoConnection = false, nil, false
	n.policy = e.copy().With(src)
	return &n
}

// fail makes the entry after a failure: the copy at hand, stale, as long as it
// may stand in, else an unreachable origin. e may be nil.
func (e *entry) fail(a answer, err error, now time.Time, jitter float64, profile rules.Profile) *entry {
	n := entry{madeAt: now, failures: 1, failingSince: now}
	if e != nil {
		n.denied, n.varies = e.denied, e.varies
		if e.failures > 0 {
			n.failingSince = e.failingSince
		}
		if e.failures > 0 && e.policy.Source().NoConnection == a.noConnection {
			n.failures = e.failures + 1
		}
	}
	n.askAt = now.Add(retryIn(a, n.failures, now, jitter))
	n.waitAt = n.askAt
	if file := e.copy(); file != nil && !e.noStore && now.Sub(file.Source().FetchedAt) <= staleLimit {
		n.lifetime, n.grace, n.tags = e.lifetime, e.grace, e.tags
		if copyStandsIn(profile, n.failingSince, now) {
			return n.standIn(file, a, err)
		}
		n.setAside = file
	}
	n.policy = rules.NewAs(profile, rules.Source{
		Origin: a.origin, State: rules.Unreachable, Status: a.status,
		FetchedAt: now, RetryAt: n.askAt, Err: err,
		NoConnection: a.noConnection, RetriedAs: a.as, Snapshot: a.answered(now, false),
	}, nil)
	return &n
}

// standIn lets file stand in until n's site is asked again, and a little
// longer while that goes on, but never beyond the limit of stale copies.
func (n entry) standIn(file *rules.Policy, a answer, err error) *entry {
	src := file.Source()
	limit := src.FetchedAt.Add(staleLimit)
	n.askAt = earlier(n.askAt, limit)
	n.waitAt = earlier(n.askAt.Add(revalidateGrace), limit)
	src.Status, src.FreshUntil = a.status, n.askAt
	src.Stale, src.Err, src.NoConnection = true, err, a.noConnection
	n.policy = file.With(src)
	return &n
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
