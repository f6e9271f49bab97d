package rules

import (
	"slices"
	"sync"
)

// Verdict is what happens to a request. The zero value is Refuse, so that an
// empty Decision lets nothing through.
type Verdict uint8

// The verdicts.
const (
	Refuse      Verdict = iota // the request does not leave
	Allow                      // the request is forwarded
	WouldRefuse                // observe mode: forwarded, recorded as refused
)

// String returns the verdict's stable name: refuse, allow or would-refuse.
func (v Verdict) String() string {
	if v > WouldRefuse {
		v = Refuse
	}
	return verdictNames[v]
}

var verdictNames = []string{"refuse", "allow", "would-refuse"}

// ParseVerdict returns the verdict of a name that String returns; Refuse of any other.
func ParseVerdict(name string) Verdict { return Verdict(max(0, slices.Index(verdictNames, name))) }

// Reason is the cause of a Decision. The list is closed and its identifiers are
// stable: logs, answers and stored records contain them.
type Reason string

// Reasons that the rules of a site give.
const (
	ReasonRule              Reason = "rule"               // a rule matched the target
	ReasonNoRule            Reason = "no-rule"            // no group or no rule applies to this target
	ReasonRobotsTxt         Reason = "robots-txt"         // the target is /robots.txt itself (RFC 9309 §2.2.2)
	ReasonRobotsUnavailable Reason = "robots-unavailable" // the site has no robots.txt to read (RFC 9309 §2.3.1.3)
	ReasonRobotsUnreachable Reason = "robots-unreachable" // robots.txt could not be fetched (RFC 9309 §2.3.1.4)
	ReasonTooComplex        Reason = "too-complex"        // judging this agent and target by the file would take too long
)

// Reasons that the site's statements on the use of its pages give, for a client that
// states its purpose.
const (
	ReasonSignal  Reason = "signal"  // a statement of the site refuses the purpose
	ReasonLicence Reason = "licence" // a licence asks for money, a token or another thing first
)

// Reasons that an operator gives.
const (
	ReasonOverride     Reason = "override"          // an exception in the operator's settings, in place of the site's rules
	ReasonSubresource  Reason = "part"              // a part of a page that may be read, for a client whose browser may load them
	ReasonNotACrawl    Reason = "not-a-crawl"       // the host is declared a service that programs call, not a site they crawl
	ReasonOwnService   Reason = "own-service"       // a service on a loopback address that the client's own heed run has started
	ReasonExempt       Reason = "exempt"            // the client is declared to be people, not a robot
	ReasonRulesPending Reason = "late"              // observe mode only: the site's rules were not fetched in time; the verdict is recorded later
	ReasonNoAgent      Reason = "no-agent"          // the client sent no User-Agent, and its entry requires one
	ReasonAccess       Reason = "access"            // the client may not use this proxy, or no client may use it for this
	ReasonCredentials  Reason = "credentials"       // the client showed no credentials for this proxy, or wrong ones
	ReasonFailures     Reason = "too-many-failures" // wrong credentials came from this address too often
)

// Reasons that come from the way a request took, not from a site's rules.
const (
	ReasonOriginUnreachable Reason = "origin-unreachable" // the site itself cannot be reached: DNS, connect, TLS
	ReasonDestination       Reason = "destination"        // heed may not reach the address: private, or on a list
	ReasonLimit             Reason = "limit"              // a limit on what clients may use was reached
	ReasonPaced             Reason = "paced"              // the wait for the site's crawl delay would be too long
	ReasonClientLeft        Reason = "client-left"        // the client left while the site's rules or statements were being fetched, or before its turn
	ReasonHostMismatch      Reason = "host-mismatch"      // Host, authority or SNI name different places
	ReasonMalformed         Reason = "malformed"          // no valid HTTP request, or a target that cannot be judged
	ReasonLoop              Reason = "loop"               // the request came through this proxy already
	ReasonHostOnly          Reason = "host-only"          // judged by the host alone: the paths in the tunnel are not seen
	ReasonTunnel            Reason = "tunnel"             // not judged: the operator lets this host's tunnels pass
	ReasonNotHTTP           Reason = "not-http"           // octets in a tunnel that are neither TLS nor HTTP
	ReasonUntrusted         Reason = "ca-untrusted"       // the client did not accept the CA; nothing was requested
	ReasonHandshake         Reason = "handshake"          // a tunnel in which no handshake was completed
	ReasonRecord            Reason = "record"             // the record of the decision could not be written
	ReasonInternal          Reason = "internal"           // a fault in heed; fails closed
)

// Decision is the answer to "may this agent fetch this target?", with its
// grounds. The zero value refuses without a reason.
type Decision struct {
	Verdict Verdict
	// Role is that of the agent that Token is from; without a Token it is Seen.
	Role   Role
	Reason Reason

	// Group is the value of the user-agent line that governs, as the site
	// wrote it ("*" for the star group); empty when no group did.
	Group string
	// Rule is the deciding line as the site wrote it, field and value
	// ("Disallow: /private"); empty when no rule decided. It is text from the
	// site: hostile until escaped.
	Rule string
	// Line is the number of that line in robots.txt, from 1; 0 when no rule decided.
	Line int
	// Token is the product token of the agent that led to Group, in lower
	// case; empty for the star group and when there is no group.
	Token string
	// Piece is the part of the User-Agent string that Token was taken from, as
	// the client wrote it.
	Piece string
	// Variant names the reading of the target that decided: "" for the target
	// as sent, else "v1" to "v7" (readings.go) for an ambiguous spelling, and "v0" for the
	// decoded form under the profile google.
	Variant string
}

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
	return d.from(agent)
}

// from returns d with the role of the agent that it is for.
func (d Decision) from(agent *Agent) Decision {
	if d.Token != "" {
		d.Role = agent.Role
	}
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
	inQuery, wide := false, false
	for i := 0; i < len(target); i++ {
		c := target[i]
		switch {
		case unreserved[c]:
		case d.asSent && !legal[c]:
			return false
		case c-'!' > '~'-'!': // not a visible character of ASCII
			if c >= codeFirst {
				return false
			}
			wide = true
		case inQuery:
			if !d.asSent && (c == '/' || c == '?' || c == '%') {
				return false
			}
		case c == '?':
			inQuery = true
		case c == '/':
			if i+1 < len(target) && (target[i+1] == '/' || target[i+1] == '.' || target[i+1] == ';') {
				return false
			}
		case !d.asSent && (c == '%' || c == '\\' || c == '&' || c == '=' || c == ';' && d.allReadings):
			return false
		}
	}
	return !wide || oneEnd(target)
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
func (d *differences) read(s *scratch, target string, judge func(name, reading string) bool) {
	both := func(name, reading string) bool {
		if !judge(name, reading) {
			return false
		}
		cut := trimBlanks(reading, d.asSent)
		return name == "" || cut == reading || judge(name, cut)
	}
	each := func(name, target string) bool {
		if d.asSent {
			return s.sentReadings(name, target, both)
		}
		s.target = appendTarget(s.target[:0], target)
		return s.readings(name, view(s.target), d.allReadings, both)
	}
	if each("", target) {
		s.endings(target, each)
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
// every spelling. Where a reading is the target without its last octets, or with octets
// that are not UTF-8 as others, any better Allow counts: it names these bytes.
func (e *engine) allowsReading(s *judging, sent, refuses int, name, target string) bool {
	if sent < 0 || !e.rules[sent].allows() || !e.better(sent, refuses) {
		return false
	}
	return name == readV6 || name == readV7 || e.rules[sent].line&ruleWild == 0 && e.namesReading(s, sent, name, target)
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
	stepsPerRule  = 16      // for a rule that is tried
	stepsPerPiece = 16      // for each piece of its pattern
	stepsPerNode  = 8       // for a beginning of a target that is looked up in an index
	stepsPerBlock = 1 << 16 // for a block of a compressed text
	stepsPerOctet = 3       // for an octet of a target that is hashed for that
	stepsPerGram  = 3       // for an octet of a target whose grams are looked up
	stepsPerVisit = 64      // for a rule of which a piece is compared where a gram was found
	octetsPerStep = 16      // octets that are compared, or skipped, in one go
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
			return own.from(agent), 0
		}
		unseen += disallows
		if i == 0 {
			d = own
		}
	}
	return d.from(agent), unseen
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
