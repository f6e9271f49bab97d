package rules

import "sync"

// Decide judges a target for agent, with the steps that are left for it. A nil agent is judged under the star group.
// A target without path has the path "/"; any other that does not begin with
// "/" is refused as malformed. What would take too long to judge is refused as too
// complex: an agent of more than MaxGoverning names that are in the file, and whatever
// takes more than 16 Mi steps, which are about 20 ms. Decide allocates nothing once it
// has met the agent, and is safe for concurrent use.
func (p *Policy) Decide(agent *Agent, t *Target) (d Decision) {
	switch {
	case t.NamesRobots():
		return Decision{Verdict: Allow, Reason: ReasonRobotsTxt}
	case p.source.State == Unavailable:
		return Decision{Verdict: Allow, Reason: ReasonRobotsUnavailable}
	case p.source.State != Available || p.engine == nil:
		return Decision{Verdict: Refuse, Reason: ReasonRobotsUnreachable}
	}
	target, ok := t.path()
	if !ok {
		return Decision{Verdict: Refuse, Reason: ReasonMalformed}
	}
	p.engine.decide(&d, p.engine.governing(agent), target, &t.steps)
	return d
}

// DecideOther is Decide for another target that the request for t leads to, with the steps
// that are left for t.
func (p *Policy) DecideOther(agent *Agent, t, other *Target) Decision {
	other.steps = t.steps
	d := p.Decide(agent, other)
	t.steps = other.steps
	return d
}

// robotsPath is the target that is always allowed (RFC 9309 §2.2.2).
const robotsPath = "/robots.txt"

// tooComplex is the Decision about a target that would take too long to judge.
var tooComplex = Decision{Verdict: Refuse, Reason: ReasonTooComplex}

// decide sets d, which is zero, to the Decision about a target in all of its readings.
func (e *engine) decide(d *Decision, sets []ruleSet, target string, steps *int) {
	switch {
	case len(sets) == 0:
		d.Verdict, d.Reason = Allow, ReasonNoRule
	case len(sets) > MaxGoverning, *steps < 0:
		*d = tooComplex
	case e.plain(target):
		s := judging{steps: *steps, alone: true}
		set, rule := e.judge(&s, sets, "", target)
		*steps = s.steps
		e.decision(d, &s, sets, set, rule, "")
	default:
		s := scratches.Get().(*scratch)
		s.begin(*steps)
		e.decideIn(d, s, sets, target)
		*steps = s.steps
		scratches.Put(s)
	}
}

// plain reports whether a target has one reading, and is its own packed form.
func (d *differences) plain(target string) bool {
	inQuery := false
	for i := 0; i < len(target); i++ {
		c := target[i]
		switch {
		case unreserved[c]:
		case d.asSent && !legal[c]:
			return false
		case inQuery:
			if !d.asSent && (c == '/' || c == '?' || c == '%' || c >= codeFirst) {
				return false
			}
		case c == '?':
			inQuery = true
		case c == '/':
			if i+1 < len(target) && (target[i+1] == '/' || target[i+1] == '.' || target[i+1] == ';') {
				return false
			}
		case !d.asSent && (c == '%' || c == '\\' || c == '&' || c == '=' || c >= codeFirst || c == ';' && d.allReadings):
			return false
		}
	}
	return true
}

// decideIn judges a target in all of its readings, in the memory of s, which has begun. It
// leaves in s the steps that are left.
func (e *engine) decideIn(d *Decision, s *scratch, sets []ruleSet, target string) {
	set, rule, variant, first := -1, -1, "", true
	e.read(s, target, func(name, reading string) bool {
		if s.before(&s.judged, name, reading) {
			return s.steps >= 0
		}
		if first {
			s.sent = append(s.sent[:0], reading...)
		}
		by, best := e.judge(&s.judging, sets, name, reading)
		if s.steps < 0 {
			return false
		}
		refuses := best >= 0 && !e.rules[best].allows()
		if first || refuses {
			set, rule, variant, first = by, best, name, false
		}
		return !refuses
	})
	e.decision(d, &s.judging, sets, set, rule, variant)
}

// read calls judge with each reading of a target, that as sent first, until
// judge returns false. What judge is given is valid during the call only.
func (e *engine) read(s *scratch, target string, judge func(name, reading string) bool) {
	if e.asSent {
		s.sentReadings(target, judge)
		return
	}
	s.target = appendTarget(s.target[:0], target)
	if judge("", view(s.target)) {
		s.readings(view(s.target), e.allReadings, judge)
	}
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// judge judges one reading of a target: every set must allow. It returns the set that
// decides and its rule, or -1. Of sets that allow, one with a rule for the target is
// reported rather than one without.
func (e *engine) judge(s *judging, sets []ruleSet, name, target string) (set, rule int) {
	set, rule = -1, -1
	for i := range sets {
		best := e.bestRule(s, &sets[i], target)
		if !s.alone {
			best = e.readAsSent(s, i, best, name, target)
		}
		if best >= 0 && !e.rules[best].allows() {
			return i, best
		}
		if sets[i].how != ByList && (set < 0 || rule < 0 && best >= 0) {
			set, rule = i, best
		}
	}
	return set, rule
}

// readAsSent returns the rule of a set that decides about a reading of a target: best, or
// the one that decides about the target as sent, which is judged by each set first.
func (e *engine) readAsSent(s *judging, set, best int, name, target string) int {
	if set == len(s.sentRules) {
		s.sentRules = append(s.sentRules, best)
	} else if best >= 0 && !e.rules[best].allows() {
		if sent := s.sentRules[set]; e.allowsReading(s, sent, best, name, target) {
			return sent
		}
	}
	return best
}

// bestRule returns the rule of a set that decides about a packed target; -1 when
// none matches.
func (e *engine) bestRule(s *judging, set *ruleSet, target string) int {
	best := -1
	if set.index != nil {
		return set.index.find(s, &e.file, target)
	}
	for _, n := range e.names[set.at:set.end] {
		for id := e.groups[n.group]; id < e.groupEnd(n.group); id++ {
			best = s.try(&e.file, id, target, best)
		}
	}
	return best
}

// allowsReading reports whether rule sent, which decides about the target as sent,
// also allows a reading that rule refuses would refuse: it is an Allow without
// wildcards, the better of both, and matches when its own escapes are read away as
// those of the target were. An Allow that names a URL as it is sent names it in
// every spelling.
func (e *engine) allowsReading(s *judging, sent, refuses int, name, target string) bool {
	if sent < 0 || e.rules[sent].line&ruleWild != 0 || !e.rules[sent].allows() || !e.better(sent, refuses) {
		return false
	}
	return e.namesReading(s, sent, name, target)
}

// decision sets d, which is zero, to the Decision of a rule of one of the sets. Without a
// rule, which is -1, and without a set, it allows.
func (e *engine) decision(d *Decision, s *judging, sets []ruleSet, set, rule int, variant string) {
	if s.steps < 0 {
		*d = tooComplex
		return
	}
	d.Verdict, d.Reason, d.Variant = Allow, ReasonNoRule, variant
	if set >= 0 {
		by := &sets[set]
		d.Group, d.Token, d.Piece = by.group, by.token.Name, by.token.Piece
	}
	if rule >= 0 {
		d.Reason = ReasonRule
		d.Rule, d.Line = e.ruleText(rule)
		if !e.rules[rule].allows() {
			d.Verdict = Refuse
		}
	}
}

// maxSteps bounds what a Decision may cost over all readings of its target. A step
// takes about a nanosecond or less, so that no Decision takes much longer than 20 ms:
// there is no need to end one whose client has left. Under an honest file it takes less
// than a tenth of that.
const maxSteps = 1 << 24

// What is counted: an octet of a target that is looked up or searched is a step. To
// that come
const (
	stepsPerRule  = 16 // for a rule that is tried
	stepsPerPiece = 16 // for each piece of its pattern
	stepsPerNode  = 8  // for a node of an index
	stepsPerGram  = 3  // for an octet of a target whose grams are looked up
	stepsPerVisit = 64 // for a rule of which a piece is compared where a gram was found
	octetsPerStep = 16 // octets that are compared, or skipped, in one go
)

// judging is the state of a decision.
type judging struct {
	steps     int    // left for the decision; negative: none
	alone     bool   // the target has one reading
	sentRules []int  // else, by each set, the rule that decides about the target as sent
	rule      []byte // memory for a pattern with its escapes decoded once more
}

// try returns rule id when it is better than best and matches target, else
// best. When the steps are used up it returns best.
func (s *judging) try(f *file, id uint32, target string, best int) int {
	if s.steps--; s.steps < 0 || best >= 0 && !f.better(int(id), best) {
		return best
	}
	if f.matches(id, target, &s.steps) {
		return int(id)
	}
	return best
}

// DecideHost judges a site of which no target can be seen, since it is reached
// through a tunnel. It refuses when agent is barred from everything: a rule
// disallows every path, and there is no Allow. Otherwise it allows, and unseen
// is the number of rules that might have refused what goes through the tunnel;
// 0 when there are none. A nil agent is judged under the star group. The
// reason is ReasonHostOnly, or that of Decide where there are no rules.
func (p *Policy) DecideHost(agent *Agent) (d Decision, unseen int) {
	if p.source.State != Available || p.engine == nil {
		return p.Decide(agent, NewTarget("/")), 0
	}
	sets := p.engine.governing(agent)
	if len(sets) > MaxGoverning {
		return tooComplex, 0
	}
	d = Decision{Verdict: Allow, Reason: ReasonHostOnly}
	steps := maxSteps
	for i := range sets {
		own, disallows := p.engine.judgeHost(&sets[i], &steps)
		switch {
		case steps < 0:
			return tooComplex, 0
		case own.Verdict == Refuse:
			return own, 0
		}
		unseen += disallows
		if i == 0 {
			d = own
		}
	}
	return d, unseen
}

// judgeHost judges a host by one set of rules. A rule that matches "/" has
// only wildcards and at most one slash in its pattern; unless it is bound to
// that slash, it matches every target.
func (e *engine) judgeHost(set *ruleSet, steps *int) (d Decision, disallows int) {
	d = Decision{Verdict: Allow, Reason: ReasonHostOnly, Group: set.group, Token: set.token.Name, Piece: set.token.Piece}
	bars, allows := -1, false
	for _, n := range e.names[set.at:set.end] {
		for id := e.groups[n.group]; id < e.groupEnd(n.group) && *steps >= 0; id++ {
			*steps -= stepsPerRule
			if e.rules[id].allows() {
				allows = true
				continue
			}
			disallows++
			if bars < 0 && e.matches(id, "/", steps) && e.matches(id, "/x", steps) {
				bars = int(id)
			}
		}
	}
	if bars >= 0 && !allows {
		d.Verdict = Refuse
		d.Rule, d.Line = e.ruleText(bars)
	}
	return d, disallows
}
