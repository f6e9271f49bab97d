package proxy

import (
	"net/http"
	"sync"
	"time"

	"heed/rules"
)

// unheard notices HTTP/2 requests that net/http answers by itself, without a
// word to the handler: a connection-specific field with 400, too many fields
// with 431, no path with a reset. What it does tell is when the first stream of
// a connection opens and when none is left. So those beside or right before
// other requests stay unnoticed, as does what HTTP/2 does not even take for
// fields (a name in upper case), which opens no stream; none of it is forwarded.
// The zero value is ready; it is safe for concurrent use.
type unheard struct {
	mu      sync.Mutex
	begun   bool  // net/http also says once at the start that it is active, then idle
	active  bool  // a stream is open
	before  int64 // the requests that were handed on before it
	suspect bool  // one ended without a request
}

// lateHandler is how late a request may be handed on: a stream that is taken
// back at once can end before.
const lateHandler = 200 * time.Millisecond

// state takes in what net/http says of t's connection.
func (u *unheard) state(t *tunnel, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateActive {
		u.active, u.before = u.begun, t.requests.Load()
		u.begun = true
		return
	}
	if !u.active {
		return
	}
	u.active = false
	if before := u.before; t.requests.Load() == before {
		u.suspect = true
		time.AfterFunc(lateHandler, func() { lookAgain(t, before) })
	}
}

// lookAgain records that nothing was handed on, if that is still so.
func lookAgain(t *tunnel, before int64) {
	if t.requests.Load() == before && !t.proxy.closing.Load() {
		t.proxy.newUnread(t.client, t).note(rules.ReasonMalformed, "HTTP/2: what came was not a request")
	}
}

// any reports whether something may have come that was no request.
func (u *unheard) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.suspect
}
