package cache

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heed/internal/judge/signal/wall"
	"heed/internal/pace/retryafter"
	"heed/rules"
)

// What is known of an origin moves through these states. The names are those
// of rules.State where a policy shows them; the clock is always a parameter.
//
//	answer of the site                    result
//	200, 203, 204                         Available: parsed (RFC 9309 §2.3.1.1)
//	a bot wall's challenge, any status    failure
//	a page that may be one                failure; only under strict
//	304 to a conditional request          the copy, with a new lifetime
//	401, 403                              Unavailable, asked once more as the client; strict: closed
//	other 4xx but 407 and 429             Unavailable: there is no file (§2.3.1.3)
//	others, and no answer                 failure
//
//	a failure                             result
//	with a copy that may be served        Available and Stale (§2.4); see mayServeStale
//	without                               Unreachable: refused (§2.3.1.4)
//
// An entry is fresh until askAt: it answers immediately. Until waitAt it answers
// while the site is asked in the background; after that callers wait for the
// site. For what the site said, waitAt is never later than maxLifetime after it
// said so. A failing site is asked again after a wait that grows (retryIn).

// Lifetimes.
const (
	minLifetime     = 5 * time.Minute
	maxLifetime     = 24 * time.Hour // RFC 9309 §2.4
	defaultLifetime = time.Hour
	staleLimit      = 30 * 24 * time.Hour // RFC 9309 §2.3.1.4 names it

	// revalidateGrace is how long after its lifetime an entry is used while the site is
	// requested in the background, when the site does not say (stale-while-revalidate, RFC 5861
	// §3).
	revalidateGrace = 5 * time.Minute

	// clockSlack is how far in the future the time of an entry may be. Beyond it, the clock was
	// set back, and the age of the entry is unknown.
	clockSlack = time.Minute
)

// outcome is the meaning of an answer.
type outcome uint8

const (
	failed    outcome = iota // unreachable (RFC 9309 §2.3.1.4)
	absent                   // there is no file to read (§2.3.1.3)
	read                     // a file (§2.3.1.1)
	confirmed                // the copy is still valid (RFC 9110 §15.4.5)
	closed                   // a denial that closes the site
)

// next is the state machine: it returns the entry after an answer. prev is the entry before
// it, nil for an origin that was never requested. jitter, from 0 up to 1, spreads the retries
// of many proxies.
func next(prev *entry, a answer, now time.Time, jitter float64, profile rules.Profile) *entry {
	switch what, err := a.outcome(prev, profile); what {
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

// outcome classifies a; the error is the reason for failed and closed.
func (a *answer) outcome(prev *entry, profile rules.Profile) (outcome, error) {
	switch {
	case a.err != nil:
		return failed, a.err
	case a.status != http.StatusNotModified && a.wall != wall.None && (a.wall == wall.Challenge || profile == rules.Strict):
		return failed, fmt.Errorf("%s: %w", a.origin.RobotsURL(), a.challenged())
	case a.status == http.StatusNotModified && prev.copy() != nil && prev.validators.URL == a.url:
		return confirmed, nil
	case a.status == http.StatusOK, a.status == http.StatusNonAuthoritativeInfo, a.status == http.StatusNoContent:
		return read, nil
	case a.denies() && denialCloses(profile):
		return closed, a.unexpectedStatus()
	case a.status == http.StatusTooManyRequests, a.status == http.StatusProxyAuthRequired:
		// A 407 is from a proxy, not from the site.
	case a.status >= 400 && a.status < 500:
		return absent, nil
	}
	return failed, a.unexpectedStatus()
}

// challenged returns the error of an answer that is a challenge of a bot wall, or may be one.
func (r *siteReply) challenged() error {
	if r.wall == wall.Challenge {
		return publicErrorf(nil, "was answered with a bot wall's challenge page (%s)", r.vendor)
	}
	return publicErrorf(nil, "was answered with a page that may be a bot wall's challenge: it has a script and nothing to read")
}

// denies reports whether the site refuses its robots.txt to heed.
func (a *answer) denies() bool {
	return a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
}

// unexpectedStatus returns an error: a robots.txt has another status.
func (a *answer) unexpectedStatus() error {
	said := strings.TrimSpace(strconv.Itoa(a.status) + " " + http.StatusText(a.status))
	return fmt.Errorf("%s answered %s", a.origin.RobotsURL(), said)
}

// accept returns the entry of an answer that replaces the one before.
func (a *answer) accept(state rules.State, err error, now time.Time, profile rules.Profile) *entry {
	f := freshnessOf(a.header, now)
	e := &entry{history: history{
		MadeAt:   now,
		AskAt:    now.Add(f.lifetime),
		WaitAt:   now.Add(f.lifetime + f.grace),
		Denied:   a.denies(),
		Varies:   variesByAgent(a.header),
		Lifetime: f.lifetime,
		Grace:    f.grace,
		NoStore:  f.noStore,
	}}
	if state == rules.Available && !f.noStore {
		e.validators = validatorsOf(a.header, a.url)
	}
	src := rules.Source{
		Origin: a.origin, State: state, Status: a.status,
		FetchedAt: now, FreshUntil: e.AskAt, Err: err,
		RetriedAs: a.as, Note: a.note, Snapshot: a.answered(now, state == rules.Available),
	}
	if state == rules.Unreachable {
		src.FreshUntil, src.RetryAt, e.WaitAt = time.Time{}, e.AskAt, e.AskAt
		if value := retryafter.Unread(a.header); value != "" {
			src.Note = fmt.Sprintf("its Retry-After cannot be understood (%q)", value)
		}
	}
	e.policy = rules.NewAs(profile, src, a.body)
	return e
}

// confirm returns e with a new lifetime for its copy (RFC 9111 §4.3.4).
func (e *entry) confirm(a answer, now time.Time) *entry {
	n := *e
	if f := freshnessOf(a.header, now); f.stated {
		n.Lifetime, n.Grace, n.NoStore = f.lifetime, f.grace, f.noStore
	}
	if tags := validatorsOf(a.header, a.url); tags.ETag != "" {
		n.validators = tags
	}
	if n.NoStore {
		n.validators = validators{}
	}
	if a.header.Get("Vary") != "" {
		n.Varies = variesByAgent(a.header)
	}
	n.MadeAt, n.AskAt = now, now.Add(n.Lifetime)
	n.WaitAt = n.AskAt.Add(n.Grace)
	n.Failures, n.FailingSince, n.lastGood = 0, time.Time{}, nil
	src := e.copy().Source()
	src.Status, src.FetchedAt, src.FreshUntil = a.status, now, n.AskAt
	src.Stale, src.Err, src.NoConnection = false, nil, false
	n.policy = e.copy().With(src)
	return &n
}

// fail returns the entry after a failure: with the stale copy, as long as it may be used, or
// unreachable. e may be nil.
func (e *entry) fail(a answer, err error, now time.Time, jitter float64, profile rules.Profile) *entry {
	n := entry{history: history{MadeAt: now, Failures: 1, FailingSince: now}}
	if e != nil {
		n.Denied, n.Varies = e.Denied, e.Varies
		if e.Failures > 0 {
			n.FailingSince = e.FailingSince
		}
		if e.Failures > 0 && e.policy.Source().NoConnection == a.noConnection {
			n.Failures = e.Failures + 1
		}
	}
	n.AskAt = now.Add(retryIn(a, n.Failures, now, jitter))
	n.WaitAt = n.AskAt
	if file := e.copy(); file != nil && !e.NoStore && now.Sub(file.Source().FetchedAt) <= staleLimit {
		n.Lifetime, n.Grace, n.validators = e.Lifetime, e.Grace, e.validators
		if mayServeStale(profile, n.FailingSince, now) {
			return n.serveStale(file, a, err)
		}
		n.lastGood = file
	}
	n.policy = rules.NewAs(profile, rules.Source{
		Origin: a.origin, State: rules.Unreachable, Status: a.status,
		FetchedAt: now, RetryAt: n.AskAt, Err: err,
		NoConnection: a.noConnection, RetriedAs: a.as, Snapshot: a.answered(now, false),
	}, nil)
	return &n
}

// serveStale returns n with file as a stale copy, until the site is requested again and a
// little longer, but never beyond staleLimit.
func (n entry) serveStale(file *rules.Policy, a answer, err error) *entry {
	src := file.Source()
	limit := src.FetchedAt.Add(staleLimit)
	n.AskAt = earlier(n.AskAt, limit)
	n.WaitAt = earlier(n.AskAt.Add(revalidateGrace), limit)
	src.Status, src.FreshUntil = a.status, n.AskAt
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

// What a profile says of a site's silence and of its denials. What all have in
// common is RFC 9309; they differ where it leaves a choice:
//
//	Standard, REP1994  401 and 403 mean "no file" (§2.3.1.3); the last good copy
//	                   is used while a site cannot be asked, for 30 days at
//	                   most (§2.4)
//	Strict             401 and 403 close the site, as the draft of 1996 had it;
//	                   no old copy is used (§2.3.1.4)
//	Google             the first twelve hours of a failure are refused; only then
//	                   the last good copy is used, for 30 days at most

// googleRefusal is how long a failing site is refused before the last good copy is used, as
// Google does.
const googleRefusal = 12 * time.Hour

// denialCloses reports whether 401 and 403 close the site.
func denialCloses(p rules.Profile) bool { return p == rules.Strict }

// mayServeStale reports whether a copy within staleLimit may be used at now for a site that
// has been failing since failingSince.
func mayServeStale(p rules.Profile, failingSince, now time.Time) bool {
	switch p {
	case rules.Strict:
		return false
	case rules.Google:
		return now.Sub(failingSince) >= googleRefusal
	default:
		return true
	}
}
