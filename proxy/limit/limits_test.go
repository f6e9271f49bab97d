package limit

import (
	"net/netip"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestClientKey_IsAnAddressOrAnIPv6Network(t *testing.T) {
	for a, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		must.Equal(t, ClientKey(netip.MustParseAddr(a)).String(), want, "%s counts as", a)
	}
}

func TestWithDefaults_OneClientHasLessThanAll(t *testing.T) {
	for _, all := range []int{0, 2, 10, 9488} {
		l := Limits{Connections: all}.WithDefaults()
		if l.ConnectionsPerClient >= l.Connections || l.TunnelsPerClient >= l.Tunnels || l.RequestsPerClient >= l.Requests || l.ConnectionsPerClient < 1 {
			t.Errorf("%d: %+v", all, l)
		}
	}
}

// Each limit has a name, a status that a client understands, and a value.
func TestKind_EachHasARow(t *testing.T) {
	l, seen := Limits{}.WithDefaults(), map[string]bool{}
	for k := range kinds {
		if k.String() == "" || seen[k.String()] || k.Status() < 400 || k.Status() > 503 || k.value(&l) == "" {
			t.Errorf("%d: %q, %d, %q", k, k, k.Status(), k.value(&l))
		}
		seen[k.String()] = true
	}
	must.Equal(t, HeaderBytes.value(&l), "131072 octets", "header_bytes")
	must.Equal(t, BodyTime.value(&l), "1m0s", "body_time")
}
