package limit

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"heed/internal/tools/testkit"
)

// A Read ends by the deadline that was set last, before it or while it waits.
func TestConn_ReadKeepsItsDeadline(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	limits := Limits{}.WithDefaults()
	c := &Conn{Conn: near, gate: NewGate(&Load{}, func() *Limits { return &limits }, nil), client: &client{}}
	defer near.Close()
	read := func() chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			done <- err
		}()
		return done
	}
	for name, set := range map[string]func(time.Time) error{"SetReadDeadline": c.SetReadDeadline, "SetDeadline": c.SetDeadline} {
		past := time.Unix(1, 0)
		_ = set(past)
		if err := <-read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s before the Read: %v", name, err)
		}
		_ = set(past)
		_ = set(time.Time{})
		waiting := read()
		testkit.Until(t, "the Read waits", func() bool { c.read.mu.Lock(); defer c.read.mu.Unlock(); return c.read.readers == 1 })
		_ = set(past)
		if err := <-waiting; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s during the Read: %v", name, err)
		}
		_ = set(time.Time{})
		answered := read()
		if _, err := far.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Errorf("%s taken back: %v", name, err)
		}
	}
}
