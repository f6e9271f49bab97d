package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/judge/reason"
	"heed/internal/judge/signal"
	"heed/rules"
)

// assessment is an entry with everything its verdict rests on, and the result
// of judging it again.
type assessment struct {
	*store.Entry
	client   *store.Client
	origin   rules.Origin
	basis    *store.Basis // with the recorded verdict
	settings settings
	policy   *policy // nil: none was needed, or it is not loaded
	query    judge.Query
	late     bool // basis is that of the late verdict

	// statements is what the site stated of the use of the page, and purposes what the client
	// stated, where they decided (bySignal).
	bySignal   bool
	statements *signal.Verdict
	purposes   []signal.Purpose

	doubt   bool          // another value of what is redacted may lead to another verdict
	by      judge.Verdict // by the judgement now, with what it rests on
	class   Class
	verdict store.Verdict // by the judgement now
	note    string        // the reason of the class; empty: none
}

// load returns the assessment of e, or of its late verdict, before it is judged and
// without its policy.
func (l *library) load(r *store.Reader, e *store.Entry, late bool) (a *assessment, err error) {
	a = &assessment{Entry: e, late: late}
	id := e.Basis
	if late {
		id = e.Late
	}
	if a.basis, err = l.basis(r, id); err != nil {
		return nil, err
	}
	if a.client, err = l.clients.Load(e.Client, maxNames, func() (*store.Client, error) { return r.Client(e.Client) }); err != nil {
		return nil, err
	}
	if a.origin, err = l.sites.Load(e.Site, maxNames, func() (rules.Origin, error) { return r.Site(e.Site) }); err != nil {
		return nil, err
	}
	a.settings, err = l.settingsOf(r, a.basis.Configuration)
	return a, err
}

// loadPolicy sets the policy.
func (a *assessment) loadPolicy(l *library, r *store.Reader) (err error) {
	if a.basis.Policy != 0 {
		a.policy, err = l.policy(r, a.basis.Policy)
	}
	return err
}

// replayable reports whether the verdict rests on rules or settings, so that it
// can be judged again.
func (a *assessment) replayable() bool {
	reason := rules.Reason(a.basis.Reason)
	if a.basis.Policy == 0 {
		return settingsReasons[reason]
	}
	return ruleReasons[reason]
}

// prepare sets the query that the entry answered. It returns an error when the
// record does not contain all of it.
func (a *assessment) prepare(l *library) error {
	if len(a.client.UserAgent) > audit.MaxText && strings.HasSuffix(a.client.UserAgent, audit.CutMark) {
		return errors.New("the User-Agent was too long to be recorded whole")
	}
	if a.settings.err != nil {
		return a.settings.err
	}
	settings := a.settings.Rules
	client := settings.ClientNamed(a.client.Name)
	if client == nil && a.client.Name != "" {
		return fmt.Errorf("the recorded settings have no client %q", a.client.Name)
	}
	q := &a.query
	if q.Now, q.Target = a.time(), rules.NewTarget(a.Target); a.Redacted {
		a.judgeRedacted()
	}
	q.Effective = settings.For(client, a.origin, q.Now)
	q.Names = q.Effective.Identity(a.client.UserAgent, l.agent)
	if !audit.IsTunnel(a.Method, a.Target) {
		return nil
	}
	if q.HTTPS = q.Effective.HTTPS(); a.basis.Policy != 0 {
		q.HTTPS = acl.HostOnly
	}
	if q.HTTPS != acl.Intercept {
		q.Names = q.Effective.TunnelIdentity(q.Names, a.client.UserAgent, l.agent)
	}
	return nil
}

// evaluate returns the verdict on the query, by p where rules are needed, with what the record
// has of the request; ok is false when rules are needed and p is nil.
func (a *assessment) evaluate(p *rules.Policy) (v judge.Verdict, ok bool) {
	q := &judge.Question{Query: a.query, Policy: p, Held: []*rules.Policy{}, Statements: a.statements, SelfKnown: true}
	q.Target, q.Effective.Terms = rules.NewTarget(a.query.Target.String()), a.query.Effective.Terms.For(a.purposes)
	switch rules.Reason(a.basis.Reason) {
	case rules.ReasonSubresource:
		q.Part = a.Part
	case rules.ReasonDestination:
		q.Unreached = rules.ReasonDestination // why there was no connection is taken from the record
	}
	need := q.Decide(&v)
	if a.late && !a.bySignal { // it is recorded without Unseen
		if v.Unseen = 0; v.Verdict == rules.Refuse {
			v.Verdict = rules.WouldRefuse
		}
	}
	return v, need == judge.NeedsNothing
}

// judge judges the entry again and sets by, class, verdict and note.
func (a *assessment) judge(l *library) {
	err := a.findStatements(l)
	switch {
	case err == nil && !a.bySignal && !a.replayable():
		a.class, a.note = NotByRules, reason.Of(rules.Reason(a.basis.Reason)).Sentence
		return
	case err != nil:
	case a.policy != nil:
		err = a.policy.err
	case a.bySignal:
		err = errors.New("the record does not have the robots.txt that allowed it")
	}
	if err == nil {
		err = a.prepare(l)
	}
	switch {
	case errors.Is(err, rules.ErrNotIntact):
		a.class, a.note = Different, err.Error()
	case err != nil:
		a.class, a.note = Incomplete, err.Error()
	default:
		a.compare()
	}
	if a.doubt {
		a.class, a.verdict, a.note = Redacted, store.Verdict{}, "parts of the target are kept as keyed hashes, and the verdict may depend on them"
	}
}

// judgeRedacted sets the query to all targets that begin as the recorded one does up to
// its first keyed hash, in place of the value that is not known.
func (a *assessment) judgeRedacted() {
	beginning, redacted := audit.BeforeRedacted(a.Target)
	if !redacted {
		return // other parts of the request are
	}
	a.doubt = strings.HasPrefix("/robots.txt", beginning)
	a.query.Target = rules.NewTarget(beginning)
	a.query.Judge = func(p *rules.Policy, agent *rules.Agent, beginning *rules.Target) rules.Decision {
		d, sure := decideBeginning(p, agent, beginning.String())
		a.doubt = a.doubt || !sure
		return d
	}
}

// compare judges the entry and compares the verdict with the recorded one.
func (a *assessment) compare() {
	a.decide(0)
	if a.class != Same && a.mayExpire() {
		a.decide(maxWait) // a setting expired while it waited for the policy
	}
	if a.class == Different && a.basis.Engine != rules.Engine {
		a.class = OtherEngine
		a.note = fmt.Sprintf("decided by engine %d, this is %d", a.basis.Engine, rules.Engine)
	}
}

// maxWait bounds the time that a decision waits after its settings are read and
// before their exceptions are applied.
const maxWait = time.Minute

// mayExpire reports whether an exception or override expired within maxWait
// after the request.
func (a *assessment) mayExpire() bool {
	soon := func(end time.Time) bool {
		return !end.IsZero() && !end.Before(a.query.Now) && end.Sub(a.query.Now) <= maxWait
	}
	settings := a.settings.Rules
	return slices.ContainsFunc(a.query.Effective.Site.Exceptions, func(e *acl.Exception) bool { return soon(e.Expires) }) ||
		settings != nil && slices.ContainsFunc(settings.Overrides, func(b acl.ModeOverride) bool { return soon(b.Until) })
}

func (a *assessment) time() time.Time { return time.UnixMicro(a.Time) }

// decide evaluates the query as of later after the request, and sets class,
// verdict and note.
func (a *assessment) decide(later time.Duration) {
	q := &a.query
	q.Now = a.time().Add(later)
	if later > 0 {
		q.Effective = a.settings.Rules.For(q.Effective.Client, a.origin, q.Now)
	}
	var p *rules.Policy
	if a.policy != nil {
		p = a.policy.Policy
	}
	var ok bool
	a.by, ok = a.evaluate(p)
	a.class, a.verdict, a.note = Same, verdictOf(&a.by.Result), ""
	switch {
	case !ok:
		a.class, a.note = Different, "by these settings a robots.txt counts, and the record has none for it"
	case a.verdict != a.basis.Verdict:
		a.class = Different
		if a.bySignal && a.by.Refusal == nil {
			a.note = "the rules do not allow it, or what is recorded of the site's statements does not refuse the purposes of the client"
		}
	case q.Effective.Mode.String() != a.client.Mode && (a.bySignal || !a.late):
		a.class, a.note = Different, fmt.Sprintf("by these settings the mode is %s, recorded is %s", q.Effective.Mode, a.client.Mode)
	case !slices.Equal(q.Names.Also.List(), a.client.AlsoObey):
		a.class, a.note = Different, "by these settings it also obeys "+cmp.Or(strings.Join(q.Names.Also.List(), ", "), "no other name")
	case !a.sameNames():
		a.class, a.note = Different, "it is judged under other names: "+strings.Join(namesOf(q.Names.Own), ", ")
	}
}

// sameNames reports whether the agent is judged under the recorded names.
func (a *assessment) sameNames() bool {
	names, recorded := namesOf(a.query.Names.Own), a.client.Tokens
	if last := len(recorded) - 1; last >= 0 && recorded[last] == audit.CutMark && len(names) > last {
		names, recorded = names[:last], recorded[:last]
	}
	return slices.Equal(names, recorded)
}

func namesOf(agent *rules.Agent) []string {
	names := []string{}
	for _, t := range agent.Tokens {
		names = append(names, t.Name)
	}
	return names
}
