package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"heed/internal/testkit"
)

// lastStream is an answer whose reset net/http takes only once it has told that
// no stream is left: the goroutine that takes resets is the one that tells.
type lastStream struct {
	http.ResponseWriter
	told func()
	late chan<- bool
}

// SetWriteDeadline is how a stream is reset.
func (s lastStream) SetWriteDeadline(time.Time) error {
	told := make(chan struct{})
	go func() {
		s.told()
		close(told)
	}()
	select {
	case <-told:
		s.late <- false
	case <-time.After(testkit.Patience):
		s.late <- true
	}
	return nil
}

// A client may take its streams back in the very moment in which they are ended
// for being slow. Neither of the two waits for the other.
func TestHeed_AStreamThatEndsWhileItIsBeingResetHoldsNothingUp(t *testing.T) {
	r := newRig(t, hello)
	late := make(chan bool, 1)
	tun := &tunnel{proxy: r.proxy}
	x := &exchange{proxy: r.proxy, conn: &clientConn{tunnel: tun}}
	x.writer = &responseWriter{ResponseWriter: lastStream{httptest.NewRecorder(), tun.streams.idled, late}}
	x.watch(2)
	defer tun.streams.timer.Stop()
	x.stream.note(time.Now().Add(-2 * r.proxy.Limits.ReadTime))
	tun.sweep()
	if <-late {
		t.Error("telling that no stream is left waits for the reset of one")
	}
}
