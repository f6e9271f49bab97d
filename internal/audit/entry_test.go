package audit

import (
	"net/netip"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// Where a redirected connection was for is read from a detail as it was written, and from no other.
func FuzzRedirectedTo(f *testing.F) {
	for _, detail := range []string{"", "a fault", "redirected connection to [2001:db8::1%eth0]:443", "to 192.0.2.1:80"} {
		f.Add(detail)
	}
	f.Fuzz(func(t *testing.T, detail string) {
		where := netip.MustParseAddrPort("192.0.2.1:80")
		must.Equal(t, RedirectedTo(Redirected(detail, where)), where, "%q", detail)
		to := RedirectedTo(detail)
		must.True(t, !to.IsValid() || strings.HasSuffix(detail, "redirected connection to "+to.String()), "%q: %v", detail, to)
	})
}
