package proxy

import (
	"context"
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

// A stream that its client took back before its handler came to run leaves a
// connection that is idle, not one that its client reads too slowly.
func TestHeed_AStreamTakenBackAtOnceLeavesAnIdleConnection(t *testing.T) {
	r := newRig(t, hello)
	tun := &tunnel{proxy: r.proxy}
	open := func() (x *exchange, takeBack func()) {
		ctx, cancel := context.WithCancel(t.Context())
		return &exchange{Context: ctx, proxy: r.proxy, conn: &clientConn{tunnel: tun}}, cancel
	}
	early, takeBack := open()
	tun.streams.idled()
	takeBack()
	early.watch(2)
	defer tun.streams.timer.Stop()
	early.unwatch()
	if !tun.streams.idle {
		t.Error("it counts as one whose answer waits to be read")
	}
	running, takeBack := open()
	running.watch(2)
	takeBack()
	tun.streams.idled()
	early, takeBack = open() // which net/http has seen end before the handlers of both come on
	takeBack()
	tun.streams.idled()
	running.unwatch()
	early.watch(2)
	early.unwatch()
	if !tun.streams.idle {
		t.Error("one of an earlier time counts among those of this")
	}
	slow, takeBack := open()
	slow.watch(2)
	slow.unwatch() // its answer is still on its way
	if tun.streams.idle {
		t.Error("an answer that waits to be read is overlooked")
	}
	takeBack()
}
