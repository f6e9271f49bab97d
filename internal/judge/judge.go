// Package judge decides whether a request may be sent. It is the one place that does: the
// proxy, heed check and the replay of a record fetch what a Question asks for, and send,
// print or compare what it answers. The package is pure: it has no network, no clock and no
// lock, and the same Question has the same Verdict a year later.
//
// The order of a decision is that of Question.Decide: destinations that nothing may be sent
// to; blocks and settings that need no rules of the site; the rules, for each of the client's names, with the exceptions of the
// operator; the site's statements on the use of its pages; heed's own addresses; parts of
// pages; the mode.
package judge

import (
	"cmp"
	"errors"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/rules"
)

// Question is "may this client fetch this target, now?" with what is known for the answer.
// Members after the Query are filled in when Decide asks for them.
type Question struct {
	Query // settings, names, target and time; Effective.Purposes() are those of the client

	// Barred is why no request for this site may be sent, whatever it is: a destination that is
	// forbidden, or heed's own address; empty: none is known.
	Barred rules.Reason
	// OwnService is set for a service on a loopback address that the client's own command
	// has started.
	OwnService bool
	// Mismatch is set when Host, authority or SNI name different places.
	Mismatch bool
	// Part is the kind of the part of a page that is requested, for a client that may read
	// that page; empty: it is none.
	Part string
	// PageSpeaks is set when the answer is judged before it is delivered. Then a page that the
	// site's TDMRep file alone refuses is requested, since the page itself overrides the file.
	PageSpeaks bool
	// Annotate is set when statements are wanted for a client without a purpose as well.
	Annotate bool

	// Policy is the rules of the site, or those in their place: see NeedsPolicy. In place of
	// it NoPolicy is why there is none.
	Policy   *rules.Policy
	NoPolicy rules.Reason
	// Unreached is why the site of Policy cannot be reached where its error does not show that:
	// in a record.
	Unreached rules.Reason
	// Held are the files that are held for clients with a name: see NeedsHeld. Not nil: known.
	Held []*rules.Policy
	// Statements is what the site states of the use of the page: see NeedsStatements. In place
	// of it NoStatements is why there is none: the client left.
	Statements   *signal.Verdict
	NoStatements rules.Reason
	// Page is what the answer states beside; nil: there is none yet. It comes with Statements.
	Page *signal.Verdict
	// Self is whether the address is heed's own, where SelfKnown is set: see NeedsSelf.
	Self, SelfKnown bool
}

// Need is what Decide needs to go on.
type Need uint8

// The needs.
const (
	NeedsNothing    Need = iota // the Verdict is complete
	NeedsPolicy                 // Question.Policy, or NoPolicy
	NeedsHeld                   // Question.Held; may be empty, not nil
	NeedsStatements             // Question.Statements, of the page that Verdict.Policy allows, or NoStatements
	NeedsSelf                   // Question.Self, with SelfKnown
)

// Verdict is the answer to a Question and what it rests on.
type Verdict struct {
	Result
	Policy *rules.Policy // that decided; nil: none was needed
	Agent  *rules.Agent  // the names that decided
	// Rules is the decision by the rules and their exceptions, before Statements counted.
	Rules rules.Decision
	// Refusal is by a statement of the site; nil: none refuses. Excepted is set when an
	// exception of the operator allows what it refuses.
	Refusal  *signal.Refusal
	Excepted bool
	Self     bool // the address is heed's own
	Own      bool // it is the client's own service, whose rules do not count

	stage stage
}

// stage is how far a Verdict is complete.
type stage uint8

const (
	atSettings stage = iota
	atRules
	atHeld
	atStatements
	atSelf
	decided
)

// Decide answers q, or returns what it needs for that; then the Verdict is what is known so
// far. Once the need is filled in, Decide goes on from that Verdict. It begins with the zero
// one.
func (q *Question) Decide(v *Verdict) Need {
	if v.stage == atSettings {
		v.stage = q.bySettings(v)
	}
	if v.stage == atRules {
		if q.Policy == nil && q.NoPolicy == "" {
			return NeedsPolicy
		}
		v.stage = q.byRules(v)
	}
	if v.stage == atHeld {
		if q.Held == nil {
			return NeedsHeld
		}
		q.byHeld(v)
		v.stage = atStatements
	}
	if v.stage == atStatements {
		switch wanted := q.wantsStatements(v); {
		case wanted && q.NoStatements != "":
			v.Result, v.Policy = Result{Decision: rules.Decision{Reason: q.NoStatements}, Unjudged: true}, nil
		case wanted && q.Statements == nil:
			return NeedsStatements
		case wanted:
			q.byStatements(v)
		}
		v.stage = atSelf
	}
	if v.stage == atSelf {
		if v.Verdict == rules.Allow && !v.Own && !q.SelfKnown {
			return NeedsSelf
		}
		q.finish(v)
		v.stage = decided
	}
	return NeedsNothing
}

// bySettings decides by what the operator has settled for the client and the site.
func (q *Question) bySettings(v *Verdict) (next stage) {
	var settled bool
	v.Agent = q.Names.Own
	if q.Barred != "" {
		v.Result = Result{Decision: rules.Decision{Reason: q.Barred}, Unjudged: q.Barred == rules.ReasonLoop}
		v.Self = q.Barred == rules.ReasonLoop
		return atSelf
	}
	if v.Result, settled = q.WithoutRules(); settled {
		return atSelf
	}
	if q.OwnService {
		v.Result = q.WithoutSite(rules.ReasonOwnService)
		v.Own = v.Reason == rules.ReasonOwnService
		return atSelf
	}
	return atRules
}

// byRules decides by the rules of the site and the exceptions from them.
func (q *Question) byRules(v *Verdict) (next stage) {
	if q.Policy == nil {
		v.Result = Result{Decision: rules.Decision{Reason: q.NoPolicy}, Unjudged: true}
		if q.NoPolicy == rules.ReasonRulesPending {
			v.Verdict = rules.Allow
		}
		return atSelf
	}
	v.Policy = q.Policy
	v.Result, v.Agent = q.decideBy(q.Policy)
	v.Rules = v.Decision
	// Of an origin that answers clients differently, a request without a User-Agent, or
	// with one under which the site was not asked, is refused when any of the files
	// refuses it that are held for clients with a name: otherwise a client would get by
	// leaving its name out, or by inventing names, what the site refuses to it.
	if (q.Names.Shown == "" || q.Policy.Source().NameNotAsked) && q.Effective.Site.Robots == nil && v.Verdict != rules.Refuse {
		return atHeld
	}
	return atStatements
}

// byHeld has the files decide that are held for clients with a name.
func (q *Question) byHeld(v *Verdict) {
	for _, held := range q.Held {
		if o, agent := q.decideBy(held); o.Verdict == rules.Refuse {
			v.Result, v.Agent, v.Policy, v.Rules = o, agent, held, o.Decision
			return
		}
	}
}

// decideBy returns the decision under p, with the reason that the site cannot be reached.
func (q *Question) decideBy(p *rules.Policy) (Result, *rules.Agent) {
	o, agent := q.Query.Decide(p)
	if o.Reason == rules.ReasonOriginUnreachable {
		o.Reason = q.unreached(p)
		o.Unjudged = o.Reason == rules.ReasonLoop
	}
	return o, agent
}

// unreached returns why the site of p cannot be reached: the site is the cause, or heed does not
// let itself reach its address.
func (q *Question) unreached(p *rules.Policy) rules.Reason {
	var barred interface{ BarredFor() rules.Reason }
	if errors.As(p.Source().Err, &barred) {
		return barred.BarredFor()
	}
	return cmp.Or(q.Unreached, rules.ReasonOriginUnreachable)
}

// wantsStatements reports whether what the site states of the use of the page counts: the
// rules allow a page to a client with a purpose. What robots.txt refuses and only an
// exception allows has no usage verdict.
func (q *Question) wantsStatements(v *Verdict) bool {
	return v.Verdict == rules.Allow && v.Reason != rules.ReasonOverride && q.HTTPS == acl.Intercept && q.Target.String() != "*" &&
		(q.Annotate || len(q.Effective.Purposes()) > 0)
}

// byStatements makes a statement that refuses a purpose of the client the decision, unless an
// exception of the operator allows the target.
func (q *Question) byStatements(v *Verdict) {
	refusal, refused := q.Statements.Refuses(q.Effective.Purposes()...)
	if refused {
		d, reason := q.Except(refusal.Decision(v.Rules))
		if d.Verdict == rules.Allow || !q.PageSpeaks || !q.Statements.ByTDMRepFile(q.Effective.Purposes()...) {
			v.Refusal, v.Decision, v.OperatorReason, v.Excepted = &refusal, d, reason, d.Verdict == rules.Allow
			return
		}
	}
	if q.Page == nil {
		return
	}
	if refusal, refused = signal.Combine(q.Statements, q.Page).Refuses(q.Effective.Purposes()...); refused {
		if d, reason := q.Except(refusal.Decision(v.Rules)); d.Verdict != rules.Allow {
			v.Refusal, v.Decision, v.OperatorReason = &refusal, d, reason
		}
	}
}

// finish decides about heed's own addresses, parts of pages, and the mode.
func (q *Question) finish(v *Verdict) {
	if v.Verdict == rules.Allow && q.Self && !v.Own {
		v.Result, v.Policy, v.Self = Result{Decision: rules.Decision{Reason: rules.ReasonLoop}, Unjudged: true}, nil, true
	}
	if q.Part != "" && MayBeSubresource(q.Effective, v.Result) {
		v.Result = AsSubresource(q.Effective, v.Result, q.Part)
	}
	if q.Mismatch && q.Effective.Mode == acl.Observe {
		v.Decision = rules.Decision{Reason: rules.ReasonHostMismatch}
	}
	v.Result = Apply(q.Effective, v.Result)
}

// ByAnswer returns the decision about an answer that the site has sent, whose page all that is
// known refuses by r: refused, or what an exception or the mode makes of it. by is the decision by
// the rules (Verdict.Rules).
func (q *Query) ByAnswer(by rules.Decision, r *signal.Refusal) Result {
	d, reason := q.Except(r.Decision(by))
	return Apply(q.Effective, Result{Decision: d, OperatorReason: reason})
}

// Delay is the time that is kept between two requests to a site, and what it rests on.
type Delay struct {
	Kept  time.Duration // 0: none
	Asked time.Duration // by By or by the operator; longer than Kept when that is the operator's longest
	By    rules.Field   // the line that asks; zero: the operator does, or nothing
	Group string        // of By, as in rules.RateHint
	// Ignored are the lines about speed for the client that have no effect, since their values
	// cannot be understood.
	Ignored []rules.Field
}

// DelayOf returns the delay at a time that a policy and the operator ask of a client with
// some names. least and longest are the operator's bounds; longest 0: none.
func DelayOf(p *rules.Policy, names acl.Identity, least, longest time.Duration, now time.Time) Delay {
	d := Delay{Asked: least}
	for _, hint := range names.RateHints(p) {
		if asked, by := hint.Delay(now); asked > 0 && asked >= d.Asked {
			d.Asked, d.By, d.Group = asked, by, hint.Group
		}
	}
	if d.Kept = d.Asked; longest > 0 {
		d.Kept = min(d.Asked, longest)
	}
	for _, f := range names.Fields(p, rules.CrawlDelay, rules.RequestRate, rules.VisitTime) {
		if !f.Understood() {
			d.Ignored = append(d.Ignored, f)
		}
	}
	return d
}
