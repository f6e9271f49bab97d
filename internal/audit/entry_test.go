package audit

import (
	"net/netip"
	"strings"
	"testing"
)

// Where a redirected connection was for is read from a detail as it was written, and from no other.
func FuzzRedirectedTo(f *testing.F) {
	for _, detail := range []string{"", "a fault", "redirected connection to [2001:db8::1%eth0]:443", "to 192.0.2.1:80"} {
		f.Add(detail)
	}
	f.Fuzz(func(t *testing.T, detail string) {
		where := netip.MustParseAddrPort("192.0.2.1:80")
		if to := RedirectedTo(Redirected(detail, where)); to != where {
			t.Errorf("%q: %v", detail, to)
		}
		if to := RedirectedTo(detail); to.IsValid() && !strings.HasSuffix(detail, "redirected connection to "+to.String()) {
			t.Errorf("%q: %v", detail, to)
		}
	})
}
