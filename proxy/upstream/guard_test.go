package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"

	"heed/cache"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// networkClasses are the classes of addresses in a test's network.
var networkClasses = testkit.NetworkClasses(acl.Public, acl.Private, acl.Classify)

// everywhere are destinations in a test's network, of which all are allowed.
func everywhere(t *testing.T) *acl.Destinations {
	return &acl.Destinations{Allow: destinations(t, "*", "0.0.0.0/0", "[::]/0"), ClassOf: networkClasses}
}

// waysIn returns ways to everywhere in n.
func transportsIn(t *testing.T, n *testkit.Network) *HostTransports {
	return newTransports(t, TransportConfig{Destinations: everywhere(t), Dialer: n.Dialer()})
}

func newTransports(t *testing.T, c TransportConfig) *HostTransports {
	w := NewHostTransports(c)
	t.Cleanup(w.CloseIdleConnections)
	return w
}

// policyOf returns how the policy of host:port was obtained over w, with redirects
// guarded.
func policyOf(t *testing.T, w *HostTransports, hostPort string) rules.Source {
	t.Helper()
	o := must.Get(rules.ParseOrigin("http", hostPort))(t)
	c := cache.New(cache.Config{Transport: w, PerFetch: w.GuardRedirects()})
	return c.Policy(t.Context(), o, "").Source()
}

// A redirect of a public site must not make heed fetch what only heed can reach.
func TestGuardRedirects_ARedirectReachesNothingLessPublic(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{
		"site.test": "127.1.0.1", "inside.test": "127.2.0.1", "loop.test": "127.0.0.1", "ten.test": "10.0.0.1",
		"local.test": "169.254.1.1", "meta.test": "169.254.169.254", "ula.test": "fd00::1", "mapped.test": "64:ff9b::7f00:1",
	})
	var asked atomic.Int32
	count := func(rw http.ResponseWriter, r *http.Request) { asked.Add(1); testkit.ServeRobots(rw, r) }
	private, loop := n.Serve("127.2.0.1", count), n.Serve("127.0.0.1", count)
	for _, location := range []string{
		"http://inside.test:" + private + "/", "http://127.2.0.1:" + private + "/robots.txt",
		"http://loop.test:" + loop + "/", "http://127.0.0.1:" + loop + "/", "http://localhost:" + loop + "/",
		"http://[::ffff:127.0.0.1]:" + loop + "/", "http://0.0.0.0:" + loop + "/", "http://[::]:" + loop + "/",
		"http://10.0.0.1/", "http://ten.test/", "http://192.168.1.1/", "http://100.64.0.1/", "http://[fd00::1]/", "http://ula.test/",
		"http://169.254.1.1/", "http://local.test/", "http://[fe80::1]/",
		"http://169.254.169.254/latest/meta-data/", "http://meta.test/", "http://[fd00:ec2::254]/", "http://168.63.129.16/",
		"http://[64:ff9b::a9fe:a9fe]/", "http://mapped.test/", "http://[2002:7f00:1::]/", "http://[2001:0:808:808::80ff:fffe]/",
		"http://224.0.0.1/", "http://192.0.2.1/", "http://198.18.0.1/", "http://255.255.255.255/",
	} {
		port := n.Serve("127.1.0.1", testkit.RedirectTo(location))
		src := policyOf(t, transportsIn(t, n), "site.test:"+port)
		must.True(t, src.State == rules.Unreachable && !src.NoConnection && errors.Is(src.Err, ErrLessPublic),
			"%s: %+v", location, src)
	}
	if len(n.Outside()) > 0 || asked.Load() > 0 {
		t.Errorf("dialled %v, %d requests arrived", n.Outside(), asked.Load())
	}
}

func TestGuardRedirects_ARedirectMayReachWhatIsAsPublic(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"site.test": "127.1.0.1", "other.test": "127.1.0.2", "inside.test": "127.2.0.1"})
	public, private := n.Serve("127.1.0.2", testkit.ServeRobots), n.Serve("127.2.0.2", testkit.ServeRobots)
	follows := func(from, address, location string) {
		t.Helper()
		port := n.Serve(address, testkit.RedirectTo(location))
		must.Equal(t, policyOf(t, transportsIn(t, n), from+":"+port).State, rules.Available, "from %s to %s", from, location)
	}
	follows("site.test", "127.1.0.1", "http://other.test:"+public+"/")
	follows("127.1.0.3", "127.1.0.3", "http://other.test:"+public+"/")
	follows("inside.test", "127.2.0.1", "http://127.2.0.2:"+private+"/") // the client's own target is private
	follows("inside.test", "127.2.0.1", "http://other.test:"+public+"/")
	follows("127.0.0.1", "127.0.0.1", "http://127.2.0.2:"+private+"/")

	// The guard lets the public pass: what stops it is the test's dialler.
	port := n.Serve("127.1.0.1", testkit.RedirectTo("http://8.8.8.8/"))
	src := policyOf(t, transportsIn(t, n), "site.test:"+port)
	must.True(t, errors.Is(src.Err, testkit.ErrOutside), "to a public address: %+v", src)
	must.Equal(t, fmt.Sprint(n.Outside()), "[8.8.8.8:80]", "dialled %v", n.Outside())
}

// The way down may have several steps, and what counts is where it began.
func TestGuardRedirects_TheFirstHopDecidesForAllRedirects(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"site.test": "127.1.0.1"})
	loop := n.Serve("127.0.0.1", testkit.ServeRobots)
	second := n.Serve("127.1.0.2", testkit.RedirectTo("http://127.0.0.1:"+loop+"/robots.txt"))
	port := n.Serve("127.1.0.1", testkit.RedirectTo("http://127.1.0.2:"+second+"/robots.txt"))
	src := policyOf(t, transportsIn(t, n), "site.test:"+port)
	must.True(t, errors.Is(src.Err, ErrLessPublic), "%+v", src)
	private := n.Serve("127.2.0.1", testkit.ServeRobots)
	second = n.Serve("127.1.0.2", testkit.RedirectTo("http://127.2.0.1:"+private+"/robots.txt"))
	port = n.Serve("127.2.0.1", testkit.RedirectTo("http://127.1.0.2:"+second+"/robots.txt"))
	src = policyOf(t, transportsIn(t, n), "127.2.0.1:"+port)
	must.True(t, src.State == rules.Available, "from private over public to private: %+v", src)
}

// A connection that was dialled for somebody who may is not one for a redirect.
func TestGuardRedirects_ARedirectUsesNoKeptConnection(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	var asked atomic.Int32
	inside := n.Serve("127.2.0.1", func(rw http.ResponseWriter, r *http.Request) { asked.Add(1); testkit.ServeRobots(rw, r) })
	w := transportsIn(t, n)
	r, _ := http.NewRequest("GET", "http://127.2.0.1:"+inside+"/", nil)
	resp := must.Get(w.RoundTrip(r))(t)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	port := n.Serve("127.1.0.1", testkit.RedirectTo("http://127.2.0.1:"+inside+"/"))
	src := policyOf(t, w, "127.1.0.1:"+port)
	must.True(t, errors.Is(src.Err, ErrLessPublic) && asked.Load() == 1, "%d requests, %+v", asked.Load(), src)
}

func TestGuardRedirects_ARedirectLeavesNoConnectionBehind(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	var closes atomic.Int32
	other := n.Serve("127.1.0.2", func(rw http.ResponseWriter, r *http.Request) {
		if r.Close {
			closes.Add(1)
		}
		testkit.ServeRobots(rw, r)
	})
	port := n.Serve("127.1.0.1", testkit.RedirectTo("http://127.1.0.2:"+other+"/robots.txt"))
	src := policyOf(t, transportsIn(t, n), "127.1.0.1:"+port)
	must.True(t, src.State == rules.Available && closes.Load() == 1, "%d closed after use, %+v", closes.Load(), src)
}

// Between a look and a dial a name may move: what is dialled is what is judged.
func TestGuardRedirects_ANameIsCheckedWhenItIsDialled(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"site.test": "127.1.0.1"})
	var loop string
	site := func(rw http.ResponseWriter, r *http.Request) {
		n.Rename("site.test", "127.0.0.1")
		testkit.RedirectTo("http://site.test:"+loop+"/robots.txt")(rw, r)
	}
	loop = n.Serve("127.0.0.1", testkit.ServeRobots)
	port := n.Serve("127.1.0.1", site)
	src := policyOf(t, transportsIn(t, n), "site.test:"+port)
	must.True(t, errors.Is(src.Err, ErrLessPublic), "%+v", src)
}

func TestGuardRedirects_ARedirectNeverReachesHeedItself(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	var asked atomic.Int32
	own := n.Serve("127.1.0.9", func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	self := &acl.Addrs{}
	self.Add(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.1.0.9:" + own)))
	w := newTransports(t, TransportConfig{Self: self, Destinations: everywhere(t)})
	port := n.Serve("127.1.0.1", testkit.RedirectTo("http://127.1.0.9:"+own+"/robots.txt"))
	src := policyOf(t, w, "127.1.0.1:"+port)
	must.True(t, errors.Is(src.Err, acl.ErrSelf) && asked.Load() == 0, "%d requests, %+v", asked.Load(), src)
}

// Behind another proxy names are resolved there; addresses show what they are.
func TestGuardRedirects_BehindAnotherProxy(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	location := ""
	var asked []string
	proxy := n.Serve("127.0.0.1", func(rw http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.URL.String()); len(asked) == 1 {
			testkit.RedirectTo(location)(rw, r)
			return
		}
		testkit.ServeRobots(rw, r)
	})
	w := newTransports(t, TransportConfig{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:" + proxy}), Destinations: everywhere(t), Dialer: n.Dialer(),
	})
	ends := func(from, to string, refused bool) {
		t.Helper()
		asked, location = nil, to
		src := policyOf(t, w, from)
		if refused && (!errors.Is(src.Err, ErrLessPublic) || len(asked) != 1) || !refused && src.State != rules.Available {
			t.Errorf("from %s to %s: asked %v, %+v", from, to, asked, src)
		}
	}
	ends("site.test", "http://other.test/", false)
	ends("site.test", "http://127.0.0.1/", true)
	ends("site.test", "http://[::1]/", true)
	ends("site.test", "http://169.254.169.254/", true)
	ends("site.test", "http://a.localhost/", true)
	ends("8.8.8.8", "http://10.0.0.1/", true)
	ends("10.0.0.1", "http://10.0.0.2/", false)
	ends("10.0.0.1", "http://127.0.0.1/", true)
}

// What was not seen to connect counts as public.
func TestGuardRedirects_WithoutAFirstAddressOnlyThePublicIsReached(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	loop := n.Serve("127.0.0.1", testkit.ServeRobots)
	g := transportsIn(t, n).GuardRedirects()().(*guardedFetch)
	g.begun = true
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:"+loop+"/", nil)
	_, err := g.RoundTrip(r)
	must.True(t, errors.Is(err, ErrLessPublic), "err %v", err)
}

// A licence that a site names on another host is fetched as if the site redirected to it.
func TestNamedBy_AURLOfAnotherHostReachesNothingLessPublic(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{
		"site.test": "127.1.0.1", "other.test": "127.1.0.2", "inside.test": "127.2.0.1", "meta.test": "169.254.169.254", "near.test": "127.2.0.2",
	})
	ok := func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "ok") }
	other, inside, near := n.Serve("127.1.0.2", ok), n.Serve("127.2.0.1", ok), n.Serve("127.2.0.2", ok)
	for _, c := range []struct {
		site, address string
		reached       bool
	}{
		{"site.test", "http://other.test:" + other, true},
		{"site.test", "http://inside.test:" + inside, false},
		{"site.test", "http://127.2.0.1:" + inside, false},
		{"site.test", "http://localhost:" + inside, false},
		{"site.test", "http://meta.test/", false},
		{"127.2.0.1", "http://near.test:" + near, true},       // by its address
		{"placed.test", "http://inside.test:" + inside, true}, // by the settings
		{"inside.test", "http://near.test:" + near, false},    // a name shows nothing
		{"inside.test", "http://inside.test:" + inside, true}, // the same host
	} {
		w := newTransports(t, TransportConfig{Destinations: everywhere(t), Dialer: n.Dialer(), Resolve: map[string]string{"placed.test:80": "127.2.0.1:80"}})
		o := must.Get(rules.ParseOrigin("http", c.site))(t)
		r := must.Get(http.NewRequestWithContext(NamedBy(t.Context(), o), http.MethodGet, c.address, nil))(t)
		resp, err := w.GuardRedirects()().RoundTrip(r)
		if c.reached {
			if err != nil {
				t.Errorf("%s names %s: %v", c.site, c.address, err)
				continue
			}
			resp.Body.Close()
		} else if !errors.Is(err, ErrLessPublic) {
			t.Errorf("%s names %s: %v", c.site, c.address, err)
		}
	}
	must.True(t, len(n.Outside()) == 0, "dialled %v", n.Outside())
}
