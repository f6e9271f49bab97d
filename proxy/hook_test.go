package proxy

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/elazarl/goproxy"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// hooked returns a rig like r whose engine has another hook.
func (r *rig) hooked(hook requestHook) *rig {
	r.t.Helper()
	return r.with(func(p *Proxy) { p.engine = newEngine(p, hook) })
}

// with returns a rig like r whose proxy is changed before it serves.
func (r *rig) with(change func(*Proxy)) *rig {
	r.t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(r.t)
	p := must.Get(New(r.proxy.config))(r.t)
	change(p)
	other := *r
	other.proxy, other.addr = p, l.Addr().String()
	go func() { _ = p.Serve(l) }()
	r.t.Cleanup(func() { p.close(); p.open.closeAll() })
	return &other
}

// everyWay asks r for a page in every way that there is, each with a path of its own that
// begins with prefix, and returns the paths. What is answered does not matter.
func everyWay(r *rig, prefix string) (paths []string) {
	path := func(way string) string {
		paths = append(paths, prefix+way)
		return prefix + way
	}
	for _, m := range allModes {
		r.ask(m, question{path: path(string(m))})
		r.ask(m, question{method: "POST", path: path(string(m) + "/post"), body: "x"})
	}
	for _, m := range rawModes {
		c, before := r.raw(m)
		c.Send(webSocketHandshake(before, path(string(m)+"/upgrade")))
		c.Head("GET")
		c.Close()
	}
	plainAt, tlsAt := r.redirectedTo(elsewhere+":80", nil), r.redirectedTo(elsewhere+":443", nil)
	c := testkit.Dial(r.t, plainAt)
	for range 2 { // also the second request of a connection
		c.Send(originForm(path("transparent"+strings.Repeat("/more", len(paths)%2)), "site.test"))
		c.Answer("GET")
	}
	c = testkit.Dial(r.t, tlsAt).TLS(r.trusting("site.test", "http/1.1"))
	c.Send(originForm(path("transparent/tls"), "site.test"))
	c.Answer("GET")
	get2(r.t.(*testing.T), testkit.Dial(r.t, tlsAt).TLS(r.trusting("site.test", "h2")), path("transparent/h2"))
	return paths
}

// Whatever way a request takes, goproxy calls the hook for it once, and what reaches a site
// has passed it. Without the hook nothing reaches a site, not even for its robots.txt.
func TestTheHookDecidesOnEveryRequest(t *testing.T) {
	r := newRig(t, webSocketSite(make(chan string, 100)))
	arrivals := func() map[string]int {
		count := map[string]int{}
		for _, a := range r.site.requests() {
			count[a.Target]++
		}
		return count
	}

	none := r.hooked(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Request, *http.Response) { return r, nil })
	everyWay(none, "/unhooked/")
	if got := arrivals(); len(got) > 0 {
		t.Errorf("without the hook the site got %v", got)
	}

	var mu sync.Mutex
	calls := map[string]int{}
	counting := r.hooked(func(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		mu.Lock()
		calls[exchangeOf(r.Context()).req.target]++
		mu.Unlock()
		return onRequest(r, ctx)
	})
	allowed, refused := everyWay(counting, "/page/"), everyWay(counting, "/private/")
	mu.Lock()
	defer mu.Unlock()
	for _, path := range slices.Concat(allowed, refused) {
		must.True(t, calls[path] == 1, "the hook was called %d times for %s", calls[path], path)
	}
	got := arrivals()
	delete(got, "/robots.txt") // which heed fetches for the hook
	want := map[string]int{}
	for _, path := range allowed {
		want[path] = 1
	}
	must.Same(t, got, want, "the site")
}
