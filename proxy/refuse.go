package proxy

import (
	"net/http"
	"time"

	"heed/internal/audit"
	"heed/internal/base/safetext"
	"heed/internal/pace"
	"heed/proxy/limit"
	"heed/proxy/refusal"
	"heed/proxy/upstream"
	"heed/rules"
)

// denial is a refusal for which no rule is the reason. The zero value denies
// nothing.
type denial struct {
	reason rules.Reason
	detail string        // for the record
	retry  time.Duration // when asking again can help, in place of the reason's; 0: the reason's
	err    error         // what stopped the request, where that decides on the answer; see refusal.Case
}

// maxDetail bounds the detail of a malformed request, in octets: a client
// chooses how long the part is that gets quoted.
const maxDetail = 300

func malformed(detail string) denial {
	return denial{reason: rules.ReasonMalformed, detail: safetext.Printable(detail, maxDetail)}
}

func overLimit(over *limit.Exceeded) denial {
	return denial{reason: rules.ReasonLimit, detail: over.Error(), err: over}
}

// forbidden denies a destination for the reason that err is.
func forbidden(err error) denial {
	return denial{reason: rules.ReasonDestination, detail: safetext.Error(err), err: err}
}

// deny makes d the decision and prepares its answer.
func (x *decision) deny(d denial) {
	if !x.recorded {
		x.describe()
	}
	x.refuse(rules.Decision{Reason: d.reason}, d.detail, refusal.Case{Err: d.err, RetryAfter: d.retry})
}

// refuse makes d the decision and prepares the answer: c, with the reason of d.
func (x *decision) refuse(d rules.Decision, detail string, c refusal.Case) {
	x.entry.Decision, x.entry.Detail, c.Reason = d, detail, d.Reason
	x.reply(c)
}

// refusePaced refuses x since its turn is too far off.
func (x *decision) refusePaced(a *pace.Answer) {
	by := x.entry.Decision
	d := rules.Decision{Reason: rules.ReasonPaced, Group: by.Group, Token: by.Token, Piece: by.Piece, Role: by.Role}
	if rule := refusal.WaitRule(&a.Position); rule.Line > 0 {
		d.Line, d.Rule = rule.Line, rule.Kind.String()+": "+rule.Value
	}
	x.refuse(d, "", refusal.Case{Paced: a})
}

// reply prepares the answer for c without changing the decision: an allowed
// request may still fail on its way.
func (x *decision) reply(c refusal.Case) {
	c.Entry, c.Host, c.Proxy = &x.entry, x.req.origin.Host, x.refuser()
	x.refusal = refusal.New(c)
}

// refuser returns what answers contain of the proxy.
func (x *decision) refuser() refusal.Proxy {
	q := &x.req
	return refusal.Proxy{Member: x.proxy.statusName, Page: q.client.Listener, Mark: q.settings != nil && q.settings.Mark, Own: x.proxy.config.Own}
}

// remark returns the Proxy-Status field for a site's own answer; empty for none.
func (x *decision) remark() string { return x.refuser().Remark(&x.entry, x.paced) }

// closePort ends x without an answer if nothing listens at the port of this machine that a
// client of OwnServices requests: programs look for a free port in that way, and the answer of a
// proxy looks as if it was taken. That to a CONNECT does not; without it, Node's fetch requests the
// tunnel again and again.
func (x *decision) closePort() {
	if x.req.method == http.MethodConnect || x.refusal.ErrorType != upstream.ConnectionRefused || !x.toVacantPort() {
		return
	}
	x.entry.Outcome.End(audit.BySite, x.refusal.ErrorType+": nothing listens at this port, and the connection was closed as by the port")
	panic(http.ErrAbortHandler)
}

// toVacantPort reports whether a client of OwnServices requests a port of this machine at which
// nothing listens.
func (x *decision) toVacantPort() bool {
	s := x.proxy.config.OwnServices
	return s != nil && s.Vacant(x.req.origin.HostPort())
}

// answer records x's refusal and writes it without asking the engine.
func (x *delivery) answer(r *http.Request) {
	x.record()
	x.closePort()
	x.writer.send(x.refused(r))
	if x.upload.pending.Load() {
		x.upload.drain(&x.writer, r)
	}
}

// answerPanic answers for a panic before the first octet of an answer.
func (x *delivery) answerPanic() {
	if !x.recorded {
		x.deny(denial{reason: rules.ReasonInternal})
		x.record()
	}
	x.reply(refusal.Case{Reason: rules.ReasonInternal})
	clear(x.writer.Header())
	resp := x.refusal.Response(&http.Request{Method: x.req.method, ProtoMajor: 1})
	resp.Header.Set("Connection", "close")
	x.writer.send(resp)
}
