package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
)

// errLessPublic is wrapped by the error of a redirect that is not followed.
var errLessPublic = errors.New("the redirect leads to a less public address")

// GuardRedirects returns, for each call, what carries one fetch: a first
// request and then those that redirects lead to. The first goes as w takes it,
// over kept connections too. The others may not reach an address of a less
// public class than the first did. They share no connection with anybody: the
// address is looked at when it is dialled, as the name resolves at that moment,
// and a kept connection was dialled on another's behalf.
//
// A site that is only redirected to, and has another way than the first, is shown
// no client certificate: nobody but the redirecting site has asked for it.
//
// What goes through another proxy is resolved there; of such a request, only a
// host that is an address, or this machine by name, can be told to be less public.
func (w *Ways) GuardRedirects() func() http.RoundTripper {
	fetches := guardRedirects(w.of, Classify)
	return func() http.RoundTripper {
		g := fetches().(*guardedFetch)
		g.nameless = w.nameless
		return g
	}
}

func guardRedirects(way func(*http.Request) *http.Transport, classify func(netip.Addr) Class) func() http.RoundTripper {
	return func() http.RoundTripper {
		return &guardedFetch{way: way, others: map[*http.Transport]*http.Transport{}, classify: classify}
	}
}

// guardedFetch carries the requests of one fetch, one after the other.
type guardedFetch struct {
	way      func(*http.Request) *http.Transport // one of NewTransport
	nameless func(*http.Request) *http.Transport // the same, but that it shows no certificate; nil: way does not
	first    *http.Transport                     // what the first request took
	others   map[*http.Transport]*http.Transport // for each, what redirects take
	classify func(netip.Addr) Class
	begun    bool
	from     atomic.Uint32 // the Class of what the first request reached; 0 when it was not seen
}

// RoundTrip sends the first request as it is, the others guarded.
func (g *guardedFetch) RoundTrip(r *http.Request) (*http.Response, error) {
	t := g.way(r)
	if g.begun && t != g.first && g.nameless != nil {
		t = g.nameless(r)
	}
	proxied, err := throughProxy(t, r)
	switch {
	case err != nil:
		return nil, err
	case !g.begun:
		g.begun, g.first = true, t
		return t.RoundTrip(g.watched(r, proxied))
	}
	low := floor{class: Class(g.from.Load()), classify: g.classify}
	if low.class == Invalid {
		low.class = Public
	}
	if !proxied {
		r = r.WithContext(context.WithValue(r.Context(), floorKey{}, low))
	} else if c, known := g.looksLike(r.URL.Hostname()); known && c.lessPublic(low.class) {
		return nil, low.refuse(r.URL.Hostname(), c)
	}
	alone := g.others[t]
	if alone == nil {
		alone = t.Clone()
		alone.DisableKeepAlives = true
		g.others[t] = alone
	}
	return alone.RoundTrip(r)
}

// watched returns r, the first request, such that the class of what it reaches
// is noted. Behind another proxy it counts as public unless its host shows
// otherwise.
func (g *guardedFetch) watched(r *http.Request, proxied bool) *http.Request {
	if proxied {
		c, _ := g.looksLike(r.URL.Hostname())
		g.from.Store(uint32(c))
		return r
	}
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if at, err := netip.ParseAddrPort(i.Conn.RemoteAddr().String()); err == nil {
			g.from.Store(uint32(g.classify(at.Addr())))
		}
	}}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
}

func throughProxy(t *http.Transport, r *http.Request) (bool, error) {
	if t.Proxy == nil {
		return false, nil
	}
	u, err := t.Proxy(r)
	return u != nil, err
}

// looksLike returns the class of a host that is an address, or this machine by
// name (RFC 6761 §6.3); known is false for one that has to be resolved.
func (g *guardedFetch) looksLike(host string) (c Class, known bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		return g.classify(a), true
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return Loopback, true
	}
	return Invalid, false
}

// floor is the least public class that a connection may reach.
type floor struct {
	class    Class
	classify func(netip.Addr) Class
}

// floorKey is where a context has the floor of what is dialled under it.
type floorKey struct{}

// checkFloor returns why a connection dialled under ctx may not reach address,
// an IP address and a port; nil when it may.
func checkFloor(ctx context.Context, address string) error {
	low, ok := ctx.Value(floorKey{}).(floor)
	if !ok {
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return low.refuse(address, Invalid)
	}
	if c := low.classify(to.Addr()); c.lessPublic(low.class) {
		return low.refuse(to.Addr().String(), c)
	}
	return nil
}

func (f floor) refuse(where string, c Class) error {
	return fmt.Errorf("%w: %s is %s, where it began is %s", errLessPublic, where, c, f.class)
}
