package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/proxy/limit"
	"heed/rules"
)

// record passes the decision to the Recorder, once. A decision that cannot be recorded
// becomes a refusal, so that no decision takes effect unrecorded. A refusal is
// throttled first, which can delay it, turn it into a 429 or leave it without an
// answer.
func (x *decision) record() {
	if x.recorded {
		return
	}
	if !x.throttle() {
		return
	}
	if a := x.req.conn.redirection(); a != nil {
		x.entry.Detail = audit.Redirected(x.entry.Detail, a.original)
	}
	x.describeSignature()
	x.req.conn.counted.EnterRecorder()
	err := x.proxy.config.Recorder.Decided(&x.entry)
	x.req.conn.counted.LeaveRecorder()
	if err != nil {
		x.deny(denial{reason: rules.ReasonRecord, detail: err.Error()})
		return
	}
	x.recorded = true
}

// describe writes into the record what is known of the request.
func (x *decision) describe() {
	e, q := &x.entry, &x.req
	e.User, e.Tried, e.Method, e.UserAgent, e.Part, e.Page = q.client.User, q.tried, q.method, q.userAgent, q.part, q.page
	e.Raw, e.Target = q.raw, q.target
	if q.host != "" {
		e.Scheme, e.Host = q.origin.Scheme, q.host
	}
	if a := q.conn.redirected; a != nil {
		a.record(e, !a.opaque)
	}
	if q.settings != nil && q.settings.Rules != nil {
		e.Config, e.Settings = q.settings.Rules.Hash, q.settings.Rules.Text
	}
	if !q.identified {
		return
	}
	if q.effective.Purposes() != nil {
		e.Purposes = q.effective.PurposeNames()
	}
	e.AlsoObey = q.names.Also.List()
	e.ClientName, e.Mode = q.effective.Name(), q.effective.Mode.String()
	e.Agent, e.Sent, e.SentFrom = q.names.Own, "", q.names.From
	if q.names.Shown != q.userAgent {
		e.Sent = q.names.Shown
	}
}

// describeSignature writes into the record how the request is signed. One that is refused is
// not sent.
func (x *decision) describeSignature() {
	e := &x.entry
	if e.SignedKey, e.SignedBy = "", ""; x.refusal != nil || !x.req.identified {
		return
	}
	if by, _ := x.req.signing(time.Now()); by != nil {
		e.SignedKey, e.SignedBy = by.Key().Thumbprint, by.Agent()
	}
}

// throttle delays the refusals of a client that repeats refused requests. It reports
// whether x is recorded: a request that is left without an answer is not, but only
// counted in the next entry of its client. If its answer is prepared, throttle panics
// with http.ErrAbortHandler, so that the server ends the connection or the stream.
func (x *decision) throttle() bool {
	penalty, ok := x.proxy.throttleRefusal(x.Context, &x.entry, &x.req.settings.Limits)
	switch {
	case !ok && x.refusal != nil:
		panic(http.ErrAbortHandler)
	case !ok:
		return false
	case penalty != nil:
		x.penalize(penalty)
	}
	return true
}

// penalize replaces a refusal, if it has an answer, by a 429 for too many refusals.
func (x *decision) penalize(penalty *limit.Penalty) {
	if refused := x.entry.Decision.Reason; x.refusal != nil {
		d := overLimit(penalty.Exceeded)
		d.detail += "; without it, it would have been refused as well: " + string(refused)
		d.retry = max(penalty.RetryAfter, x.refusal.RetryAfter-penalty.Pause) // what refuses it may last longer
		x.deny(d)
	}
	x.entry.Detail += unanswered(penalty)
}

func unanswered(penalty *limit.Penalty) string {
	if penalty.Unanswered == 0 {
		return ""
	}
	return fmt.Sprintf("; %d before it got no answer", penalty.Unanswered)
}

// unreadEntry returns the record of a request that no handler has seen, of the client by
// at an address with its port, in t or outside tunnels where that is nil.
func (p *Proxy) unreadEntry(client string, by acl.ClientInfo, t *tunnel) *audit.Entry {
	e := &audit.Entry{ID: audit.NewID(), Time: time.Now(), Client: client, User: by.User, Judged: audit.NotJudged}
	if r := p.config.Live().Rules; r != nil {
		e.Config, e.Settings = r.Hash, r.Text
		if c := r.ClientOf(by); c != nil {
			e.ClientName = c.Name
		}
	}
	if t != nil {
		e.Scheme, e.Host = t.origin.Scheme, t.origin.Authority()
	}
	return e
}

// note records e, which ends with its decision, and reports whether it could be recorded.
func (p *Proxy) note(e *audit.Entry, v rules.Verdict, reason rules.Reason, detail string) bool {
	if !p.decided(e, v, reason, detail) {
		return false
	}
	p.config.Recorder.Ended(e)
	return true
}

// decided records the decision of e, and reports whether it could be recorded and is to be
// answered.
func (p *Proxy) decided(e *audit.Entry, v rules.Verdict, reason rules.Reason, detail string) bool {
	e.Decision, e.Detail = rules.Decision{Verdict: v, Reason: reason}, detail
	penalty, ok := p.throttleRefusal(context.Background(), e, p.limits())
	if !ok {
		return false
	}
	if penalty != nil {
		e.Detail += unanswered(penalty)
	}
	return p.config.Recorder.Decided(e) == nil
}

// throttleRefusal delays the refusal of a client that has had more of them than its
// allowance, and returns the penalty; nil for none. ok is false when the refusal is
// neither recorded nor answered. A decision that revises another, and a fault of
// heed's own, are not delayed.
func (p *Proxy) throttleRefusal(ctx context.Context, e *audit.Entry, of *limit.Limits) (penalty *limit.Penalty, ok bool) {
	if e.Decision.Verdict != rules.Refuse || e.Revises != nil || e.Decision.Reason == rules.ReasonInternal {
		return nil, true
	}
	at, _ := netip.ParseAddrPort(e.Client)
	penalty = p.gate.CountRefusal(at.Addr(), throttleTarget(e), of, time.Now())
	switch {
	case penalty == nil:
		return nil, true
	case penalty.Drop:
		return nil, false
	case !p.pause(ctx, penalty.Pause):
		p.gate.CountUnanswered(at.Addr(), penalty.Unanswered+1)
		return nil, false
	}
	return penalty, true
}

// throttleTarget returns what a client may be looping on; zero for tunnels,
// which are opened anew for every URL inside them, and for requests without
// credentials, which come before every URL.
func throttleTarget(e *audit.Entry) limit.Target {
	if e.Target == "" || e.Decision.Reason == rules.ReasonCredentials {
		return limit.Target{}
	}
	return limit.Target{Scheme: e.Scheme, Host: e.Host, Path: e.Target}
}

// pause waits for d, or until the proxy stops; it reports whether the client, which
// ctx belongs to, still waits for its answer.
func (p *Proxy) pause(ctx context.Context, d time.Duration) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-p.lasting.Done():
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// steadyRecorder is a Recorder whose panics are errors like any other: what it
// could not record is refused, and nothing else is harmed.
type steadyRecorder struct {
	Recorder
	log *slog.Logger
}

var errRecorder = errors.New("the recorder failed inside heed")

// Decided implements Recorder.
func (s steadyRecorder) Decided(e *audit.Entry) (err error) {
	defer s.recovered(e, &err)
	return s.Recorder.Decided(e)
}

// Ended implements Recorder. By then the client has its answer.
func (s steadyRecorder) Ended(e *audit.Entry) {
	var err error
	defer s.recovered(e, &err)
	s.Recorder.Ended(e)
}

// recovered ends a panic, logs it, and makes it an error.
func (s steadyRecorder) recovered(e *audit.Entry, err *error) {
	if v := recover(); v != nil {
		s.log.Error("the recorder failed inside heed", "id", e.ID, "panic", v, "stack", string(debug.Stack()))
		*err = errRecorder
	}
}
