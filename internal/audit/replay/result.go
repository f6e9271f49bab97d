package replay

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"heed/internal/acl"
	"heed/internal/audit/store"
	"heed/internal/safetext"
	"heed/rules"
)

// verdictOf returns o as it would be recorded.
func verdictOf(o *acl.Result) store.Verdict {
	return store.Verdict{
		Verdict: o.Verdict.String(), Reason: string(o.Reason), Group: o.Group, Rule: o.Rule, Line: o.Line,
		Token: o.Token, Variant: o.Variant, Unseen: o.Unseen, Settled: o.OperatorReason,
	}
}

// Class is the result of judging an entry again.
type Class string

// The classes.
const (
	Same        Class = "same"         // the same verdict, reason, group, rule and line
	Different   Class = "different"    // another verdict, by an engine of the same number
	OtherEngine Class = "other-engine" // another verdict, by an engine of another number
	Redacted    Class = "redacted"     // the verdict may depend on a redacted part of the target
	Incomplete  Class = "incomplete"   // other data that it rests on is not in the record
	NotByRules  Class = "not-by-rules" // it does not rest on rules or settings
)

// settingsReasons are the reasons of verdicts that rest on the settings alone.
var settingsReasons = map[rules.Reason]bool{
	rules.ReasonRobotsTxt: true, rules.ReasonNotACrawl: true, rules.ReasonNoAgent: true, rules.ReasonOverride: true,
}

// ruleReasons are the reasons of verdicts that rest on a policy and the settings.
var ruleReasons = map[rules.Reason]bool{
	rules.ReasonRule: true, rules.ReasonNoRule: true, rules.ReasonRobotsTxt: true, rules.ReasonRobotsUnavailable: true,
	rules.ReasonRobotsUnreachable: true, rules.ReasonTooComplex: true, rules.ReasonOriginUnreachable: true, rules.ReasonDestination: true,
	rules.ReasonHostOnly: true, rules.ReasonMalformed: true, rules.ReasonOverride: true, rules.ReasonSubresource: true,
}

// count counts an entry that was judged.
func (r *Result) count(a *assessment) {
	if a.late {
		r.Late++
	} else {
		r.Entries++
		r.Engines[a.basis.Engine]++
	}
	switch a.class {
	case Same:
		r.Same++
		return
	case Different:
		r.Different++
	case OtherEngine:
		r.OtherEngine++
	case Redacted:
		r.Redacted++
	case Incomplete:
		r.Incomplete++
	case NotByRules:
		r.NotByRules++
	}
	r.countWhy(Why{Class: a.class, Reason: a.basis.Reason, Why: a.note})
	switch a.class {
	case Different:
		r.Examples = a.addTo(r.Examples, 0)
	case OtherEngine:
		r.Examples = a.addTo(r.Examples, 1<<62)
	}
}

// maxWhys bounds Result.Why. The reasons beyond it are counted under "others", for
// each class: a damaged record may have as many as entries.
const maxWhys = 200

// countWhy counts one more of w.
func (r *Result) countWhy(w Why) {
	if r.why[w] == 0 && len(r.why) >= maxWhys {
		w = Why{Class: w.Class, Reason: "others"}
	}
	r.why[w]++
}

// addTo adds the entry to examples, ordered by rank and then as in the record, of
// which the first maxExamples are kept.
func (a *assessment) addTo(examples []Example, rank int64) []Example {
	order := rank + 2*a.Seq
	if a.late {
		order++
	}
	i, _ := slices.BinarySearchFunc(examples, order, func(x Example, order int64) int { return cmp.Compare(x.order, order) })
	if i == maxExamples {
		return examples
	}
	examples = slices.Insert(examples, i, Example{
		Seq: a.Seq, ID: uuidText(a.ID), Time: a.time().UTC(), URL: urlOf(a.origin, a.Target), Agent: a.client.UserAgent,
		Recorded: a.basis.Verdict, Now: a.verdict, Engine: a.basis.Engine, Late: a.late, What: a.note, order: order,
	})
	return examples[:min(len(examples), maxExamples)]
}

// finish sets the lists that are made of counts.
func (r *Result) finish() {
	for w, n := range r.why {
		w.Count = n
		r.Why = append(r.Why, w)
	}
	slices.SortFunc(r.Why, func(a, b Why) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Why, b.Why))
	})
	if r.If != nil {
		r.If.finish()
	}
	if r.Uses != nil {
		r.Uses.finish()
	}
}

// urlOf returns the URL that was requested, with the target as safetext.Octets writes
// it; empty when the host is not known.
func urlOf(o rules.Origin, target string) string {
	if o.Host == "" {
		return ""
	}
	return o.String() + safetext.Octets(target)
}

// uuidText formats a UUID as text (RFC 9562 §4).
func uuidText(id []byte) string {
	if len(id) != 16 {
		return hex.EncodeToString(id)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
