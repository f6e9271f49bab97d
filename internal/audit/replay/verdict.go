package replay

import (
	"heed/internal/terms"
	"heed/rules"
)

// Verdict is what was decided, and by what.
type Verdict struct {
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	Group   string `json:"group,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Line    int    `json:"line,omitempty"`
	Token   string `json:"token,omitempty"`
	Variant string `json:"variant,omitempty"`
	Unseen  int    `json:"unseen,omitempty"`  // rules that might have refused what a tunnel hides
	Settled string `json:"settled,omitempty"` // the operator's reason for an exception that decided
}

// verdictOf returns what the record would say of o.
func verdictOf(o *terms.Opinion) Verdict {
	return Verdict{
		Verdict: o.Verdict.String(), Reason: string(o.Reason), Group: o.Group, Rule: o.Rule, Line: o.Line,
		Token: o.Token, Variant: o.Variant, Unseen: o.Unseen, Settled: o.Settled,
	}
}

// Class says what came of judging an entry again.
type Class string

// The classes.
const (
	Same        Class = "same"         // the same verdict, reason, group, rule and line
	Different   Class = "different"    // something else, by an engine of the same number
	OtherEngine Class = "other-engine" // something else, by an engine of another number
	Redacted    Class = "redacted"     // parts of the target are not in the record
	Incomplete  Class = "incomplete"   // something else that it rests on is not in the record
	NotByRules  Class = "not-by-rules" // it rests on no robots.txt
)

// withoutRules says why verdicts of a reason rest on no robots.txt, of those
// that cannot be judged again from the record.
var withoutRules = map[rules.Reason]string{
	rules.ReasonAccess:       "the client might not use the proxy, or not for this: that rests on its address and on what it may reach",
	rules.ReasonCredentials:  "the client showed no valid credentials, which are not recorded",
	rules.ReasonFailures:     "wrong credentials had come too often",
	rules.ReasonDestination:  "the address was not to be reached: that rests on names and addresses at that moment",
	rules.ReasonLimit:        "a bound on what clients may take was reached at that moment",
	rules.ReasonLeft:         "the client had left before there were rules",
	rules.ReasonHostMismatch: "the request named different places",
	rules.ReasonMalformed:    "it was no valid request",
	rules.ReasonLoop:         "the request had come through the proxy already",
	rules.ReasonTunnel:       "the operator lets the tunnels of this host pass unjudged",
	rules.ReasonNotHTTP:      "what went through the tunnel was no HTTP",
	rules.ReasonUntrusted:    "the client did not accept the certificate authority, so that no request was seen",
	rules.ReasonHandshake:    "no request came through the tunnel",
	rules.ReasonRecord:       "the record could not be written",
	rules.ReasonInternal:     "a fault in heed",
	rules.ReasonLate:         "it was let through before there were rules; the verdict that followed is judged again by itself",
	rules.ReasonPaced:        "its turn at the site was too far off at that moment",
	rules.ReasonExempt:       "the client is people, who are not judged",
}

// settledReasons are those that the settings alone lead to.
var settledReasons = map[rules.Reason]bool{
	rules.ReasonRobotsTxt: true, rules.ReasonNotACrawl: true, rules.ReasonUnnamed: true, rules.ReasonOverride: true,
}

// ruleReasons are those that a policy leads to, with the settings.
var ruleReasons = map[rules.Reason]bool{
	rules.ReasonRule: true, rules.ReasonNoRule: true, rules.ReasonRobotsTxt: true, rules.ReasonRobotsUnavailable: true,
	rules.ReasonRobotsUnreachable: true, rules.ReasonOriginUnreachable: true, rules.ReasonDestination: true,
	rules.ReasonHostOnly: true, rules.ReasonMalformed: true, rules.ReasonOverride: true, rules.ReasonPart: true,
}

// why says why a reason rests on no robots.txt.
func why(r rules.Reason) string {
	if text := withoutRules[r]; text != "" {
		return text
	}
	return "it rests on what happened at that moment, not on rules"
}
