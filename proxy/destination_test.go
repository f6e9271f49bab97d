package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
	"heed/rules"
)

// networkClasses are the classes of addresses in a test's network.
var networkClasses = testkit.NetworkClasses(acl.Public, acl.Private, acl.Classify)

// rigIn returns a rig whose sites are in n, and that goes to d only.
func rigIn(t *testing.T, n *testkit.Network, d *acl.Destinations, more ...func(*Config)) *rig {
	d.ClassOf = networkClasses
	return newRig(t, hello, append(more, func(c *Config) {
		w := upstream.NewHostTransports(upstream.TransportConfig{Destinations: d, Dialer: n.Dialer()})
		t.Cleanup(w.CloseIdleConnections)
		c.Upstream, c.Destinations, c.DialTunnel = w, d, w.DialTunnel
		c.Policies = cache.New(cache.Config{Transport: w, PerFetch: w.GuardRedirects()})
	})...)
}

func destination(t *testing.T, text string) acl.Destination {
	t.Helper()
	return must.Get(acl.ParseDestination(text))(t)
}

// Nothing that a client can write leads into heed's network, in any mode: no
// address, no name, and /robots.txt no more than the rest.
func TestDestination_PrivateOnesAreRefusedInEveryMode(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{
		"inside.test": "127.2.0.1", "loop.test": "127.0.0.1", "ten.test": "10.0.0.1", "meta.test": "169.254.169.254",
		"ula.test": "fd00::1", "nat.test": "64:ff9b::a00:1", "both.test": "10.0.0.1 127.2.0.1",
	})
	r := rigIn(t, n, &acl.Destinations{})
	for host, class := range map[string]string{
		"inside.test": "private", "loop.test": "loopback", "ten.test": "private", "meta.test": "metadata", "ula.test": "unique-local",
		"nat.test": "private", "both.test": "private", "127.0.0.1": "loopback", "10.0.0.1": "private", "169.254.169.254": "metadata",
		"[::1]": "loopback", "[fd00:ec2::254]": "metadata", "[::ffff:10.0.0.1]": "private", "224.0.0.1": "multicast", "0.0.0.0": "unspecified",
	} {
		eachMode(t, []mode{plain, mitmH1, mitmH2, inTunnel, absolute}, func(t *testing.T, m mode) {
			if m == mitmH2 && strings.HasPrefix(host, "[") {
				return // the test's client has no server name for it
			}
			for _, path := range []string{"/page-" + string(m), "/robots.txt"} {
				a := r.in(t).ask(m, question{host: host, path: path})
				if a.StatusCode != 502 || proxyStatusOf(t, a.Header) != "destination_ip_prohibited" || !strings.Contains(a.body, class+" address") {
					t.Errorf("%s%s: %s %s", host, path, a.Status, a.body)
				}
				must.True(t, strings.Contains(host, "127.") || !strings.Contains(a.body, "127.2.0.1"),
					"%s: the client learns where the name leads: %s", host, a.body)
			}
			e := r.records.await(t, host, func(e *audit.Entry) bool {
				return e.Target == "/page-"+string(m) && strings.Contains(e.Detail, class) && e.Decision.Reason == rules.ReasonDestination
			})
			must.True(t, e.Decision.Verdict == rules.Refuse && (e.Policy != nil || e.Judged == audit.NotJudged),
				"record of %s: %+v", host, e)
		})
	}
	must.True(t, len(n.Outside()) == 0, "dialled %v", n.Outside())
}

// A tunnel that heed does not look into leads no further than anything else.
func TestDestination_PrivateOnesAreRefusedToTunnels(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"inside.test": "127.2.0.1", "ten.test": "10.0.0.1"})
	r := rigIn(t, n, &acl.Destinations{},
		settled(t, map[string]acl.HTTPS{"inside.test": acl.Tunnel, "ten.test": acl.HostOnly, "10.0.0.1": acl.Tunnel}))
	for _, host := range []string{"inside.test", "ten.test", "10.0.0.1"} {
		c := testkit.Dial(t, r.addr)
		c.Send("CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + ":443\r\n\r\n")
		a := c.Answer("CONNECT")
		if a.StatusCode != 502 || proxyStatusOf(t, a.Header) != "destination_ip_prohibited" || !strings.Contains(string(a.Body), "private address") {
			t.Errorf("%s: %s %s", host, a.Status, a.Body)
		}
		e := r.connectTo(host)
		must.True(t, strings.Contains(e.Detail+e.Outcome.Err, "a private address"), "record of %s: %+v", host, e)
	}
	must.True(t, len(n.Outside()) == 0, "dialled %v", n.Outside())
}

// A name may move between the look at its robots.txt and the request.
func TestDestination_IsCheckedAtEachDial(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"site.test": "127.1.0.1"})
	var asked atomic.Int32
	site := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "close")
		if r.URL.Path != "/robots.txt" {
			asked.Add(1)
		}
		testkit.ServeRobots(rw, r)
	}
	port := n.Serve("127.1.0.1", site)
	r := rigIn(t, n, &acl.Destinations{})
	if a := r.ask(plain, question{host: "site.test:" + port, path: "/doc"}); a.StatusCode != 200 {
		t.Fatal(a.Status, a.body)
	}
	n.Rename("site.test", "127.2.0.1")
	a := r.ask(plain, question{host: "site.test:" + port, path: "/moved"})
	must.True(t, a.StatusCode == 502 && proxyStatusOf(t, a.Header) == "destination_ip_prohibited" && asked.Load() == 1,
		"%s %s, %d requests", a.Status, a.body, asked.Load())
	e := r.records.target(t, "/moved")
	must.True(t, strings.Contains(e.Outcome.Err, "127.2.0.1, a private address"), "record %+v", e.Outcome)
}

// Of several addresses only those are dialled that may be.
func TestDestination_OfSeveralAddressesAPermittedOneIsDialled(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"site.test": "127.2.0.1 10.0.0.1 fd00::1 127.1.0.1"})
	var inside atomic.Int32
	port := n.Serve("127.1.0.1", testkit.ServeRobots)
	n.ServeAt("127.2.0.1:"+port, func(http.ResponseWriter, *http.Request) { inside.Add(1) })
	r := rigIn(t, n, &acl.Destinations{})
	a := r.ask(plain, question{host: "site.test:" + port, path: "/doc"})
	must.True(t, a.StatusCode == 200 && inside.Load() == 0 && len(n.Outside()) == 0,
		"%s %s, %d requests inside, dialled %v", a.Status, a.body, inside.Load(), n.Outside())
}

// What the operator allows is reached, in traffic and for robots.txt.
func TestDestination_ExceptionsAreReached(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"inside.test": "127.2.0.1", "other.test": "127.2.0.1", "bad.test": "127.1.0.1"})
	port := n.Serve("127.2.0.1", testkit.ServeRobots)
	n.ServeAt("127.1.0.1:"+port, testkit.ServeRobots)
	r := rigIn(t, n, &acl.Destinations{
		Allow:  []acl.Destination{destination(t, "inside.test:"+port)},
		Refuse: []acl.Destination{destination(t, "bad.test"), destination(t, "*:25")},
	})
	for host, want := range map[string]int{"inside.test": 200, "other.test": 502, "bad.test": 502, "127.2.0.1": 502} {
		a := r.ask(plain, question{host: host + ":" + port, path: "/doc"})
		must.Equal(t, a.StatusCode, want, "%s: %s %s", host, a.Status, a.body)
	}
	must.Contain(t, r.ask(plain, question{host: "bad.test:" + port, path: "/doc"}).body, "list of places")
	e := r.records.await(t, "bad.test", func(e *audit.Entry) bool { return e.Host == "bad.test:"+port })
	must.True(t, e.Policy == nil, "the robots.txt of a refused name was asked for")
}
