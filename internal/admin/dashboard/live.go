package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Bounds of the streams.
const (
	maxStreams   = 64               // at the same time
	liveInterval = time.Second      // between two states of a page
	keepAlive    = 15 * time.Second // without an event, so that a viewer who left is noticed
	writeTime    = 5 * time.Second  // for one event, then the viewer is disconnected
)

// hub sends the state of pages to all viewers. A state is made once for all viewers of a
// page, and only while there are any. A viewer that is slow gets the last state when it has
// read the one before, and none between.
type hub struct {
	interval time.Duration
	log      *slog.Logger
	admitted func(context.Context) bool

	mu      sync.Mutex
	viewers map[string]map[*viewer]bool // by page
	count   int
	closed  bool
}

// viewer is one stream. next has the state to send, done is closed when the hub ends.
type viewer struct {
	next chan []byte
	done chan struct{}
}

// enter adds a viewer of a page, and begins to make its states for the first one. It
// reports false when there are too many.
func (h *hub) enter(page string, state func(context.Context) ([]byte, error)) (*viewer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.count >= maxStreams {
		return nil, false
	}
	if h.viewers == nil {
		h.viewers = map[string]map[*viewer]bool{}
	}
	v := &viewer{make(chan []byte, 1), make(chan struct{})}
	if h.viewers[page] == nil {
		h.viewers[page] = map[*viewer]bool{}
		go h.run(page, h.viewers[page], state)
	}
	h.viewers[page][v] = true
	h.count++
	return v, true
}

// leave removes a viewer.
func (h *hub) leave(page string, v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers[page][v] {
		delete(h.viewers[page], v)
		h.count--
	}
}

// close ends all streams.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for page, all := range h.viewers {
		for v := range all {
			close(v.done)
		}
		h.viewers[page] = nil
	}
	h.count = 0
}

// run makes the states of a page until none of the viewers is left.
func (h *hub) run(page string, mine map[*viewer]bool, state func(context.Context) ([]byte, error)) {
	tick := time.NewTicker(h.interval)
	defer tick.Stop()
	for ; ; <-tick.C {
		text, err := h.made(state)
		h.mu.Lock()
		if len(mine) == 0 || h.closed {
			if !h.closed {
				delete(h.viewers, page)
			}
			h.mu.Unlock()
			return
		}
		if err == nil {
			for v := range mine {
				select {
				case <-v.next: // it has not been sent
				default:
				}
				v.next <- text
			}
		}
		h.mu.Unlock()
	}
}

// errFault is the error of a state that could not be made because of a fault in heed.
var errFault = errors.New("a fault in heed")

// made makes a state. A fault in that is logged: no request waits for it, so that it would
// end heed.
func (h *hub) made(state func(context.Context) ([]byte, error)) (text []byte, err error) {
	err = errFault
	defer logFault(h.log, "a live page could not be made")
	return state(context.Background())
}

// stream returns the handler of the stream of a page: an event for each state that differs
// from the last one, with lines of HTML as its data.
func (d *Dashboard) stream(page string, state func(context.Context) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, ok := d.live.enter(page, state)
		if !ok {
			w.Header().Set("Retry-After", "30")
			http.Error(w, fmt.Sprintf("There are %d live pages already.", maxStreams), http.StatusServiceUnavailable)
			return
		}
		defer d.live.leave(page, v)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		v.send(r.Context(), d.live.admitted, http.NewResponseController(w), w)
	}
}

// send writes the states to the viewer until it leaves, is not admitted any more, is too
// slow, or the hub ends.
func (v *viewer) send(ctx context.Context, admitted func(context.Context) bool, control *http.ResponseController, w http.ResponseWriter) {
	var last []byte
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	for {
		text := []byte(":\n\n")
		select {
		case <-ctx.Done():
			return
		case <-v.done:
			return
		case <-idle.C:
		case next := <-v.next:
			if text = nil; !bytes.Equal(next, last) {
				last, text = next, event(next)
			}
		}
		if !admitted(ctx) {
			return
		}
		if text == nil {
			continue
		}
		if control.SetWriteDeadline(time.Now().Add(writeTime)) != nil {
			return
		}
		if _, err := w.Write(text); err != nil || control.Flush() != nil {
			return
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
