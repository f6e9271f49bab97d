package proxy

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"heed/internal/terms"
	"heed/rules"
)

// permission is a Turn, and whether a request has gone out under it.
type permission struct {
	Turn
	used atomic.Bool
}

// errNoTurn is why a request is not sent once more.
var errNoTurn = errors.New("the site closed the connection, and the next turn is too far off to send the request once more")

// sendsOnce makes r one that takes another turn when net/http sends it again, as
// it does when the site has closed a connection that was kept for later: for the
// site that is another request.
func (x *exchange) sendsOnce(r *http.Request, w *responseWriter) *http.Request {
	if x.turn.Load() == nil {
		return r
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	x.giveUp = cancel
	w.trace.GetConn = func(string) { x.again(ctx) }
	return r.WithContext(ctx)
}

// again waits for another turn if there has been a start. net/http calls it
// before it looks for a connection; it can be kept from going on only through
// the request's context.
func (x *exchange) again(ctx context.Context) {
	t := x.turn.Load()
	if !t.used.Load() {
		return
	}
	t.End()
	if a := x.takeTurn(ctx, x.wishes(x.entry.Policy), x.entry.Decision.Reason == rules.ReasonRobotsTxt); a.Refused && x.terms.Mode != terms.Observe {
		x.noTurn = &a
		x.giveUp(errNoTurn)
	}
}
