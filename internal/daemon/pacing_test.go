package daemon

import (
	"net/netip"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// The address of a name is that which the settings give it, itself where it is one, and the
// least of several, in whatever order the resolver returns them.
func TestAddresses_OfAnOrigin(t *testing.T) {
	t.Parallel()
	a := &addresses{resolve: map[string]string{"a.test:80": "192.0.2.7:8080", "b.test:443": "[2001:db8::7]:1"}}
	for origin, want := range map[rules.Origin]string{
		{Scheme: "http", Host: "a.test", Port: 80}:          "192.0.2.7",
		{Scheme: "https", Host: "b.test", Port: 443}:        "2001:db8::7",
		{Scheme: "http", Host: "192.0.2.9", Port: 80}:       "192.0.2.9",
		{Scheme: "http", Host: "2001:db8::9", Port: 8080}:   "2001:db8::9",
		{Scheme: "http", Host: "::ffff:192.0.2.9", Port: 1}: "192.0.2.9",
	} {
		got := a.of(t.Context(), origin)
		must.True(t, got.String() == want, "%s: %s, want %s", origin, got, want)
	}
	list := []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("::ffff:192.0.2.3")}
	got := leastAddress(list)
	must.True(t, got.String() == "192.0.2.3", "the least is %s", got)
	must.True(t, !leastAddress(nil).IsValid(), "no address is one")
}
