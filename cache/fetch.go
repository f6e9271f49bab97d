package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"sync"
	"time"

	"heed/rules"
)

// Limits of fetching, beside its time (Config.Timeout), its redirects
// (redirect.go) and its bytes (body.go).
const (
	// maxHeader is how long the header of an answer may be, in octets. The
	// Transport bounds what is read of it.
	maxHeader = 64 << 10
	// drainLimit is how long an unwanted body may be to be read to its end.
	drainLimit = 64 << 10

	maxFetches     = 512  // under way at a time
	maxSiteFetches = 16   // of them to one site
	maxQueue       = 2048 // waiting for their turn
	maxSiteQueue   = 256  // of them for one site
	// slowFetch is how long a fetch may take although others wait for its place.
	slowFetch = 5 * time.Second
)

// fetcher asks sites for their robots.txt. It keeps nothing between fetches.
type fetcher struct {
	perFetch  func() http.RoundTripper
	userAgent string
	timeout   time.Duration // of one fetch, redirects and body included; and of the wait for its turn
	*Lanes
}

// Lanes bound what all fetches of the caches that share them take at a time:
// how many they are, of one site and in all, and the bytes of their bodies. The
// zero value is ready; it is safe for concurrent use.
type Lanes struct {
	once     sync.Once
	turns    lane          // of all fetches
	long     lane          // of those whose body is a long one
	decoders chan struct{} // one place for each that may work at a time
}

func (l *Lanes) open() {
	l.turns = lane{
		most: maxFetches, mostOfSite: maxSiteFetches,
		mostWaiting: maxQueue, mostWaitingSite: maxSiteQueue, patience: slowFetch,
	}
	l.long = lane{
		most: maxLongBodies, mostOfSite: maxSiteLongBodies,
		mostWaiting: maxFetches, mostWaitingSite: maxSiteFetches, patience: slowFetch,
	}
	l.decoders = make(chan struct{}, runtime.GOMAXPROCS(0))
}

// newFetcher returns a fetcher for a config with its defaults filled in.
func newFetcher(c Config) *fetcher {
	f := &fetcher{
		perFetch:  c.PerFetch,
		userAgent: c.UserAgent,
		// A little less than the wait of callers, so that who waits for all of a
		// fetch learns how it failed.
		timeout: c.Timeout - c.Timeout/30,
		Lanes:   c.Lanes,
	}
	if f.Lanes == nil {
		f.Lanes = &Lanes{}
	}
	f.once.Do(f.open)
	if f.perFetch == nil {
		f.perFetch = func() http.RoundTripper { return c.Transport }
	}
	return f
}

// job is one fetch.
type job struct {
	*fetcher
	carrier http.RoundTripper
	site    string // for the lanes
	end     context.CancelCauseFunc
	passes  []*pass
}

// fetch asks o for its robots.txt, following redirects. as is the client's
// User-Agent to ask under, empty for our own; tags make the request
// conditional. Whatever goes wrong is told in the answer, which is to be done
// with.
func (f *fetcher) fetch(o rules.Origin, as string, tags validators) answer {
	// Nobody's request carries a fetch: all who wait share it, and the first
	// of them to leave must not take it along.
	ctx, end := context.WithCancelCause(context.Background())
	j := &job{fetcher: f, site: siteOf(o.Host), end: end}
	panics := true
	defer func() {
		if panics { // then nobody has the answer to be done with
			j.leave()
		}
	}()
	a := j.answer(ctx, o, as, tags)
	panics = false
	return a
}

// answer waits for the fetch's turn and makes it.
func (j *job) answer(ctx context.Context, o rules.Origin, as string, tags validators) answer {
	a := answer{origin: o, as: as, release: j.leave}
	if err := j.enter(ctx, &j.turns); err != nil {
		a.err, a.ours = fmt.Errorf("fetching %s: %w", o.RobotsURL(), err), true
		return a
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.timeout, noAnswer(j.timeout))
	defer cancel()
	j.carrier = j.perFetch()
	j.walk(ctx, &a, tags)
	return a
}

// enter takes a place in l until leave.
func (j *job) enter(ctx context.Context, l *lane) error {
	ctx, cancel := context.WithTimeoutCause(ctx, j.timeout, noTurn(j.timeout))
	defer cancel()
	p, err := l.enter(ctx, j.site, j.end)
	if err == nil {
		j.passes = append(j.passes, p)
	}
	return err
}

func (j *job) leave() {
	j.end(nil)
	for _, p := range j.passes {
		p.leave()
	}
	j.passes = nil
}

// walk follows the redirects to the final answer.
func (j *job) walk(ctx context.Context, a *answer, tags validators) {
	o := a.origin
	u := &url.URL{Scheme: o.Scheme, Host: o.Authority(), Path: "/robots.txt"}
	hops := redirects{from: u}
	for {
		a.hops = append(a.hops, u.String())
		resp, connected, err := j.get(ctx, u, a.as, tags)
		if err != nil {
			a.noConnection = hops.count == 0 && !connected
			a.err = hops.explain(because(ctx, err))
			return
		}
		if err := tooLong(resp.Header); err != nil {
			resp.Body.Close()
			a.err = hops.explain(err)
			return
		}
		if !isRedirect(resp.StatusCode) {
			j.take(ctx, a, resp, u)
			if a.err != nil {
				a.err = hops.explain(a.err)
			}
			return
		}
		discard(resp)
		if u, err = hops.follow(resp, u); err != nil {
			a.err = err
			return
		}
	}
}

// get makes one request. connected reports whether a connection to u's host
// was had, TLS included.
func (j *job) get(ctx context.Context, u *url.URL, as string, tags validators) (resp *http.Response, connected bool, err error) {
	trace := &httptrace.ClientTrace{
		// Each attempt begins anew: a pooled connection may turn out to be dead.
		GetConn: func(string) { connected = false },
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, false, err
	}
	req.Header.Set("User-Agent", j.userAgent)
	if as != "" {
		req.Header.Set("User-Agent", as)
	}
	req.Header.Set("Accept", "text/plain, */*;q=0.5")
	req.Header.Set("Accept-Encoding", acceptEncoding)
	if tags.url == u.String() { // another resource's validators would mean nothing
		setIf(req.Header, "If-None-Match", tags.etag)
		setIf(req.Header, "If-Modified-Since", tags.lastModified)
	}
	resp, err = j.carrier.RoundTrip(req)
	if err == io.EOF { // net/http says no more
		err = tell(err, "was not answered: the site closed the connection")
	}
	return resp, connected, err
}

// tooLong returns why a header is not worth reading; nil when it is.
func tooLong(h http.Header) error {
	n := 0
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	if n > maxHeader {
		return tell(nil, "was answered with a header longer than %d KiB", maxHeader>>10)
	}
	return nil
}

// take moves the final answer into a and closes it.
func (j *job) take(ctx context.Context, a *answer, resp *http.Response, u *url.URL) {
	a.status, a.header, a.url = resp.StatusCode, resp.Header, u.String()
	if a.status != http.StatusOK && a.status != http.StatusNonAuthoritativeInfo {
		discard(resp)
		return
	}
	defer resp.Body.Close()
	r := room{long: func() error { return j.enter(ctx, &j.long) }, decoders: j.decoders}
	body, cut, err := r.readBody(resp)
	switch {
	case err != nil:
		a.err = because(ctx, fmt.Errorf("reading it: %w", err))
		a.ours = errors.Is(err, errFull)
	case cut:
		a.note = fmt.Sprintf("longer than %d MiB: the rest is ignored", maxBody>>20)
	case isHTML(resp.Header, body):
		a.note = "answered with an HTML page"
	}
	a.body = body
}

// discard closes a body nobody wants. A small one is read first, so that its
// connection can be used again.
func discard(resp *http.Response) {
	if resp.ContentLength <= drainLimit { // -1 when unknown
		_, _ = io.CopyN(io.Discard, resp.Body, resp.ContentLength) // failing loses the connection, no more
	}
	resp.Body.Close()
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// because returns err, with the reason for which ctx ended when it did.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil || errors.Is(err, cause):
		return err
	case err == context.DeadlineExceeded || err == context.Canceled:
		return cause
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

// noAnswer is why a fetch or a wait was given up after so long. It wraps
// context.DeadlineExceeded, whose own words tell a person little.
type noAnswer time.Duration

// Error says how long was waited.
func (d noAnswer) Error() string { return "no answer within " + time.Duration(d).String() }

// Unwrap returns context.DeadlineExceeded.
func (d noAnswer) Unwrap() error { return context.DeadlineExceeded }

// noTurn is why a fetch never began, or its long body was not read.
type noTurn time.Duration

// Error says how long was waited.
func (d noTurn) Error() string {
	return fmt.Sprintf("%s within %s", errFull, time.Duration(d))
}

// Unwrap returns errFull.
func (d noTurn) Unwrap() error { return errFull }
