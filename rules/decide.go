package rules

import "sync"

// Decide judges target, the path and query exactly as they are sent
// ("/a%2Fb?q=1"), for agent. A nil agent is judged under the star group.
// A target without path has the path "/"; any other that does not begin with
// "/" is refused as malformed, and so is what would take too long to judge: an
// agent of more than MaxGoverning names that are in the file, and an ambiguous
// target of more than a KiB among more than 32,768 wildcards. Decide allocates
// nothing once it has met the agent, and is safe for concurrent use.
func (p *Policy) Decide(agent *Agent, target string) Decision {
	switch {
	case target == robotsPath:
		return Decision{Verdict: Allow, Reason: ReasonRobotsTxt}
	case p.source.State == Unavailable:
		return Decision{Verdict: Allow, Reason: ReasonRobotsUnavailable}
	case p.source.State != Available || p.engine == nil:
		return Decision{Verdict: Refuse, Reason: ReasonRobotsUnreachable}
	case target == "":
		target = "/"
	case target[0] == '?':
		target = "/" + target
	case target[0] != '/':
		return Decision{Verdict: Refuse, Reason: ReasonMalformed}
	}
	return p.engine.decide(p.engine.governing(agent), target)
}

// robotsPath is the target that is always allowed (RFC 9309 §2.2.2).
const robotsPath = "/robots.txt"

// A target that must be read in several ways takes as often the time of one.
// Where the rules have more wildcards than costlyStars, as none but hostile
// files have, such a target longer than costlyTarget is refused unread.
const (
	costlyStars  = 1 << 15
	costlyTarget = 1 << 10
)

// decide judges a target in all of its readings.
func (e *engine) decide(sets []chosen, target string) Decision {
	switch {
	case len(sets) == 0:
		return Decision{Verdict: Allow, Reason: ReasonNoRule}
	case len(sets) > MaxGoverning:
		return Decision{Verdict: Refuse, Reason: ReasonMalformed}
	}
	if e.asSent && plainLiteral(target) || !e.asSent && plain(target, e.allReadings) {
		return e.judge(sets, target)
	}
	if e.costly && len(target) > costlyTarget {
		return Decision{Verdict: Refuse, Reason: ReasonMalformed}
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	var d Decision
	e.read(s, target, func(name, reading string) bool {
		if r := e.judge(sets, reading); d.Reason == "" || r.Verdict == Refuse {
			d = r
			d.Variant = name
		}
		return d.Verdict != Refuse
	})
	return d
}

// read calls judge with each reading of a target, that as sent first, until
// judge returns false. What judge is given is valid during the call only.
func (e *engine) read(s *scratch, target string, judge func(name, reading string) bool) {
	if e.asSent {
		s.literals(target, judge)
		return
	}
	s.target = appendTarget(s.target[:0], target)
	if judge("", view(s.target)) {
		s.readings(view(s.target), e.allReadings, judge)
	}
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// judge judges one reading of a target: every set must allow. Among sets that
// allow, one with a rule for the target tells more than one without.
func (e *engine) judge(sets []chosen, target string) Decision {
	var allowed Decision
	for i := range sets {
		d := e.judgeSet(&sets[i], target)
		if d.Verdict == Refuse {
			return d
		}
		if sets[i].how != byList && (allowed.Reason == "" || allowed.Reason == ReasonNoRule && d.Reason == ReasonRule) {
			allowed = d
		}
	}
	if allowed.Reason == "" {
		allowed = Decision{Verdict: Allow, Reason: ReasonNoRule}
	}
	return allowed
}

func (e *engine) judgeSet(c *chosen, target string) Decision {
	best := -1
	if c.index != nil {
		best = c.index.find(e, target, best)
	} else {
		for _, n := range e.names[c.at:c.end] {
			best = e.findIn(n.group, target, best)
		}
	}
	d := Decision{
		Verdict: Allow, Reason: ReasonNoRule,
		Group: c.group, Token: c.token.Name, Piece: c.token.Piece,
	}
	if best < 0 {
		return d
	}
	d.Reason = ReasonRule
	d.Rule, d.Line = e.ruleText(best)
	if !e.rules[best].allows() {
		d.Verdict = Refuse
	}
	return d
}
