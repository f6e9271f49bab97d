package testkit_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"heed/internal/testkit"
)

// A free address refuses connections, is given to nobody who asks for any port,
// and takes a server.
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
