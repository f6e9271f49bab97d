package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"heed/internal/base/coding"
	"heed/internal/judge/signal/wall"
	"heed/rules"
)

// Limits of a fetch, in addition to its time (Config.Timeout), its redirects and its octets
// (body.go).
const (
	// maxHeader is the maximum size of the header of an answer, in octets. The Transport limits
	// how much of it is read.
	maxHeader = 64 << 10
	// drainLimit is the maximum length of an unwanted body that is read to its end.
	drainLimit = 64 << 10

	maxFetches     = 512  // under way at a time
	maxSiteFetches = 16   // to one site
	maxQueue       = 2048 // waiting for their turn
	maxSiteQueue   = 256  // for one site
	// slowFetch is the time after which a fetch is cancelled when others wait for its ticket.
	slowFetch = 5 * time.Second
)

// fetcher fetches the robots.txt of sites.
type fetcher struct {
	Config
	agent  *rules.Agent                     // of UserAgent
	known  func(rules.Origin) *rules.Policy // the policy in memory; nil: none is
	visits visits
	*FetchLimits
}

// acceptRobots is the Accept field of a request for a robots.txt.
const acceptRobots = "text/plain, */*;q=0.5"

// FetchLimits limit the fetches of all caches that share them: their number, in total and for
// one site, and the octets of their bodies. The zero value is ready; it is safe for concurrent
// use.
type FetchLimits struct {
	once       sync.Once
	fetches    fetchLimiter  // of all fetches
	longBodies fetchLimiter  // of those whose body is a long one
	decoders   chan struct{} // its capacity is the number of decoders at work
}

func (l *FetchLimits) open() {
	l.fetches = fetchLimiter{
		most: maxFetches, mostOfSite: maxSiteFetches,
		mostWaiting: maxQueue, mostWaitingSite: maxSiteQueue, slowAfter: slowFetch,
	}
	l.longBodies = fetchLimiter{
		most: maxLongBodies, mostOfSite: maxSiteLongBodies,
		mostWaiting: maxFetches, mostWaitingSite: maxSiteFetches, slowAfter: slowFetch,
	}
	l.decoders = make(chan struct{}, runtime.GOMAXPROCS(0))
}

// newFetcher returns a fetcher for a config without zero fields.
func newFetcher(c Config) *fetcher {
	f := &fetcher{Config: c, agent: rules.Identify(c.UserAgent), FetchLimits: c.Limits}
	// A little less than the wait of callers, so that a caller that waits for the whole
	// fetch gets its error. The wait before a fetch has the same limit.
	f.Timeout -= c.Timeout / 30
	f.once.Do(f.open)
	if f.PerFetch == nil {
		f.PerFetch = func() http.RoundTripper { return c.Transport }
	}
	return f
}

// job is one fetch.
type job struct {
	*fetcher
	carrier http.RoundTripper
	site    string                                // as limits count it: see siteOf
	by      string                                // the host that the fetch is for; requests to others are visits
	signer  Signer                                // of requests under a client's name; nil: they are not signed
	only    string                                // the only other host that may be visited; empty: any
	accept  string                                // the Accept field
	most    int                                   // octets of the body, decoded
	permit  func(context.Context, *url.URL) error // why a redirect is not followed; nil: all are
	end     context.CancelCauseFunc
	tickets []*ticket
}

// fetch requests the robots.txt of o and follows redirects. as is the client under whose name
// it is requested, the zero value heed itself; tags make the request conditional. An error is
// part of the answer, which use gets; the limits count its body until use returns. ctx is not
// that of a client's request: all callers share the fetch, which continues when one of them
// leaves.
func (f *fetcher) fetch(ctx context.Context, o rules.Origin, as variantKey, tags validators, use func(*answer)) {
	ctx, end := context.WithCancelCause(ctx)
	j := &job{fetcher: f, site: siteOf(o.Host), by: o.Host, signer: as.signer, accept: acceptRobots, most: maxBody, end: end}
	defer j.leave()
	a := &answer{origin: o, as: as.userAgent}
	if err := j.enter(ctx, &j.fetches); err != nil {
		a.err, a.local = fmt.Errorf("fetching %s: %w", o.RobotsURL(), err), true
		use(a)
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, answerTimeout(j.Timeout))
	defer cancel()
	j.carrier = j.PerFetch()
	j.follow(ctx, a, &url.URL{Scheme: o.Scheme, Host: o.Authority(), Path: "/robots.txt"}, tags)
	use(a)
}

// enter takes a ticket of l, which leave returns.
func (j *job) enter(ctx context.Context, l *fetchLimiter) error {
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, queueTimeout(j.Timeout))
	defer cancel()
	p, err := l.enter(ctx, j.site, j.end)
	if err == nil {
		j.tickets = append(j.tickets, p)
	}
	return err
}

func (j *job) leave() {
	j.end(nil)
	for _, p := range j.tickets {
		p.leave()
	}
	j.tickets = nil
}

// follow requests u and follows redirects to the final answer.
func (j *job) follow(ctx context.Context, a *answer, u *url.URL, tags validators) {
	hops := redirects{from: u}
	for {
		a.hops = append(a.hops, j.Redact(u.String()))
		r, err := j.ask(ctx, u, a.as, tags)
		switch {
		case err != nil:
			a.noConnection = hops.count == 0 && notReached(err)
			a.err = hops.explain(withCause(ctx, err))
			return
		case !r.redirects():
			if a.siteReply, a.url = *r, j.Redact(u.String()); r.err != nil {
				a.err = hops.explain(r.err)
			}
			return
		}
		if u, err = hops.follow(r, u); err == nil && j.permit != nil {
			err = j.permit(ctx, u)
		}
		if err != nil {
			a.err = err
			return
		}
	}
}

// request makes one request and reads its answer.
func (j *job) request(ctx context.Context, u *url.URL, as string, tags validators) (*siteReply, error) {
	resp, err := j.get(ctx, u, as, tags)
	if err != nil {
		return nil, err
	}
	if err := checkHeader(resp.Header); err != nil {
		resp.Body.Close()
		return nil, err
	}
	r := &siteReply{status: resp.StatusCode, header: resp.Header}
	switch {
	case r.status == http.StatusOK || r.status == http.StatusNonAuthoritativeInfo:
		j.readBody(ctx, r, resp)
		r.wall, r.vendor = wall.RobotsTxt(r.status, r.header, r.body)
	case r.status >= 400 && r.status < 500:
		r.wall, r.vendor = wall.RobotsTxt(r.status, r.header, j.readPage(resp))
	default:
		r.wall, r.vendor = wall.RobotsTxt(r.status, r.header, nil)
		discard(resp)
	}
	return r, nil
}

// get makes one request.
func (j *job) get(ctx context.Context, u *url.URL, as string, tags validators) (*http.Response, error) {
	if as != "" {
		ctx = j.Sign(ctx, j.signer)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", j.UserAgent)
	if as != "" {
		req.Header.Set("User-Agent", as)
	}
	req.Header.Set("Accept", j.accept)
	req.Header.Set("Accept-Encoding", coding.Accepted)
	if tags.URL == j.Redact(u.String()) { // validators are valid for their own resource only
		setIf(req.Header, "If-None-Match", tags.ETag)
		setIf(req.Header, "If-Modified-Since", tags.LastModified)
	}
	resp, err := j.carrier.RoundTrip(req)
	if errors.Is(err, io.EOF) {
		err = publicErrorf(err, "was not answered: the site closed the connection")
	}
	return resp, err
}

// notReached reports whether err means that there was no connection to the site, TLS included.
func notReached(err error) bool {
	var before interface {
		error
		NotReached() bool
	}
	return errors.As(err, &before) && before.NotReached()
}

// checkHeader returns an error when a header exceeds the limits.
func checkHeader(h http.Header) error {
	n := 0
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	if n > maxHeader {
		return publicErrorf(nil, "was answered with a header longer than %d KiB", maxHeader>>10)
	}
	return nil
}

// htmlNote is the Source.Note of an HTML page.
const htmlNote = "answered with an HTML page"

// cutNote is the prefix of the Source.Note of a file that was not read completely.
const cutNote = "longer than "

// discard closes a body that is not needed. A small one is read first, so that its
// connection can be used again.
func discard(resp *http.Response) {
	if resp.ContentLength <= drainLimit { // -1 when unknown
		_, _ = io.CopyN(io.Discard, resp.Body, resp.ContentLength) // after an error only the connection is lost
	}
	resp.Body.Close()
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// withCause returns err with the cause of the end of ctx, if ctx has ended.
func withCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil || errors.Is(err, cause):
		return err
	case err == context.DeadlineExceeded || err == context.Canceled:
		return cause
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

// timeoutError is the error of a fetch or a wait that took too long. The text of the wrapped
// error is not shown: it does not help people.
type timeoutError struct {
	text  string
	cause error
}

// answerTimeout returns the error of a fetch or a wait without an answer in time.
func answerTimeout(d time.Duration) error {
	return &timeoutError{"no answer within " + d.String(), context.DeadlineExceeded}
}

// queueTimeout returns the error of a fetch that never began, or whose long body was not read.
func queueTimeout(d time.Duration) error {
	return &timeoutError{fmt.Sprintf("%s within %s", errFull, d), errFull}
}

// Error returns the text.
func (e *timeoutError) Error() string { return e.text }

// Unwrap returns the error that this one counts as.
func (e *timeoutError) Unwrap() error { return e.cause }

// Limits of redirects. RFC 9309 §2.3.1.2 requires at least five.
const (
	maxRedirects   = 10
	maxLocationLen = 8192
)

// redirects are the redirects of a fetch so far. The zero value with from set has none.
type redirects struct {
	from  *url.URL // where the fetch began
	to    string   // the origin of the last redirect; empty before the first
	count int
	seen  map[string]bool
}

// redirectStatuses are the statuses with a Location that is followed.
var redirectStatuses = []int{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
	http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
}

// follow returns the target of the redirect resp, an answer from u, or why it is not followed.
// The rules found there apply to the first authority (RFC 9309 §2.3.1.2).
func (r *redirects) follow(resp *siteReply, u *url.URL) (*url.URL, error) {
	if r.seen == nil {
		r.seen = map[string]bool{u.String(): true}
	}
	target, err := location(resp, u)
	if err != nil {
		return nil, fmt.Errorf("redirect %d of %s: %w", r.count+1, r.from, err)
	}
	if r.seen[target.String()] {
		return nil, fmt.Errorf("%s: %w", r.from, publicErrorf(nil, "redirects in a circle"))
	}
	if r.count == maxRedirects {
		return nil, fmt.Errorf("%s: %w", r.from, publicErrorf(nil, "redirects more than %d times", maxRedirects))
	}
	r.count++
	r.seen[target.String()] = true
	r.to = target.Scheme + "://" + target.Host
	return target, nil
}

// explain adds to err the first URL of the fetch and the origin of its last redirect.
func (r *redirects) explain(err error) error {
	if r.count == 0 {
		return fmt.Errorf("fetching %s: %w", r.from, err)
	}
	return fmt.Errorf("fetching %s, redirected to %s: %w", r.from, r.to, err)
}

// location returns the Location of resp with a canonical host, without fragment and
// credentials; never from https to http.
func location(resp *siteReply, u *url.URL) (*url.URL, error) {
	raw := resp.header.Get("Location")
	if raw == "" {
		return nil, publicErrorf(nil, "redirects without saying where to (status %d without a Location)", resp.status)
	}
	if len(raw) > maxLocationLen {
		return nil, publicErrorf(nil, "redirects to a URL longer than %d octets", maxLocationLen)
	}
	target, err := u.Parse(raw)
	if err != nil {
		return nil, publicErrorf(nil, "redirects to what is no valid URL")
	}
	o, err := rules.OriginOf(target)
	if err != nil {
		return nil, publicErrorf(err, "redirects to what is no valid URL")
	}
	if u.Scheme == "https" && o.Scheme == "http" {
		return nil, publicErrorf(nil, "redirects from https to http, which is not followed")
	}
	target.Scheme, target.Host = o.Scheme, o.Authority()
	target.User, target.Fragment, target.RawFragment = nil, "", ""
	return target, nil
}
