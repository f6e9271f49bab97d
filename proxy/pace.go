package proxy

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// Pacer has requests take turns at sites. It is safe for concurrent use.
type Pacer interface {
	// Paced reports whether requests to o under these wishes may have to wait. It
	// is asked for every request, and must be fast.
	Paced(o rules.Origin, wishes []*rules.Wish) bool
	// Turn waits for a request's turn, or until ctx ends.
	Turn(ctx context.Context, q *TurnAsked) TurnAnswer
	// Answered is told what a site answered to a request that was sent at sent. It
	// returns what is to be recorded of that; often nothing.
	Answered(o rules.Origin, status int, h http.Header, sent time.Time) (note string)
}

// Turn is the permission to start.
type Turn interface {
	// Going is told when the request may be written from now on, also when its client
	// leaves.
	Going()
	// Started is told each time the request's header section has been written.
	Started()
	// End is told once the exchange is over, whether it was started or not.
	End()
}

// TurnAsked is a request that wants its turn.
type TurnAsked struct {
	Origin  rules.Origin
	Wishes  []*rules.Wish  // of the groups that govern it
	Fetched time.Time      // when the origin was last asked for its robots.txt; zero: not known
	Agent   string         // the product token it goes by; "*" when it has none
	Client  string         // who is asking, as far as the network and credentials tell
	Name    string         // the User-Agent
	Target  string         // what is asked for
	MaxWait *time.Duration // for the turn; nil: as for all
	Observe bool           // it is observed only

	// RobotsTxt says that it is for /robots.txt: then it goes before all others,
	// as long as these are not kept from starting by such requests.
	RobotsTxt bool
	// Rules returns the wishes, where they are not known yet: with RobotsTxt. It may
	// ask the site.
	Rules func() []*rules.Wish

	// Waiting is called once, when a wait begins.
	Waiting func(TurnPlace)
}

// TurnPlace is where a request stood when it asked for its turn.
type TurnPlace struct {
	Asked, Delay time.Duration // between two requests: as is asked for, and as is kept
	By           rules.Field   // the line that asks; zero: the operator does
	Wait         time.Duration // until its turn, as far as could be told
	Waiting      int           // requests at the site, with this one
	Held         time.Duration // of Wait, what the site asked for with Retry-After, or by failing
	Visit        rules.Field   // the Visit-time outside of which it came; zero: none
	RobotsTxt    bool          // Delay is what requests for robots.txt keep, too
}

// TurnAnswer is what became of it.
type TurnAnswer struct {
	TurnPlace
	Turn   Turn          // nil: nobody wants to be told of anything
	Waited time.Duration // until the answer
	Note   string        // what is to be recorded of the wishes; often empty

	Refused, Left bool          // its turn is too far off; its client has gone
	Ended         bool          // with Refused: nobody may wait any more, since this proxy ends
	Owed          time.Duration // that it would have had to wait still
	RetryAfter    time.Duration // when asking again will be served, with Refused
}

// pace has x wait for its turn, when it may be sent at all. People wait for
// nothing.
func (x *exchange) pace(ctx context.Context) {
	p, e := x.settings.Pacer, &x.entry
	if p == nil || !x.takesTurns() {
		return
	}
	wishes, robotsTxt := x.wishes(e.Policy), e.Decision.Reason == rules.ReasonRobotsTxt
	if !robotsTxt && !p.Paced(x.origin, wishes) {
		return
	}
	a := x.takeTurn(ctx, wishes, robotsTxt)
	e.DelayAsked, e.Waited, e.Owed, e.PaceNote = a.Asked, a.Waited, a.Owed, a.Note
	switch {
	case a.Left:
		x.refuse(rules.Decision{Reason: rules.ReasonLeft}, "the client left before its turn came: it had waited for "+inSeconds(a.Waited)+" and would have had to for "+inSeconds(a.Owed)+" more")
	case a.Refused && x.terms.Mode == terms.Observe:
		e.Decision.Verdict, e.Decision.Reason = rules.WouldRefuse, rules.ReasonPaced
	case a.Refused:
		x.refusePaced(&a)
	}
}

// takesTurns reports whether x is a request of the kind that sites pace.
func (x *exchange) takesTurns() bool {
	switch x.entry.Decision.Reason {
	case rules.ReasonNotACrawl, rules.ReasonExempt, rules.ReasonLate:
		return false
	}
	return x.terms.Mode != terms.Exempt && x.https != terms.Tunnel && x.entry.Decision.Verdict != rules.Refuse
}

// wishes returns what the groups that govern x ask about speed: those of the names
// it is judged by, and of the names that the site sees.
func (x *exchange) wishes(policy *rules.Policy) []*rules.Wish {
	if policy == nil {
		return nil
	}
	wishes := policy.Wishes(x.entry.Agent)
	if x.visible != nil {
		if seen := policy.Wishes(x.visible); len(seen) > 0 {
			wishes = append(wishes[:len(wishes):len(wishes)], seen...)
		}
	}
	return wishes
}

func (x *exchange) turnAsked(wishes []*rules.Wish) *TurnAsked {
	e := &x.entry
	q := &TurnAsked{
		Origin: x.origin, Wishes: wishes, Agent: "*", Client: x.crowd(), Name: e.UserAgent, Target: e.Method + " " + e.Target,
		Observe: x.terms.Mode == terms.Observe,
		Waiting: func(place TurnPlace) { x.proxy.announce(x.origin, place) },
	}
	if e.Policy != nil && x.terms.Site.Robots == nil {
		q.Fetched = e.Policy.Source().FetchedAt
	}
	if e.Agent != nil && len(e.Agent.Tokens) > 0 {
		q.Agent = e.Agent.Tokens[0].Name
	}
	if c := x.terms.Client; c != nil {
		q.MaxWait = c.MaxWait
	}
	return q
}

// crowd tells x's client from others: where it is, which credentials it showed
// and which listener it came to. A run has a listener of its own.
func (x *exchange) crowd() string {
	return clientKey(x.who.Addr).String() + " " + x.who.Listener + " " + x.who.User
}

// takeTurn waits for a turn of x's request.
func (x *exchange) takeTurn(ctx context.Context, wishes []*rules.Wish, robotsTxt bool) TurnAnswer {
	q := x.turnAsked(wishes)
	if q.RobotsTxt = robotsTxt; robotsTxt {
		q.Rules = func() []*rules.Wish {
			return x.wishes(x.settings.Policies.Policy(ctx, x.origin, firstOf(x.entry.Sent, x.entry.UserAgent)))
		}
	}
	a := x.settings.Pacer.Turn(ctx, q)
	if a.Turn != nil {
		x.turn.Store(&permission{Turn: a.Turn})
	}
	x.entry.Outcome.Waited += a.Waited
	return a
}

// refusePaced refuses x since its turn is too far off.
func (x *exchange) refusePaced(a *TurnAnswer) {
	d := rules.Decision{Reason: rules.ReasonPaced, Group: x.entry.Decision.Group, Token: x.entry.Decision.Token, Piece: x.entry.Decision.Piece}
	if by := a.rule(); by.Line > 0 {
		d.Line, d.Rule = by.Line, by.Kind.String()+": "+by.Value
	}
	x.refuse(d, "")
	x.replyPaced(a)
}

// replyPaced prepares the answer to a request whose turn is too far off.
func (x *exchange) replyPaced(a *TurnAnswer) {
	x.reply(rules.ReasonPaced)
	x.refusal.paced, x.refusal.ended = &a.TurnPlace, a.Ended
	x.refusal.retryAfter = a.RetryAfter
	x.refusal.phrase = printable(x.sentence(x.refusal), maxPhrase)
}

// rule is the line that makes a request wait.
func (p *TurnPlace) rule() rules.Field {
	if p.Visit.Line > 0 {
		return p.Visit
	}
	return p.By
}

// going tells that x's request may be written from now on.
func (x *exchange) going() {
	if t := x.turn.Load(); t != nil {
		t.used.Store(true)
		t.Going()
	}
}

// started tells that the header section of x's request has been written.
func (x *exchange) started() {
	if t := x.turn.Load(); t != nil {
		t.Started()
	}
}

// heardFrom tells the Pacer what the site answered.
func (x *exchange) heardFrom(resp *http.Response) {
	if p := x.settings.Pacer; p != nil && x.takesTurns() {
		sent := x.entry.Time.Add(x.entry.Outcome.Waited) // or a little later
		x.entry.Outcome.Note = p.Answered(x.origin, resp.StatusCode, resp.Header, sent)
	}
}

// endTurn gives x's turn back.
func (x *exchange) endTurn() {
	if t := x.turn.Load(); t != nil {
		t.End()
	}
	if x.giveUp != nil {
		x.giveUp(nil)
	}
}

// pacedSentence says in a few words why a turn is too far off.
func (x *exchange) pacedSentence(f *refusal) string {
	if f.ended {
		return "Refused by heed: it is ending, and lets nobody wait for a turn; ask again after " + inSeconds(f.retryAfter)
	}
	if f.paced == nil || f.paced.Wait == 0 {
		return "Refused by heed: it paces as many sites as it can; ask again after " + inSeconds(f.retryAfter)
	}
	return "Refused by heed: " + f.paced.why(x.entry.Host) + ", " + othersWait(f.paced.Waiting-1) + "; ask again after " + inSeconds(f.retryAfter)
}

// othersWait says how many requests wait.
func othersWait(n int) string {
	switch n {
	case 0:
		return "nobody else waits"
	case 1:
		return "1 other waits"
	}
	return strconv.Itoa(n) + " others wait"
}

// pacedDetail tells a person what the queue is, and what can be done.
func (x *exchange) pacedDetail(p *problem) string {
	f := x.refusal
	if f.ended {
		return "Requests to this site take turns, and this one waited for its own when the proxy was told to end. Nothing was sent to the site."
	}
	if f.paced == nil || f.paced.Wait == 0 {
		return "heed knows the last request to each site that is paced, and there are more such sites than it can know at a time. Asking again can help."
	}
	return fmt.Sprintf("Requests to this site take turns, for all clients of this proxy together: %s. The turn of this request would have come in about %s, "+
		"which is longer than this proxy lets a client wait (pacing.max_wait, or max_wait of its [[client]]). "+
		"Nothing was sent to the site. Asking for the same again after %d seconds is served.", f.paced.why(x.entry.Host), inSeconds(f.paced.Wait), p.RetryAfter)
}

// queue returns the place as data.
func (p *TurnPlace) queue() *queue {
	q := &queue{Waiting: p.Waiting, Held: seconds(p.Held)}
	if p.Asked > 0 {
		delay, asked := p.Delay.Seconds(), p.Asked.Seconds()
		q.Delay, q.Asked = &delay, &asked
	}
	return q
}
