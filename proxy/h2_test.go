package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// lastStream is an answer whose reset ends only after told has returned, which reports
// that no stream is open: in net/http one goroutine does both.
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
	s := tun.watch(lastStream{httptest.NewRecorder(), tun.streams.idled, late})
	defer tun.streams.timer.Stop()
	s.note(time.Now().Add(-2 * r.proxy.config.Limits.ReadTime))
	tun.sweep()
	must.True(t, !<-late, "telling that no stream is left waits for the reset of one")
}

// A stream that its client took back before its handler came to run leaves a
// connection that is idle, not one that its client reads too slowly.
func TestHeed_AStreamTakenBackAtOnceLeavesAnIdleConnection(t *testing.T) {
	r := newRig(t, hello)
	tun := &tunnel{proxy: r.proxy}
	w := httptest.NewRecorder()
	tun.streams.idled()
	early := tun.watch(w)
	defer tun.streams.timer.Stop()
	tun.unwatch(early, true)
	must.True(t, tun.streams.idle, "it counts as one whose answer waits to be read")
	running := tun.watch(w)
	tun.streams.idled()
	tun.streams.idled() // of the second, too, which net/http has seen end before the handlers of both come on
	tun.unwatch(running, true)
	second := tun.watch(w)
	tun.unwatch(second, true)
	must.True(t, tun.streams.idle, "one of an earlier time counts among those of this")
	slow := tun.watch(w)
	tun.unwatch(slow, false) // its answer is still on its way
	must.True(t, !tun.streams.idle, "an answer that waits to be read is overlooked")
}
