package upstream

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

	"heed/internal/tools/testkit"
	"heed/rules"
)

// destinations are destinations as an operator writes them.
func destinations(t testing.TB, texts ...string) []Destination {
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
func TestDestinations_AreCheckedInOneOrder(t *testing.T) {
	d := &Destinations{
		Allow:  destinations(t, "10.1.0.0/16", "*.corp.example", "printer.example:631", "169.254.169.254", "[fd00:1::]/32:443", "*:8080"),
		Refuse: destinations(t, "10.1.9.0/24", "bad.corp.example", "*:25", "8.8.4.4", "*.ads.example", "192.0.2.7:8081"),
	}
	ask := func(host, address string, port uint16) error {
		v, err := d.checkHost(host, port, false)
		if err == nil && address != "" {
			err = v.checkAddr(netip.MustParseAddr(address), port)
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

func TestDestinations_PrivateAllowsTheOwnNetworkOnly(t *testing.T) {
	d := &Destinations{Private: true}
	for address, want := range map[string]bool{
		"127.0.0.1": true, "10.0.0.1": true, "fd00::1": true, "fec0::1": true, "100.64.0.1": true, "198.18.0.1": true, "0.0.0.0": true,
		"169.254.169.254": false, "fd00:ec2::254": false, "100.100.100.200": false, "169.254.0.1": false, "fe80::1": false,
		"224.0.0.1": false, "255.255.255.255": false, "192.0.2.1": false, "240.0.0.1": false, "::ffff:169.254.169.254": false,
	} {
		if _, err := d.checkHost(address, 80, false); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := (*Destinations)(nil).checkHost("169.254.169.254", 80, false); err != nil {
		t.Errorf("without any: %v", err)
	}
}

func TestParseDestination_RefusesMalformedEntries(t *testing.T) {
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

// Where a robots.txt redirects to is looked at as what clients ask for is.
func TestDestinations_ApplyToRedirectsOfRobots(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"site.test": "127.1.0.1", "bad.test": "127.1.0.2"})
	other := n.Serve("127.1.0.2", testkit.ServeRobots)
	for _, location := range []string{"http://bad.test:" + other + "/", "http://127.1.0.2:" + other + "/"} {
		port := n.Serve("127.1.0.1", testkit.RedirectTo(location))
		d := &Destinations{Refuse: destinations(t, "bad.test", "127.1.0.2"), ClassOf: networkClasses}
		src := policyOf(t, newTransports(t, TransportConfig{Destinations: d, Dialer: n.Dialer()}), "site.test:"+port)
		if src.State != rules.Unreachable || src.NoConnection || !errors.Is(src.Err, ErrDestination) {
			t.Errorf("%s: %+v", location, src)
		}
	}
}

// What resolve places is where the operator says, unless it is refused.
func TestDestinations_PlacedHostsAreAllowedUnlessRefused(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	port := n.Serve("127.2.0.1", testkit.ServeRobots)
	place := map[string]string{"site.test:80": "127.2.0.1:" + port, "10.0.0.9:80": "127.2.0.1:" + port, "bad.test:80": "127.2.0.1:" + port}
	d := &Destinations{Placed: place, Refuse: destinations(t, "bad.test"), ClassOf: networkClasses}
	tr := newTransport(TransportConfig{Destinations: d, Resolve: place})
	t.Cleanup(tr.CloseIdleConnections)
	for host, ok := range map[string]bool{"site.test": true, "10.0.0.9": true, "bad.test": false, "127.2.0.1:" + port: false} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/", nil)
		resp, err := tr.Send(&Request{Request: req})
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// Behind another proxy, which resolves names, what can be told from the name is.
func TestDestinations_BehindAnotherProxyNamesAndAddressesAreChecked(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	var asked atomic.Int32
	port := n.Serve("127.2.0.1", func(rw http.ResponseWriter, r *http.Request) { asked.Add(1); testkit.ServeRobots(rw, r) })
	ask := func(d *Destinations, address string) error {
		t.Helper()
		d.ClassOf = networkClasses
		tr := newTransport(TransportConfig{Destinations: d, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.2.0.1:" + port})})
		t.Cleanup(tr.CloseIdleConnections)
		req, _ := http.NewRequestWithContext(t.Context(), "GET", address, nil)
		resp, err := tr.Send(&Request{Request: req})
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	listed := &Destinations{Refuse: destinations(t, "bad.test", "8.8.8.8"), Allow: destinations(t, "a.localhost", "10.1.0.0/16")}
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
		_, err := d.checkHost(to.Addr().String(), to.Port(), false)
		fmt.Println(at, err)
	}
	// Output:
	// 10.1.2.3:80 <nil>
	// 10.2.0.1:80 heed may not reach it: 10.2.0.1, a private address
	// 10.1.2.3:25 heed may not reach it: 10.1.2.3, which access.refuse_to names
}

func TestDestinationsThatCoverOthers(t *testing.T) {
	for _, c := range []struct {
		d, e string
		want bool
	}{
		{"10.0.0.0/8", "10.1.0.0/16", true}, {"10.0.0.0/8", "10.1.2.3:443", true}, {"10.0.0.0/8:443", "10.1.2.3", false}, {"10.1.0.0/16", "10.0.0.0/8", false},
		{"*.corp.example", "a.corp.example", true}, {"*.corp.example", "corp.example", false}, {"*", "10.0.0.0/8", true}, {"*", "a.test", true}, {"*:25", "10.0.0.0/8", false},
		{"10.0.0.0/8", "a.test", false}, {"a.test", "10.0.0.0/8", false}, {"::/0", "10.0.0.0/8", false},
	} {
		d, err1 := ParseDestination(c.d)
		e, err2 := ParseDestination(c.e)
		if err1 != nil || err2 != nil {
			t.Fatal(c, err1, err2)
		}
		if got := d.Covers(e); got != c.want {
			t.Errorf("%s covers %s: %v", c.d, c.e, got)
		}
	}
}
