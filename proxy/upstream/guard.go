package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"

	"heed/internal/judge/acl"
	"heed/rules"
)

// ErrLessPublic is wrapped by the error of a redirect that is not followed, since
// it leads to a less public address than the first request of its fetch.
var ErrLessPublic = errors.New("the redirect leads to a less public address")

// GuardRedirects returns a function that returns a RoundTripper for one fetch: a first
// request and then those of its redirects. The first is sent as h sends any request,
// also over idle connections. The others may not reach an address of a less public
// class than the first did. They use separate connections: the address is checked
// when it is dialled, as the name resolves at that moment, and an idle connection was
// dialled for another request.
//
// A site that is only redirected to, and has another transport than the first, is
// shown no client certificate: only the redirecting site has asked for its URL.
//
// All requests of a fetch under NamedBy count as redirects from the site that names their
// URL, unless they go to the same host.
//
// A request that goes through another proxy is resolved there; of such a request,
// only a host that is an address, or this machine by name, is known to be less
// public.
func (h *HostTransports) GuardRedirects() func() http.RoundTripper {
	return func() http.RoundTripper {
		return &guardedFetch{transports: h, others: map[*transport]*transport{}}
	}
}

// guardedFetch carries the requests of one fetch, one after the other.
type guardedFetch struct {
	transports *HostTransports
	first      *transport                // what the first request took
	others     map[*transport]*transport // for each, what redirects take
	begun      bool
	from       atomic.Uint32 // the class of what the first request reached; 0 when it was not seen
}

// RoundTrip implements http.RoundTripper.
func (g *guardedFetch) RoundTrip(r *http.Request) (*http.Response, error) {
	return g.Send(&Request{Request: r})
}

// Send sends the first request as it is, the others guarded.
func (g *guardedFetch) Send(q *Request) (*http.Response, error) {
	r := q.Request
	t := g.transports.transport(r.URL.Scheme, r.URL.Host)
	if from, named := r.Context().Value(namedKey{}).(rules.Origin); named && !g.begun && r.URL.Hostname() != from.Host {
		g.begun, g.first = true, g.transports.transport(from.Scheme, from.Authority())
		g.from.Store(uint32(g.placedClass(from)))
	}
	if g.begun && t != g.first {
		t = g.transports.withoutCertificate(t)
	}
	through, err := t.dialer.through(r)
	proxied := through != nil
	switch {
	case err != nil:
		return nil, err
	case !g.begun:
		g.begun, g.first = true, t
		return g.sendFirst(t, q, proxied)
	}
	low := floor{class: acl.Class(g.from.Load()), classify: g.class}
	if low.class == acl.Invalid {
		low.class = acl.Public
	}
	if !proxied {
		q.Request = r.WithContext(context.WithValue(r.Context(), floorKey{}, low))
	} else if c, known := g.looksLike(r.URL.Hostname()); known && c.LessPublic(low.class) {
		return nil, low.refuse(r.URL.Hostname(), c)
	}
	alone := g.others[t]
	if alone == nil {
		alone = t.alone()
		g.others[t] = alone
	}
	return alone.Send(q)
}

// Scope identifies what the redirected requests of the fetch may reach, and as whom: those of
// fetches with the same scope have the same answers. ctx is that of the next request.
func (g *guardedFetch) Scope(ctx context.Context) string {
	first, class := g.first, acl.Class(g.from.Load())
	if from, named := ctx.Value(namedKey{}).(rules.Origin); named && !g.begun {
		first, class = g.transports.transport(from.Scheme, from.Authority()), g.placedClass(from)
	}
	if class == acl.Invalid {
		class = acl.Public
	}
	return fmt.Sprintf("%v %p", class, first)
}

// namedKey is the context key of NamedBy.
type namedKey struct{}

// NamedBy returns ctx for a fetch of a URL that the site at o has named, such as a licence:
// only o has asked for it. On another host it may not reach an address of a less public
// class than o's. That one counts as public unless its host, or the address that
// TransportConfig.Resolve has for it, shows otherwise.
func NamedBy(ctx context.Context, o rules.Origin) context.Context {
	return context.WithValue(ctx, namedKey{}, o)
}

// placedClass returns the class of an origin by its name, or by the address that the
// settings give it; acl.Invalid when these do not show it.
func (g *guardedFetch) placedClass(o rules.Origin) acl.Class {
	if to, placed := g.transports.config.Resolve[o.HostPort()]; placed {
		if at, err := netip.ParseAddrPort(to); err == nil {
			return g.class(at.Addr())
		}
	}
	c, _ := g.looksLike(o.Host)
	return c
}

// sendFirst sends q, the first request, and stores the class of the address it reaches.
// Behind another proxy it counts as public unless its host shows otherwise.
func (g *guardedFetch) sendFirst(t *transport, q *Request, proxied bool) (*http.Response, error) {
	if proxied {
		c, _ := g.looksLike(q.URL.Hostname())
		g.from.Store(uint32(c))
		return t.Send(q)
	}
	resp, err := t.Send(q)
	if q.Reached != nil {
		if at, err := netip.ParseAddrPort(q.Reached.String()); err == nil {
			g.from.Store(uint32(g.class(at.Addr())))
		}
	}
	return resp, err
}

func (g *guardedFetch) class(a netip.Addr) acl.Class {
	return g.transports.config.Destinations.Classify(a)
}

// looksLike returns the class of a host that is an address, or this machine by
// name (RFC 6761 §6.3); known is false for a host that has to be resolved.
func (g *guardedFetch) looksLike(host string) (c acl.Class, known bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		return g.class(a), true
	}
	if acl.NamesThisMachine(host) {
		return acl.Loopback, true
	}
	return acl.Invalid, false
}

// floor is the least public class that a connection may reach.
type floor struct {
	class    acl.Class
	classify func(netip.Addr) acl.Class
}

// floorKey is the context key of the floor for what is dialled under a context.
type floorKey struct{}

// checkFloor returns the error for a connection dialled under ctx that may not reach to; nil
// when it may.
func checkFloor(ctx context.Context, to netip.Addr) error {
	low, ok := ctx.Value(floorKey{}).(floor)
	if !ok {
		return nil
	}
	if c := low.classify(to); c.LessPublic(low.class) {
		return low.refuse(to.String(), c)
	}
	return nil
}

func (f floor) refuse(where string, c acl.Class) error {
	return fmt.Errorf("%w: %s is %s, where it began is %s", ErrLessPublic, where, c, f.class)
}
