package testkit_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
)

// A free address refuses connections, is not chosen for a listener on any port, and can
// be listened on.
func TestFreeAddrIsTheTestsOwn(t *testing.T) {
	addr := testkit.FreeAddr(t)
	refused := func() {
		t.Helper()
		if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v; want connection refused", err)
		}
	}
	refused()
	for range 2 {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
		refused()
	}
}
