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

// hub makes the states of pages, once for all viewers of a page, and only while there are any.
// A viewer that is slow gets the last state when it has read the one before, and none between.
type hub struct {
	interval time.Duration
	log      *slog.Logger
	admitted func(context.Context) bool

	mu    sync.Mutex
	pages map[string]*livePage
	count int // of viewers
	ended bool
}

// livePage is a page with viewers.
type livePage struct {
	viewers int
	text    []byte        // the last state; nil: none was made yet
	changed chan struct{} // closed when there is another one, or the hub ends
}

// enter adds a viewer of a page, and begins to make its states for the first one. It
// reports false when there are too many.
func (h *hub) enter(page string, state func(context.Context) ([]byte, error)) (*livePage, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || h.count >= maxStreams {
		return nil, false
	}
	p := h.pages[page]
	if p == nil {
		if h.pages == nil {
			h.pages = map[string]*livePage{}
		}
		p = &livePage{changed: make(chan struct{})}
		h.pages[page] = p
		go h.run(page, p, state)
	}
	p.viewers++
	h.count++
	return p, true
}

// leave removes a viewer.
func (h *hub) leave(p *livePage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.viewers--
	h.count--
}

// close ends all streams.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	h.ended = true
	for _, p := range h.pages {
		close(p.changed)
	}
}

// run makes the states of a page until it has no viewers.
func (h *hub) run(page string, p *livePage, state func(context.Context) ([]byte, error)) {
	tick := time.NewTicker(h.interval)
	defer tick.Stop()
	for ; ; <-tick.C {
		text, err := h.made(state)
		h.mu.Lock()
		if p.viewers == 0 || h.ended {
			delete(h.pages, page)
			h.mu.Unlock()
			return
		}
		if err == nil {
			p.text = text
			close(p.changed)
			p.changed = make(chan struct{})
		}
		h.mu.Unlock()
	}
}

// last returns the last state of a page, what is closed when there is another one, and whether
// the hub has ended.
func (h *hub) last(p *livePage) (text []byte, changed <-chan struct{}, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.text, p.changed, h.ended
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
		p, ok := d.live.enter(page, state)
		if !ok {
			w.Header().Set("Retry-After", "30")
			http.Error(w, fmt.Sprintf("There are %d live pages already.", maxStreams), http.StatusServiceUnavailable)
			return
		}
		defer d.live.leave(p)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		control := http.NewResponseController(w)
		if control.Flush() == nil {
			d.live.send(r.Context(), p, func(text []byte) bool {
				if control.SetWriteDeadline(time.Now().Add(writeTime)) != nil {
					return false
				}
				_, err := w.Write(text)
				return err == nil && control.Flush() == nil
			})
		}
	}
}

// send writes the states of a page until its viewer leaves, is not admitted any more, is too
// slow, or the hub ends.
func (h *hub) send(ctx context.Context, p *livePage, write func(text []byte) bool) {
	var sent []byte
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	for {
		text, changed, ended := h.last(p)
		if ended || !h.admitted(ctx) {
			return
		}
		if !bytes.Equal(text, sent) {
			if sent = text; !write(event(text)) {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-idle.C:
			if !write([]byte(":\n\n")) {
				return
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
