package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/terms"
	"heed/internal/testkit"
	"heed/rules"
)

// entries are destinations as an operator writes them.
func entries(t testing.TB, texts ...string) []Destination {
	t.Helper()
	var out []Destination
	for _, text := range texts {
		d, err := ParseDestination(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// The five steps of Destinations, each with what it lets pass and what it stops.
func TestHeed_DestinationsAreJudgedInOneOrder(t *testing.T) {
	d := &Destinations{
		Allow:  entries(t, "10.1.0.0/16", "*.corp.example", "printer.example:631", "169.254.169.254", "[fd00:1::]/32:443", "*:8080"),
		Refuse: entries(t, "10.1.9.0/24", "bad.corp.example", "*:25", "8.8.4.4", "*.ads.example", "192.0.2.7:8081"),
	}
	ask := func(host, address string, port uint16) error {
		v, err := d.visit(host, port, false)
		if err == nil && address != "" {
			err = v.at(netip.MustParseAddr(address), port)
		}
		return err
	}
	allowed := func(host, address string, port uint16) {
		t.Helper()
		if err := ask(host, address, port); err != nil {
			t.Errorf("%s %s port %d: %v", host, address, port, err)
		}
	}
	refused := func(host, address string, port uint16, why string) {
		t.Helper()
		if err := ask(host, address, port); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s %s port %d: %v, want %q", host, address, port, err, why)
		}
	}
	// 1. What is on the list of refusals, by name or by address.
	refused("bad.corp.example", "", 80, "refuse_to")
	refused("BAD.corp.example.", "", 80, "refuse_to")
	refused("x.ads.example", "", 80, "refuse_to")
	allowed("ads.example", "1.1.1.1", 80)
	refused("site.example", "", 25, "refuse_to")
	refused("1.1.1.1", "", 25, "refuse_to")
	refused("site.example", "8.8.4.4", 443, "refuse_to")
	refused("site.example", "64:ff9b::8.8.4.4", 443, "refuse_to")
	refused("host.example", "10.1.9.9", 80, "refuse_to")
	refused("x.corp.example", "10.1.9.9", 80, "refuse_to")
	refused("192.0.2.7", "", 8081, "refuse_to")
	// 2. Addresses on the list of exceptions.
	allowed("10.1.2.3", "", 80)
	allowed("any.example", "10.1.2.3", 80)
	allowed("169.254.169.254", "", 80)
	allowed("meta.example", "::ffff:169.254.169.254", 80)
	allowed("ula.example", "fd00:1::5", 443)
	refused("ula.example", "fd00:1::5", 80, "unique-local")
	refused("nat.example", "64:ff9b::10.1.2.3", 80, "private") // another address than that one
	// 3. Public ones.
	allowed("site.example", "1.1.1.1", 443)
	allowed("site.example", "2606:4700::1", 443)
	// 4. heed's own network: by a name on the list.
	allowed("x.corp.example", "10.2.0.1", 80)
	allowed("x.corp.example", "127.0.0.1", 80)
	refused("corp.example", "10.2.0.1", 80, "private")
	allowed("printer.example", "192.168.1.2", 631)
	refused("printer.example", "192.168.1.2", 80, "private")
	allowed("10.2.0.1", "", 8080)
	refused("10.2.0.1", "", 80, "private")
	refused("127.0.0.1", "", 80, "loopback")
	refused("0.0.0.0", "", 80, "unspecified")
	refused("::1", "", 80, "loopback")
	// 5. What is no site's is opened by no name.
	refused("x.corp.example", "169.254.170.2", 80, "metadata")
	refused("x.corp.example", "169.254.1.1", 80, "link-local")
	refused("x.corp.example", "224.0.0.1", 80, "multicast")
	refused("100.100.100.200", "", 8080, "metadata")
	refused("fe80::1", "", 8080, "link-local")
}

func TestHeed_PrivateOpensTheOwnNetworkAndNoMore(t *testing.T) {
	d := &Destinations{Private: true}
	for address, want := range map[string]bool{
		"127.0.0.1": true, "10.0.0.1": true, "fd00::1": true, "fec0::1": true, "100.64.0.1": true, "198.18.0.1": true, "0.0.0.0": true,
		"169.254.169.254": false, "fd00:ec2::254": false, "100.100.100.200": false, "169.254.0.1": false, "fe80::1": false,
		"224.0.0.1": false, "255.255.255.255": false, "192.0.2.1": false, "240.0.0.1": false, "::ffff:169.254.169.254": false,
	} {
		if _, err := d.visit(address, 80, false); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := (*Destinations)(nil).visit("169.254.169.254", 80, false); err != nil {
		t.Errorf("without any: %v", err)
	}
}

func TestHeed_EntriesThatAreNoDestinations(t *testing.T) {
	for _, text := range []string{
		"", " ", "http://a.example/", "a.example/x", "user@a.example", "a b", "*.*.example", "a.*.example", "*x.example", ".example",
		"10.0.0.0/33", "10.0.0.1/8", "1.2.3", "0x7f.1", "[::1", "::1]", "fe80::1%eth0", "a.example:0", "a.example:99999", "a.example:x",
		"::ffff:10.0.0.0/104", "10.0.0.0/8/8",
	} {
		if d, err := ParseDestination(text); err == nil {
			t.Errorf("%q is %+v", text, d)
		}
	}
}

// guarded is a rig whose sites are found in the town.
func (w *town) guarded(d *Destinations) *rig {
	d.classify = townClasses
	return newRig(w.t, hello, func(c *Config) {
		tr := w.transportTo(d)
		c.Upstream, c.Destinations = tr, d
		c.Policies = cache.New(cache.Config{Transport: tr, PerFetch: guardRedirects(only(tr), townClasses)})
	})
}

// Nothing that a client can write leads into heed's network, in any mode: no
// address, no name, and /robots.txt no more than the rest.
func TestTrap21_PrivateDestinationsAreRefused(t *testing.T) {
	w := &town{t: t, names: map[string]string{
		"inside.test": "127.2.0.1", "loop.test": "127.0.0.1", "ten.test": "10.0.0.1", "meta.test": "169.254.169.254",
		"ula.test": "fd00::1", "nat.test": "64:ff9b::a00:1", "both.test": "10.0.0.1 127.2.0.1",
	}}
	r := w.guarded(&Destinations{})
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
				if !strings.Contains(host, "127.") && strings.Contains(a.body, "127.2.0.1") {
					t.Errorf("%s: the client learns where the name leads: %s", host, a.body)
				}
			}
			e := r.records.await(t, host, func(e *audit.Entry) bool {
				return e.Target == "/page-"+string(m) && strings.Contains(e.Detail, class) && e.Decision.Reason == rules.ReasonDestination
			})
			if e.Decision.Verdict != rules.Refuse || e.Policy == nil && e.Judged != audit.NotJudged {
				t.Errorf("record of %s: %+v", host, e)
			}
		})
	}
	if len(w.reached) > 0 {
		t.Errorf("dialled %v", w.reached)
	}
}

// A tunnel that heed does not look into leads no further than anything else.
func TestTrap21_PrivateDestinationsAreRefusedToTunnels(t *testing.T) {
	w := &town{t: t, names: map[string]string{"inside.test": "127.2.0.1", "ten.test": "10.0.0.1"}}
	d := &Destinations{classify: townClasses}
	r := newRig(t, hello, settled(t, map[string]terms.HTTPS{"inside.test": terms.Tunnel, "ten.test": terms.HostOnly, "10.0.0.1": terms.Tunnel}), func(c *Config) {
		tr := w.transportTo(d)
		c.Upstream, c.Destinations, c.DialTunnel = tr, d, TunnelDialer(tr)
		c.Policies = cache.New(cache.Config{Transport: tr})
	})
	for _, host := range []string{"inside.test", "ten.test", "10.0.0.1"} {
		c := testkit.Dial(t, r.addr)
		c.Send("CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + ":443\r\n\r\n")
		a := c.Answer("CONNECT")
		if a.StatusCode != 502 || proxyStatusOf(t, a.Header) != "destination_ip_prohibited" || !strings.Contains(string(a.Body), "private address") {
			t.Errorf("%s: %s %s", host, a.Status, a.Body)
		}
		if e := r.connectTo(host); !strings.Contains(e.Detail+e.Outcome.Err, "a private address") {
			t.Errorf("record of %s: %+v", host, e)
		}
	}
	if len(w.reached) > 0 {
		t.Errorf("dialled %v", w.reached)
	}
}

// Where a robots.txt redirects to is looked at as what clients ask for is.
func TestTrap21_RedirectsOfRobotsKeepToTheLists(t *testing.T) {
	w := &town{t: t, names: map[string]string{"site.test": "127.1.0.1", "bad.test": "127.1.0.2"}}
	other := w.site("127.1.0.2", townRobots)
	for _, location := range []string{"http://bad.test:" + other + "/", "http://127.1.0.2:" + other + "/"} {
		port := w.site("127.1.0.1", redirectTo(location))
		d := &Destinations{Refuse: entries(t, "bad.test", "127.1.0.2"), classify: townClasses}
		src := w.policy(w.transportTo(d), "site.test:"+port)
		if src.State != rules.Unreachable || src.NoConnection || !errors.Is(src.Err, ErrDestination) {
			t.Errorf("%s: %+v", location, src)
		}
	}
}

// A name may move between the look at its robots.txt and the request.
func TestTrap21_EachDialIsLookedAt(t *testing.T) {
	w := &town{t: t, names: map[string]string{"site.test": "127.1.0.1"}}
	var asked atomic.Int32
	site := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "close")
		if r.URL.Path != "/robots.txt" {
			asked.Add(1)
		}
		townRobots(rw, r)
	}
	port := w.site("127.1.0.1", site)
	r := w.guarded(&Destinations{})
	if a := r.ask(plain, question{host: "site.test:" + port, path: "/doc"}); a.StatusCode != 200 {
		t.Fatal(a.Status, a.body)
	}
	w.mu.Lock()
	w.names["site.test"] = "127.2.0.1"
	w.mu.Unlock()
	a := r.ask(plain, question{host: "site.test:" + port, path: "/moved"})
	if a.StatusCode != 502 || proxyStatusOf(t, a.Header) != "destination_ip_prohibited" || asked.Load() != 1 {
		t.Errorf("%s %s, %d requests", a.Status, a.body, asked.Load())
	}
	if e := r.records.target(t, "/moved"); !strings.Contains(e.Outcome.Err, "127.2.0.1, a private address") {
		t.Errorf("record %+v", e.Outcome)
	}
}

// Of several addresses only those are dialled that may be.
func TestTrap21_OfSeveralAddressesThePermittedServes(t *testing.T) {
	w := &town{t: t, names: map[string]string{"site.test": "127.2.0.1 10.0.0.1 fd00::1 127.1.0.1"}}
	var inside atomic.Int32
	port := w.site("127.1.0.1", townRobots)
	w.at("127.2.0.1:"+port, func(http.ResponseWriter, *http.Request) { inside.Add(1) })
	r := w.guarded(&Destinations{})
	a := r.ask(plain, question{host: "site.test:" + port, path: "/doc"})
	if a.StatusCode != 200 || inside.Load() > 0 || len(w.reached) > 0 {
		t.Errorf("%s %s, %d requests inside, dialled %v", a.Status, a.body, inside.Load(), w.reached)
	}
}

// What the operator allows is reached, in traffic and for robots.txt.
func TestTrap21_ExceptionsAreReached(t *testing.T) {
	w := &town{t: t, names: map[string]string{"inside.test": "127.2.0.1", "other.test": "127.2.0.1", "bad.test": "127.1.0.1"}}
	port := w.site("127.2.0.1", townRobots)
	w.at("127.1.0.1:"+port, townRobots)
	r := w.guarded(&Destinations{Allow: entries(t, "inside.test:"+port), Refuse: entries(t, "bad.test", "*:25")})
	for host, want := range map[string]int{"inside.test": 200, "other.test": 502, "bad.test": 502, "127.2.0.1": 502} {
		a := r.ask(plain, question{host: host + ":" + port, path: "/doc"})
		if a.StatusCode != want {
			t.Errorf("%s: %s %s", host, a.Status, a.body)
		}
	}
	if a := r.ask(plain, question{host: "bad.test:" + port, path: "/doc"}); !strings.Contains(a.body, "list of places") {
		t.Errorf("%s", a.body)
	}
	if e := r.records.await(t, "bad.test", func(e *audit.Entry) bool { return e.Host == "bad.test:"+port }); e.Policy != nil {
		t.Error("the robots.txt of a refused name was asked for")
	}
}

// What upstream.resolve places is where the operator says, unless it is refused.
func TestHeed_PlacedHostsAreTheOperatorsOwn(t *testing.T) {
	w := &town{t: t}
	port := w.site("127.2.0.1", townRobots)
	place := map[string]string{"site.test:80": "127.2.0.1:" + port, "10.0.0.9:80": "127.2.0.1:" + port, "bad.test:80": "127.2.0.1:" + port}
	d := &Destinations{Placed: place, Refuse: entries(t, "bad.test"), classify: townClasses}
	tr := NewTransport(TransportConfig{Destinations: d, Resolve: place})
	t.Cleanup(tr.CloseIdleConnections)
	for host, ok := range map[string]bool{"site.test": true, "10.0.0.9": true, "bad.test": false, "127.2.0.1:" + port: false} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/", nil)
		resp, err := tr.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// Behind another proxy, which resolves names, what can be told from the name is.
func TestTrap21_BehindAnotherProxyNamesAndAddressesAreLookedAt(t *testing.T) {
	w := &town{t: t}
	var asked atomic.Int32
	port := w.site("127.2.0.1", func(rw http.ResponseWriter, r *http.Request) { asked.Add(1); townRobots(rw, r) })
	ask := func(d *Destinations, address string) error {
		t.Helper()
		d.classify = townClasses
		tr := NewTransport(TransportConfig{Destinations: d, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.2.0.1:" + port})})
		t.Cleanup(tr.CloseIdleConnections)
		req, _ := http.NewRequestWithContext(t.Context(), "GET", address, nil)
		resp, err := tr.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	listed := &Destinations{Refuse: entries(t, "bad.test", "8.8.8.8"), Allow: entries(t, "a.localhost", "10.1.0.0/16")}
	for _, address := range []string{"http://site.test/", "http://1.1.1.1/", "http://a.localhost/", "http://10.1.2.3/"} {
		if err := ask(listed, address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"http://bad.test/", "http://8.8.8.8/", "http://localhost/", "http://b.localhost/", "http://10.0.0.1/", "http://169.254.169.254/",
		"http://[::1]/", "http://127.2.0.1:" + port + "/", "https://10.0.0.1/",
	} {
		before := asked.Load()
		if err := ask(listed, address); err == nil || asked.Load() != before {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := ask(&Destinations{Private: true}, "http://localhost/"); err != nil {
		t.Errorf("where private places are allowed: %v", err)
	}
}

func ExampleDestinations() {
	office, _ := ParseDestination("10.1.0.0/16")
	mail, _ := ParseDestination("*:25")
	d := Destinations{Allow: []Destination{office}, Refuse: []Destination{mail}}
	for _, at := range []string{"10.1.2.3:80", "10.2.0.1:80", "10.1.2.3:25"} {
		to := netip.MustParseAddrPort(at)
		_, err := d.visit(to.Addr().String(), to.Port(), false)
		fmt.Println(at, err)
	}
	// Output:
	// 10.1.2.3:80 <nil>
	// 10.2.0.1:80 heed may not reach it: 10.2.0.1, a private address
	// 10.1.2.3:25 heed may not reach it: 10.1.2.3, which access.refuse_to names
}
