package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/internal/pace"
	"heed/proxy/limit"
	"heed/proxy/refusal"
	"heed/rules"
)

// Pacer spaces the requests to a site. It is safe for concurrent use.
type Pacer interface {
	// Paced reports whether requests to o with these hints may have to wait. It
	// is called for every request, and must be fast.
	Paced(o rules.Origin, hints []*rules.RateHint) bool
	// Turn waits for a request's turn, or until ctx ends. It sets ask.Settings.
	Turn(ctx context.Context, ask *pace.Ask) pace.Answer
	// Answered takes the site's answer to a request that was sent at sent. It
	// returns what is recorded of it; often the empty string.
	Answered(o rules.Origin, status int, h http.Header, sent time.Time) (note string)
}

// turn is one permission of the Pacer to send the request: each time that it is sent it needs
// another one.
type turn struct {
	pace.Turn
	used atomic.Bool // the request has been sent, or is being sent
	late atomic.Bool // it was too late for that
}

// Going implements pace.Turn.
func (t *turn) Going() bool {
	going := t.Turn.Going()
	t.used.Store(going)
	t.late.Store(!going)
	return going
}

// waitTurn waits until x may be sent, where requests to the site are paced.
func (x *decision) waitTurn(ctx context.Context) {
	p, e := x.req.settings.Pacer, &x.entry
	if p == nil || !x.req.paced(&x.entry.Decision) {
		return
	}
	hints, robotsTxt := x.req.hints(e.Policy), e.Decision.Reason == rules.ReasonRobotsTxt
	if !robotsTxt && !p.Paced(x.req.origin, hints) {
		return
	}
	a := x.takeTurn(ctx, hints, robotsTxt)
	e.DelayAsked, e.TurnWaited, e.Owed, e.PaceNote = a.Asked, a.Waited, a.Owed, a.Note
	switch {
	case a.Left:
		x.deny(denial{reason: rules.ReasonClientLeft, detail: "the client left before its turn came: it had waited for " + refusal.Seconds(a.Waited) +
			" and would have had to for " + refusal.Seconds(a.Owed) + " more"})
	case a.Refused && x.req.effective.Mode == acl.Observe:
		e.Decision.Verdict, e.Decision.Reason = rules.WouldRefuse, rules.ReasonPaced
		x.paced = a
	case a.Refused:
		x.refusePaced(a)
	}
}

// paced reports whether q is a request of the kind that sites pace.
func (q *request) paced(d *rules.Decision) bool {
	switch d.Reason {
	case rules.ReasonNotACrawl, rules.ReasonOwnService, rules.ReasonExempt, rules.ReasonRulesPending:
		return false
	}
	return q.effective.Mode != acl.Exempt && q.https != acl.Tunnel && d.Verdict != rules.Refuse
}

// takeTurn waits for a turn of x.
func (x *decision) takeTurn(ctx context.Context, hints []*rules.RateHint, robotsTxt bool) *pace.Answer {
	ask := x.req.paceAsk(x.entry.Policy, hints)
	ask.Waiting = func(place pace.Position) { x.proxy.announced.announce(x.proxy.config.Announce, &x.req, place) }
	if ask.RobotsTxt = robotsTxt; robotsTxt {
		ask.Rules = func() []*rules.RateHint {
			return x.req.hints(x.req.settings.Policies.Policy(ctx, x.req.origin, x.req.names.Shown))
		}
	}
	a := x.req.settings.Pacer.Turn(ctx, ask)
	if a.Turn != nil {
		x.turn.Store(&turn{Turn: a.Turn})
	}
	x.entry.Outcome.Waited += a.Waited
	return &a
}

// Why a request is not sent: errNoTurn is for one that was sent before.
var (
	errNoTurn = errors.New("the site closed the connection, and the next turn is too far off to send the request once more")
	errLate   = errors.New("the turn was over before there was a connection, and the next turn is too far off")
)

// retryTurn waits for another turn if the request has been sent before, as it is again
// when the site has closed a connection that was kept: for the site that is another
// request. So it does if the turn was over before the request could be sent.
func (x *decision) retryTurn() error {
	current := x.turn.Load()
	if current == nil || !current.used.Load() && !current.late.Load() {
		return nil
	}
	current.End()
	if current.late.Load() {
		x.turn.Store(nil) // a request that is only observed goes without one
	}
	a := x.takeTurn(x, x.req.hints(x.entry.Policy), x.entry.Decision.Reason == rules.ReasonRobotsTxt)
	switch {
	case a.Left:
		return context.Cause(x)
	case a.Refused && x.req.effective.Mode != acl.Observe:
		if x.paced = a; current.late.Load() {
			return errLate
		}
		return errNoTurn
	}
	return nil
}

// reportAnswer gives the Pacer what the site answered.
func (x *decision) reportAnswer(resp *http.Response) {
	if p := x.req.settings.Pacer; p != nil && x.req.paced(&x.entry.Decision) {
		sent := x.entry.Time.Add(x.entry.Outcome.Waited) // or a little later
		o := &x.entry.Outcome
		if note := p.Answered(x.req.origin, resp.StatusCode, resp.Header, sent); o.Note == "" || note == "" {
			o.Note += note
		} else {
			o.Note += "; " + note
		}
	}
}

// When a wait is announced.
const (
	longWait      = 2 * time.Second
	announceEvery = 30 * time.Second // of one host
	maxAnnounced  = 1024             // hosts that are remembered
)

// announced has the sites for which waits were announced lately. The zero value is ready.
type announced struct {
	mu     sync.Mutex // held to look and to remember: of requests at the same time one announces
	lately memo.Kept[rules.Origin, struct{}]
}

// due reports whether a wait for o is to be announced now, and remembers that it was.
func (a *announced) due(o rules.Origin, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, lately := a.lately.Get(o, now)
	if !lately {
		o.Host = strings.Clone(o.Host) // it may be part of a whole request
		a.lately.Put(o, struct{}{}, now.Add(announceEvery), 0, maxAnnounced, 0)
	}
	return !lately
}

// announce calls take (see Config.Announce) when q, and others for the same site, wait for
// long.
func (a *announced) announce(take func(forClient, forLog string), q *request, place pace.Position) {
	if place.Wait < longWait || take == nil || !a.due(q.origin, time.Now()) {
		return
	}
	waiting := fmt.Sprintf("%s: %d waiting", refusal.WaitCause(&place, safetext.Printable(q.origin.Authority(), 100)), place.Others+1)
	wait, client := refusal.Seconds(place.Wait), safetext.Printable(q.who().String(), 200)
	take(waiting+", yours in "+wait, waiting+", that of "+client+" in "+wait)
}

// hints returns what the groups that govern q ask about speed: those of the names
// it is judged by, and of the names that the site sees.
func (q *request) hints(policy *rules.Policy) []*rules.RateHint {
	if policy == nil {
		return nil
	}
	return q.names.RateHints(policy)
}

// paceAsk returns the request for a turn of q.
func (q *request) paceAsk(policy *rules.Policy, hints []*rules.RateHint) *pace.Ask {
	ask := &pace.Ask{
		Origin: q.origin, Hints: hints, Agent: "*", Client: q.pacingKey(), Name: q.userAgent, Target: q.method + " " + q.target,
		Observed: q.effective.Mode == acl.Observe, Who: q.who(),
	}
	if policy != nil && q.effective.Site.Robots == nil {
		ask.Fetched = policy.Source().FetchedAt
	}
	if a := q.names.Own; a != nil && len(a.Tokens) > 0 {
		ask.Agent = a.Tokens[0].Name
	}
	if c := q.effective.Client; c != nil {
		ask.Patience = c.MaxWait
	}
	if a := q.conn.asked; a != nil && a.of.Patience != nil {
		if own := a.of.Patience(); own != nil && (ask.Patience == nil || *own < *ask.Patience) {
			ask.Patience = own
		}
	}
	return ask
}

// who describes q's client for people.
func (q *request) who() pace.Who {
	return pace.Who{Address: q.client.Addr.String(), User: q.client.User, Name: q.effective.Name(), Listener: q.client.Listener}
}

// pacingKey identifies q's client: where it is, which credentials it showed and
// which listener it came to. Each run has a separate listener.
func (q *request) pacingKey() string {
	return limit.ClientKey(q.client.Addr).String() + " " + q.client.Listener + " " + q.client.User
}
