package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// entry is a row of the record that is judged again.
type entry struct {
	seq, time           int64
	id                  []byte
	asker, site, ground int64
	method, target      string
	part                string
	redacted            bool
}

// again is an entry with what it rests on, judged again.
type again struct {
	*entry
	asker    *asker
	origin   rules.Origin
	ground   *ground
	settings settings
	policy   *policy // nil: none was asked for
	question terms.Question
	late     bool // ground is of the verdict that followed

	class   Class
	verdict Verdict // when it was judged
	said    string  // what the class alone does not say
}

// gather finds what e rests on.
func (l *library) gather(ctx context.Context, r reader, e *entry, groundID int64, late bool) (a *again, err error) {
	a = &again{entry: e, late: late}
	if a.ground, err = l.ground(ctx, r, groundID); err != nil {
		return nil, err
	}
	if a.asker, err = l.asker(ctx, r, e.asker); err != nil {
		return nil, err
	}
	if a.origin, err = l.site(ctx, r, e.site); err != nil {
		return nil, err
	}
	if a.settings, err = l.book(ctx, r, a.ground.configuration); err != nil {
		return nil, err
	}
	if a.ground.policy != 0 {
		a.policy, err = l.policy(ctx, r, a.ground.policy)
	}
	return a, err
}

// byRules reports whether the verdict can be judged again.
func (a *again) byRules() bool {
	reason := rules.Reason(a.ground.verdict.Reason)
	if a.policy == nil {
		return settledReasons[reason]
	}
	return ruleReasons[reason]
}

// cutMark ends what was too long to be recorded whole.
const (
	cutMark = "..."
	cutAt   = 4096
)

// ask makes the question that the entry answered. It fails when the record does
// not have all of it.
func (a *again) ask(l *library) error {
	if len(a.asker.userAgent) > cutAt && strings.HasSuffix(a.asker.userAgent, cutMark) {
		return errors.New("the User-Agent was too long to be recorded whole")
	}
	if a.settings.err != nil {
		return a.settings.err
	}
	book := a.settings.Book
	client := book.ClientNamed(a.asker.name)
	if client == nil && a.asker.name != "" {
		return fmt.Errorf("the recorded settings have no client %q", a.asker.name)
	}
	q := &a.question
	q.Now, q.Target = time.UnixMicro(a.time), a.target
	q.Terms = book.For(client, a.origin, q.Now)
	q.Names = q.Terms.Identity(a.asker.userAgent, l.agent)
	if a.method != http.MethodConnect {
		return nil
	}
	if q.HTTPS = q.Terms.HTTPS(); a.policy != nil {
		q.HTTPS = terms.HostOnly
	}
	if q.HTTPS != terms.Intercept {
		q.Names = q.Terms.InTunnel(q.Names, a.asker.userAgent, l.agent)
	}
	return nil
}

// opinion answers the question, by p where rules are needed; ok is false when
// they are and there are none.
func (a *again) opinion(p *rules.Policy) (o terms.Opinion, ok bool) {
	q := &a.question
	if o, ok = q.WithoutRules(); !ok || a.late {
		if p == nil {
			return o, false
		}
		o = q.By(p)
	}
	if a.late {
		if o.Unseen = 0; o.Verdict == rules.Refuse { // of a late verdict that is not kept
			o.Verdict = rules.WouldRefuse
		}
		return o, true
	}
	if a.ground.verdict.Reason == string(rules.ReasonPart) && a.part != "" && q.Terms.MayBePart(o) {
		o = q.Terms.AsPart(o, a.part)
	}
	if a.ground.verdict.Reason == string(rules.ReasonDestination) && o.Reason == rules.ReasonOriginUnreachable {
		o.Reason = rules.ReasonDestination // what was in the way of the connection is taken from the record
	}
	return q.Terms.Observed(o), true
}

// judge judges the entry again and says what came of it.
func (a *again) judge(l *library) {
	switch {
	case !a.byRules():
		a.class, a.said = NotByRules, why(rules.Reason(a.ground.verdict.Reason))
		return
	case a.redacted:
		a.class, a.said = Redacted, "parts of the target are kept as keyed hashes"
		return
	case a.policy != nil && a.policy.err != nil:
		a.class, a.said = Incomplete, a.policy.err.Error()
		if errors.Is(a.policy.err, rules.ErrNotIntact) {
			a.class = Different
		}
		return
	}
	if err := a.ask(l); err != nil {
		a.class, a.said = Incomplete, err.Error()
		return
	}
	a.compare()
}

// compare judges and holds the verdict against the recorded one.
func (a *again) compare() {
	a.decide(0)
	if a.class != Same && a.expires() {
		a.decide(patience) // it waited for the policy while something ended
	}
	if a.class == Different && a.ground.engine != rules.Engine {
		a.class = OtherEngine
		a.said = fmt.Sprintf("decided by engine %d, this is %d", a.ground.engine, rules.Engine)
	}
}

// patience is for how long, at most, a decision waits between the look at the
// settings and at their exceptions.
const patience = time.Minute

// expires reports whether something that was settled ended while the decision
// may have waited.
func (a *again) expires() bool {
	soon := func(end time.Time) bool {
		return !end.IsZero() && !end.Before(a.question.Now) && end.Sub(a.question.Now) <= patience
	}
	book := a.settings.Book
	return slices.ContainsFunc(a.question.Terms.Site.Exceptions, func(e *terms.Exception) bool { return soon(e.Expires) }) ||
		book != nil && slices.ContainsFunc(book.Breaks, func(b terms.Break) bool { return soon(b.Until) })
}

func timeOf(e *again) time.Time { return time.UnixMicro(e.time) }

func (a *again) decide(later time.Duration) {
	q := &a.question
	q.Now = timeOf(a).Add(later)
	if later > 0 {
		q.Terms = a.settings.Book.For(q.Terms.Client, a.origin, q.Now)
	}
	var p *rules.Policy
	if a.policy != nil {
		p = a.policy.Policy
	}
	o, ok := a.opinion(p)
	a.class, a.verdict, a.said = Same, verdictOf(&o), ""
	switch recorded := a.ground.verdict; {
	case !ok:
		a.class, a.said = Different, "by these settings a robots.txt counts, and the record has none for it"
	case a.verdict != recorded:
		a.class = Different
	case q.Terms.Mode.String() != a.asker.mode && !a.late:
		a.class, a.said = Different, fmt.Sprintf("by these settings the mode is %s, recorded is %s", q.Terms.Mode, a.asker.mode)
	case !a.sameNames():
		a.class, a.said = Different, "it is judged under other names: "+strings.Join(namesOf(q.Names.Judged), ", ")
	}
}

// sameNames reports whether the agent is judged under the names recorded.
func (a *again) sameNames() bool {
	names, recorded := namesOf(a.question.Names.Judged), a.asker.tokens
	if last := len(recorded) - 1; last >= 0 && recorded[last] == cutMark && len(names) > last {
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
