package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"heed/rules"
)

// drainLimit is how long an unwanted body may be to be read to its end.
const drainLimit = 64 << 10

// fetcher asks sites for their robots.txt. It keeps nothing between fetches.
type fetcher struct {
	transport http.RoundTripper
	userAgent string
	timeout   time.Duration // of one fetch, redirects and body included
}

// fetch asks o for its robots.txt, following redirects. as is the client's
// User-Agent to ask under, empty for our own; tags make the request
// conditional. Whatever goes wrong is told in the answer.
func (f *fetcher) fetch(o rules.Origin, as string, tags validators) answer {
	// Nobody's request carries a fetch: all who wait share it, and the first
	// of them to leave must not take it along.
	ctx, cancel := context.WithTimeoutCause(context.Background(), f.timeout, noAnswer(f.timeout))
	defer cancel()
	a := answer{origin: o, as: as}
	u := &url.URL{Scheme: o.Scheme, Host: o.Authority(), Path: "/robots.txt"}
	hops := redirects{from: u}
	for {
		resp, connected, err := f.get(ctx, u, as, tags)
		if err != nil {
			a.noConnection = hops.count == 0 && !connected
			a.err = hops.explain(because(ctx, err))
			return a
		}
		if !isRedirect(resp.StatusCode) {
			f.take(ctx, &a, resp, u)
			if a.err != nil {
				a.err = hops.explain(a.err)
			}
			return a
		}
		discard(resp)
		if u, err = hops.follow(resp, u); err != nil {
			a.err = err
			return a
		}
	}
}

// get makes one request. connected reports whether a connection to u's host
// was had, TLS included.
func (f *fetcher) get(ctx context.Context, u *url.URL, as string, tags validators) (resp *http.Response, connected bool, err error) {
	trace := &httptrace.ClientTrace{
		// Each attempt begins anew: a pooled connection may turn out to be dead.
		GetConn: func(string) { connected = false },
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, false, err
	}
	req.Header.Set("User-Agent", f.userAgent)
	if as != "" {
		req.Header.Set("User-Agent", as)
	}
	req.Header.Set("Accept", "text/plain, */*;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip")
	if tags.url == u.String() { // another resource's validators would mean nothing
		setIf(req.Header, "If-None-Match", tags.etag)
		setIf(req.Header, "If-Modified-Since", tags.lastModified)
	}
	resp, err = f.transport.RoundTrip(req)
	if err == io.EOF { // net/http says no more
		err = fmt.Errorf("the connection was closed without an answer: %w", err)
	}
	return resp, connected, err
}

// take moves the final answer into a and closes it.
func (f *fetcher) take(ctx context.Context, a *answer, resp *http.Response, u *url.URL) {
	a.status, a.header, a.url = resp.StatusCode, resp.Header, u.String()
	if a.status != http.StatusOK && a.status != http.StatusNonAuthoritativeInfo {
		discard(resp)
		return
	}
	defer resp.Body.Close()
	body, cut, err := readBody(resp)
	switch {
	case err != nil:
		a.err = because(ctx, fmt.Errorf("reading it: %w", err))
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
	case err == context.DeadlineExceeded:
		return cause
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

// noAnswer is why a fetch or a wait was given up after so long. It wraps
// context.DeadlineExceeded, whose own words tell a person little.
type noAnswer time.Duration

// Error says how long it was.
func (d noAnswer) Error() string { return "no answer within " + time.Duration(d).String() }

// Unwrap makes it a context.DeadlineExceeded.
func (d noAnswer) Unwrap() error { return context.DeadlineExceeded }
