package acl

import (
	"fmt"
	"net/netip"
	"testing"

	"heed/internal/tools/testkit/must"
)

// destinations are destinations as an operator writes them.
func destinations(t testing.TB, texts ...string) []Destination {
	t.Helper()
	var out []Destination
	for _, text := range texts {
		d := must.Get(ParseDestination(text))(t)
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
		v, err := d.CheckHost(host, port, false)
		if err == nil && address != "" {
			err = v.CheckAddr(netip.MustParseAddr(address), port)
		}
		return err
	}
	allowed := func(host, address string, port uint16) {
		t.Helper()
		must.OK(t, ask(host, address, port), "%s %s port %d", host, address, port)
	}
	refused := func(host, address string, port uint16, why string) {
		t.Helper()
		must.Fail(t, ask(host, address, port), why, "%s %s port %d", host, address, port)
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
		_, err := d.CheckHost(address, 80, false)
		must.True(t, (err == nil) == want, "%s: %v", address, err)
	}
	_, err := (*Destinations)(nil).CheckHost("169.254.169.254", 80, false)
	must.True(t, err == nil, "without any: %v", err)
}

func TestParseDestination_RefusesMalformedEntries(t *testing.T) {
	for _, text := range []string{
		"", " ", "http://a.example/", "a.example/x", "user@a.example", "a b", "*.*.example", "a.*.example", "*x.example", ".example",
		"10.0.0.0/33", "10.0.0.1/8", "1.2.3", "0x7f.1", "[::1", "::1]", "fe80::1%eth0", "a.example:0", "a.example:99999", "a.example:x",
		"::ffff:10.0.0.0/104", "10.0.0.0/8/8",
	} {
		d, err := ParseDestination(text)
		must.True(t, err != nil, "%q is %+v", text, d)
	}
}

func ExampleDestinations() {
	office, _ := ParseDestination("10.1.0.0/16")
	mail, _ := ParseDestination("*:25")
	d := Destinations{Allow: []Destination{office}, Refuse: []Destination{mail}}
	for _, at := range []string{"10.1.2.3:80", "10.2.0.1:80", "10.1.2.3:25"} {
		to := netip.MustParseAddrPort(at)
		_, err := d.CheckHost(to.Addr().String(), to.Port(), false)
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
		both := destinations(t, c.d, c.e)
		must.Equal(t, both[0].Covers(both[1]), c.want, "%s covers %s", c.d, c.e)
	}
}
