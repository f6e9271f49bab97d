package testkit_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A free address refuses connections, is not chosen for a listener on any port, and can
// be listened on.
func TestFreeAddrIsTheTestsOwn(t *testing.T) {
	addr := testkit.FreeAddr(t)
	refused := func() {
		t.Helper()
		_, err := net.Dial("tcp", addr)
		must.True(t, errors.Is(err, syscall.ECONNREFUSED), "%v; want connection refused", err)
	}
	refused()
	for range 2 {
		l := must.Get(net.Listen("tcp", addr))(t)
		c := must.Get(net.Dial("tcp", addr))(t)
		c.Close()
		l.Close()
		refused()
	}
}
