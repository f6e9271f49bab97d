package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// Bounds of the streams.
const (
	maxStreams   = 64               // at the same time
	liveInterval = time.Second      // between two states that a viewer gets
	keepAlive    = 15 * time.Second // without an event, so that a viewer who left is noticed
	writeTime    = 5 * time.Second  // for one event, then the viewer is disconnected
)

// livePage is the state of a page, which its viewers share: one of them makes it for all.
type livePage struct {
	make func(context.Context) ([]byte, error)
	log  *slog.Logger

	turn chan struct{} // holds one while a viewer makes the state, or reads it
	text []byte        // the last state; nil: none was made yet
	made time.Time
}

// state returns the state of half of liveInterval ago or later; the one before when none can
// be made. It waits no longer than ctx, of the viewer, unless this one makes the state, which
// ends with closed; false when ctx has ended.
func (p *livePage) state(ctx, closed context.Context) (text []byte, ok bool) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	defer func() { <-p.turn }()
	if time.Since(p.made) > liveInterval/2 {
		p.remakeLocked(closed)
		p.made = time.Now()
	}
	return p.text, ctx.Err() == nil
}

// remakeLocked makes a state for all viewers, also when the one that makes it leaves. A fault
// in that is logged, and ends no stream.
func (p *livePage) remakeLocked(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("a live page could not be made", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	if text, err := p.make(ctx); err == nil {
		p.text = text
	}
}

// stream returns the handler of the stream of a page: an event for each state that differs
// from the last one, with lines of HTML as its data. It ends when its viewer leaves, is not
// admitted any more or is too slow, and with Close. A slow viewer gets the last state when it
// has read the one before, and none between.
func (d *Dashboard) stream(state func(context.Context) ([]byte, error)) http.HandlerFunc {
	page := &livePage{make: state, log: d.Log, turn: make(chan struct{}, 1)}
	return func(w http.ResponseWriter, r *http.Request) {
		defer d.viewers.Add(-1)
		if d.viewers.Add(1) > maxStreams || d.closed.Err() != nil {
			w.Header().Set("Retry-After", "30")
			http.Error(w, fmt.Sprintf("There are %d live pages already.", maxStreams), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		control := http.NewResponseController(w)
		write := func(text []byte) bool {
			if control.SetWriteDeadline(time.Now().Add(writeTime)) != nil {
				return false
			}
			_, err := w.Write(text)
			return err == nil && control.Flush() == nil
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(d.closed, cancel)()
		tick := time.NewTicker(liveInterval)
		defer tick.Stop()
		sent, at := []byte(nil), time.Now()
		for open := control.Flush() == nil; open; {
			text, ok := page.state(ctx, d.closed)
			if !ok || !d.Admitted(r.Context()) {
				return
			}
			if !bytes.Equal(text, sent) {
				sent, at, open = text, time.Now(), write(event(text))
			} else if time.Since(at) > keepAlive {
				at, open = time.Now(), write([]byte(":\n\n"))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// event returns text as an event (WHATWG HTML §9.2.6). CR, LF and CRLF all end a line of the
// stream: each begins a new line of data, which the reader gets as LF.
func event(text []byte) []byte {
	var out bytes.Buffer
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		fmt.Fprintf(&out, "data: %s\n", line)
	}
	out.WriteByte('\n')
	return out.Bytes()
}
