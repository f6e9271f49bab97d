package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"heed/internal/audit"
	"heed/internal/base/safetext"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/proxy/refusal"
	"heed/proxy/usage"
	"heed/rules"
)

// use is what a site says of the use of a page that its robots.txt lets a request fetch.
type use struct {
	usage.Request
	question judge.Query
	rules    rules.Decision  // by the rules, before a statement counted
	settled  bool            // an exception of the operator has decided; no signal refuses
	verdict  *signal.Verdict // before the request; nil: no purpose needs one
	refusal  *signal.Refusal // by verdict; nil: none
}

// findStatements fills in what the site states of the use of the page that the rules allow.
func (x *decision) findStatements(ctx context.Context, q *judge.Question, v *judge.Verdict) {
	x.use = x.newUse(&q.Query, v.Policy)
	x.use.rules = v.Rules
	x.use.Left = ctx.Done()
	if x.req.effective.Mode == acl.Observe {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, observePatience)
		defer cancel()
	}
	var whole bool
	if q.Statements, whole = x.proxy.usage.Request(ctx, &x.use.Request); !whole {
		q.NoStatements, x.use = rules.ReasonClientLeft, nil
		return
	}
	x.use.verdict = q.Statements
}

// newUse returns the use of the page that x requests, which p allows.
func (x *decision) newUse(q *judge.Query, p *rules.Policy) *use {
	r := &x.req
	return &use{question: *q, Request: usage.Request{
		Settings: &r.settings.Signals, URL: r.origin.Scheme + "://" + r.host + safetext.Octets(r.target), Origin: r.origin, Target: q.Target,
		Agents: r.names.Speaking(p), Purposes: r.effective.Purposes(),
		Reference: r.effective.Licence(q.Now), Policy: p, Now: q.Now,
	}}
}

// recorded returns v as the record stores it; empty when it has no statement and no page.
func recorded(v *signal.Verdict) string {
	if v == nil || len(v.Statements) == 0 && v.Page == "" && !v.TooComplex {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil { // texts and numbers cannot fail
		return ""
	}
	return string(text)
}

// refusalOf returns the refusal if reason is one of a signal; else nil.
func (u *use) refusalOf(reason rules.Reason) *signal.Refusal {
	if reason != rules.ReasonSignal && reason != rules.ReasonLicence {
		return nil
	}
	return u.refusal
}

// statesUse reports whether readUse has something to read in an answer with that header. It
// is fast for a client without a purpose and an answer without a statement.
func (x *delivery) statesUse(h http.Header) bool {
	if x.use != nil {
		return true
	}
	e := &x.entry // that the rules of the site allow
	return e.Policy != nil && e.Decision.Verdict == rules.Allow && e.Judged == audit.ByPath && e.Settled == "" && e.Target != "*" &&
		(x.req.settings.Signals.Pages == usage.AllPages || signal.Stated(h))
}

// readsPage reports whether the page in the answer is read before it is delivered.
func (x *delivery) readsPage() bool {
	switch pages := x.req.settings.Signals.Pages; {
	case pages == usage.NoPages:
		return false
	case x.use != nil:
		return pages == usage.AllPages || len(x.use.Purposes) > 0
	default:
		return pages == usage.AllPages && x.statesUse(nil)
	}
}

// said returns v in short form for the log; empty when it has no answer.
func said(v *signal.Verdict) string {
	_, answers, _ := strings.Cut(v.Annotation(), ", ") // behind crawl
	return answers
}

// readUse judges the site's answer by what it says of the use of the page, and returns what
// the client gets: the answer, or a refusal in its place.
func (x *delivery) readUse(r *http.Request, resp *http.Response) *http.Response {
	u, p := x.use, &x.req
	if u == nil {
		u = x.newUse(&judge.Query{
			Effective: p.effective, Target: rules.NewTarget(p.target), Names: p.names, Now: x.proxy.config.Now(),
		}, x.entry.Policy)
	}
	body, ahead := x.download.ReadCloser.(*usage.Body)
	if !ahead {
		body = &usage.Body{Site: x.download.ReadCloser}
		x.download.ReadCloser = body
	}
	answer := x.proxy.usage.Answer(x.Context, &u.Request, r, resp, body)
	x.entry.Outcome.Signals, x.entry.Outcome.Said = recorded(answer), said(answer)
	all := signal.Combine(u.verdict, answer)
	if u.Annotate {
		resp.Header[signal.AnnotationField] = []string{all.Annotation()}
	}
	if u.settled {
		return resp
	}
	if refused, ok := all.Refuses(u.Purposes...); ok {
		return x.refuseUse(r, resp, &refused)
	}
	return resp
}

// refuseUse makes a refusal by the page the verdict on a request that was sent, and returns
// it in place of resp; in observe mode resp.
func (x *delivery) refuseUse(r *http.Request, resp *http.Response, refused *signal.Refusal) *http.Response {
	u, o, p := x.use, &x.entry.Outcome, &x.req
	result := u.question.ByAnswer(u.rules, refused)
	if result.Verdict == rules.Allow || result.Verdict == rules.WouldRefuse && x.entry.Decision.Verdict == rules.WouldRefuse {
		return resp
	}
	o.Late, o.LatePolicy, o.LateSettled = &result.Decision, x.entry.Policy, result.OperatorReason
	if result.Verdict == rules.WouldRefuse {
		return resp
	}
	w := &x.writer
	o.SiteStatus, o.FromSite = resp.StatusCode, false
	if p.conn.asked == nil { // else it is not heed's to read
		x.download.ReadCloser.(*usage.Body).Drop()
	}
	x.download = downloadBody{}
	w.trailer, w.phrase, w.stream, w.length = nil, nil, false, 0
	x.reply(refusal.Case{Reason: result.Reason, Use: refused})
	return x.refused(r)
}
