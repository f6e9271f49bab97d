package cache

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"heed/internal/base/memo"
	"heed/internal/judge/signal/wall"
	"heed/rules"
)

// Visit is a request that heed makes at a host because another one has named its URL: in a
// redirect of its robots.txt, or as that of a document.
type Visit struct {
	Origin rules.Origin
	// Hints are the delays that the robots.txt of the origin asks for; nil when it is not
	// known.
	Hints []*rules.RateHint
	// RobotsTxt is set when the URL is that of a robots.txt.
	RobotsTxt bool
}

// Limits of visits: a site with many names could name many URLs of another host.
const (
	visitsTime     = time.Hour
	maxVisits      = 360 // distinct URLs of one origin within visitsTime
	maxVisitHosts  = 4096
	maxVisited     = 4096 // stored answers
	maxVisitedSize = 32 << 20
	// failedVisit is the time in which a visit without a usable answer is not repeated.
	failedVisit = time.Minute
)

// visits holds the answers to the visits of one fetcher: a URL to which many sites redirect is
// requested once for all of them. The zero value is ready.
type visits struct {
	flights singleflight.Group
	answers memo.Kept[string, *siteReply]
	mu      sync.Mutex
	made    map[rules.Origin]*visitCount
}

// visitCount counts the requested URLs of an origin since a time.
type visitCount struct {
	since time.Time
	n     int
}

// count counts a visit to o, and returns an error when there were too many.
func (v *visits) count(o rules.Origin, now time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.made[o]
	if c == nil || now.Sub(c.since) >= visitsTime || now.Before(c.since) {
		memo.MakeRoom(v.made, maxVisitHosts, func(a, b *visitCount) bool { return a.n < b.n }) // many names do not end the count of one
		c = &visitCount{since: now}
		memo.Set(&v.made, o, c)
	}
	if c.n >= maxVisits {
		return publicErrorf(nil, "redirects to a host that other sites have named %d URLs of within %v", maxVisits, visitsTime)
	}
	c.n++
	return nil
}

// bareHost returns the host that sites with and without "www." have in common.
func bareHost(host string) string { return strings.TrimPrefix(host, "www.") }

// foreign reports whether u is at another host than the one that the fetch is for.
func (j *job) foreign(u *url.URL) bool { return bareHost(u.Hostname()) != bareHost(j.by) }

// ask returns the answer to a request for u.
func (j *job) ask(ctx context.Context, u *url.URL, as string, tags validators) (*siteReply, error) {
	if !j.foreign(u) {
		return j.request(ctx, u, as, tags)
	}
	if j.only != "" && u.Hostname() != j.only {
		return nil, publicErrorf(nil, "is asked only because another site redirects to its host, and redirects to a third one")
	}
	scope := ""
	if c, ok := j.carrier.(interface {
		Scope(ctx context.Context) string
	}); ok {
		scope = c.Scope(ctx)
	}
	signed := ""
	if as != "" && j.signer != nil {
		signed = j.signer.ID()
	}
	key := strings.Join([]string{scope, j.accept, fmt.Sprint(j.most, j.permit == nil, j.only), as, signed, u.String()}, "\n")
	if r, ok := j.visits.answers.Get(key, j.Now()); ok {
		return r, r.failure
	}
	done := j.visits.flights.DoChan(key, func() (any, error) { return j.visit(ctx, key, u, as), nil })
	select {
	case got := <-done:
		r := got.Val.(*siteReply)
		return r, r.failure
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// visit makes a visit for all callers that wait for it. It continues when they leave.
func (j *job) visit(ctx context.Context, key string, u *url.URL, as string) (r *siteReply) {
	defer func() {
		// A panic here would end the process: no caller recovers it.
		if v := recover(); v != nil {
			r = &siteReply{failure: fmt.Errorf("internal fault while fetching %s: %v", j.Redact(u.String()), v)}
		}
	}()
	if r, ok := j.visits.answers.Get(key, j.Now()); ok {
		return r // another visit has ended meanwhile
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), j.Timeout, answerTimeout(j.Timeout))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	own := *j
	own.end, own.tickets = end, nil
	defer own.leave()
	r, err := own.takeTurn(ctx, u, as)
	if err != nil {
		r = &siteReply{failure: withCause(ctx, err)}
	}
	until := j.Now().Add(failedVisit)
	if err == nil && r.err == nil && r.status < 500 && r.status != http.StatusTooManyRequests {
		until = j.Now().Add(freshnessOf(r.header, j.Now()).lifetime)
	}
	if !r.local && ctx.Err() == nil {
		j.visits.answers.Put(key, r, until, len(r.body), maxVisited, maxVisitedSize)
	}
	return r
}

// takeTurn waits for the turn of a visit and requests u, if the robots.txt of its host allows
// it.
func (j *job) takeTurn(ctx context.Context, u *url.URL, as string) (*siteReply, error) {
	o, err := rules.OriginOf(u)
	if err != nil {
		return nil, err
	}
	v := Visit{Origin: o, RobotsTxt: u.RequestURI() == "/robots.txt"}
	// A robots.txt of another host needs no permission, but the host may ask for a delay. The
	// permit of a document has checked its own.
	asks := !strings.HasSuffix(u.Path, "/robots.txt") && j.permit == nil && j.only == ""
	switch policy := j.policyOf(ctx, o, v.RobotsTxt || j.only != ""); {
	case policy == nil:
	case asks && policy.Source().State == rules.Unreachable:
		return nil, policy.Source().Err
	case asks && policy.Decide(j.agent, rules.NewTarget(u.RequestURI())).Verdict != rules.Allow:
		return nil, publicErrorf(nil, "redirects to a URL that the robots.txt of its host does not let heed fetch")
	default:
		v.Hints = policy.RateHints(j.agent)
	}
	if err := j.visits.count(o, j.Now()); err != nil {
		return nil, err
	}
	if j.Turn != nil {
		turned, ended, err := j.Turn(ctx, v)
		if err != nil {
			return nil, err
		}
		defer ended()
		ctx = turned
	}
	return j.request(ctx, u, as, validators{})
}

// policyOf returns the policy of o, as far as it is known; unless knownOnly is set it is
// fetched, without redirects to another host. Nil: it is not known.
func (j *job) policyOf(ctx context.Context, o rules.Origin, knownOnly bool) *rules.Policy {
	if p := j.known(o); p != nil || knownOnly {
		return p
	}
	home := *j
	home.accept, home.most, home.permit, home.only = acceptRobots, maxBody, nil, o.Host
	a := answer{origin: o}
	home.follow(ctx, &a, &url.URL{Scheme: o.Scheme, Host: o.Authority(), Path: "/robots.txt"}, validators{})
	return next(nil, a, j.Now(), 0, j.Profile).policy
}

// siteReply is the answer to one request. It is immutable.
type siteReply struct {
	failure error // why there is no answer; the other fields are zero then
	status  int   // 0 when there is none
	header  http.Header
	body    []byte // decoded, whole lines; only with 200, 203 and 204
	note    string // for Source.Note
	err     error  // why the body could not be read
	local   bool   // err is heed's own: the site was not requested

	wall   wall.Kind // whether it is a challenge, of any status but those of redirects
	vendor string    // of the wall
}

// redirects reports whether r is a redirect.
func (r *siteReply) redirects() bool { return slices.Contains(redirectStatuses, r.status) }
