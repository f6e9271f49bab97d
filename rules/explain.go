package rules

import (
	"slices"
	"strings"
)

// Explanation is the road from an agent to a verdict, for people. Its texts
// are from the client and the site: hostile until escaped.
type Explanation struct {
	// Tokens are the agent's names in order, and what each led to.
	Tokens []TokenLed
	// Dropped are the pieces of the User-Agent string that name no robot.
	Dropped []Dropped
	// Governing are the names in the file whose groups govern; each must
	// allow. None: there are no rules for this agent.
	Governing []Governing
	// Readings are the readings of the target that were judged, the target as
	// sent first. They end with the one that was refused, if one was.
	Readings []Reading
	Decision Decision
}

// TokenLed is a name of an agent with the names in the file it led to.
type TokenLed struct {
	Token
	To []Led // none: no group is for this name
}

// Led is a name in the file, and how a name of the agent led to it.
type Led struct {
	Name string // the value of the first user-agent line, as the site wrote it
	How  How
}

// How says how a group came to govern an agent.
type How string

// The ways from an agent to its groups, the best first.
const (
	ByName  How = byName  // the group is for this name (RFC 9309 §2.2.1)
	ByFirst How = byFirst // the group's name has several words, of which this is the first
	ByChain How = byChain // the robot's operator says that it obeys this group when it has none of its own
	ByPart  How = byPart  // the group's name is part of the robot's (1994)
	ByList  How = byList  // the name stands among several on a line; such a group only adds refusals
	ByStar  How = byStar  // no group is for any name of the agent
)

// Governing is the groups of one name, merged.
type Governing struct {
	Led
	Token Token // the zero Token for the star group
	Lines []int // the user-agent lines with this name, in order
	Rules int   // how many rules the groups have
}

// Reading is one reading of a target, judged.
type Reading struct {
	Variant  string    // as in Decision
	Target   string    // in the canonical form of RFC 9309 §2.2.2
	Opinions []Opinion // of each of Governing, up to the first that refuses
}

// Opinion is what the groups of one name say of a target.
type Opinion struct {
	Verdict Verdict
	Matches []Match // at most MaxMatches, the one that decides first; none: no rule speaks of it
	Further int     // how many more rules match
}

// Match is a rule that matches a target.
type Match struct {
	Rule   string // the line as the site wrote it
	Line   int    // from 1
	Allow  bool
	Octets int // the length that counts: the most octets decide
}

// MaxMatches is how many rules an Opinion names.
const MaxMatches = 100

// Explain tells how Decide comes to its Decision about target for agent. It
// takes as long as there are rules.
func (p *Policy) Explain(agent *Agent, target string) Explanation {
	x := Explanation{Decision: p.Decide(agent, target)}
	e := p.engine
	if agent != nil {
		x.Tokens, x.Dropped = e.led(agent.Tokens), agent.Dropped()
	}
	var sets []chosen
	if e != nil {
		sets = e.governing(agent)
	}
	for _, c := range sets {
		groups := e.groupsOf(c.at)
		x.Governing = append(x.Governing, Governing{
			Led: Led{c.group, How(c.how)}, Token: c.token,
			Lines: e.agentLineNumbers(c.at), Rules: len(e.rulesOf(groups)),
		})
	}
	if r := x.Decision.Reason; r == ReasonRule || r == ReasonNoRule {
		x.Readings = e.explainReadings(sets, target)
	}
	return x
}

// led finds what each token leads to when it stands alone. e may be nil.
func (e *engine) led(tokens []Token) []TokenLed {
	c := choice{engine: e}
	if e != nil && e.phrases {
		c.readPhrases(tokens)
	}
	all := make([]TokenLed, len(tokens))
	for i, t := range tokens {
		all[i].Token = t
		if e == nil {
			continue
		}
		c.known, c.all = make(map[int]bool), nil
		if e.substring {
			c.parts(tokens[i : i+1])
		} else {
			c.token(t)
		}
		c.lists(t)
		for _, to := range c.all {
			all[i].To = append(all[i].To, Led{to.group, How(to.how)})
		}
	}
	return all
}

// explainReadings judges the readings of a target as decide does.
func (e *engine) explainReadings(sets []chosen, target string) []Reading {
	if target == "" || target[0] == '?' {
		target = "/" + target
	}
	var all []Reading
	judge := func(variant, target string) bool {
		r := Reading{Variant: variant, Target: strings.Clone(target)}
		if !e.asSent {
			r.Target = unpack(target)
		}
		for i := range sets {
			o := e.explainSet(&sets[i], strings.Clone(target))
			r.Opinions = append(r.Opinions, o)
			if o.Verdict == Refuse {
				break
			}
		}
		all = append(all, r)
		return len(r.Opinions) == 0 || r.Opinions[len(r.Opinions)-1].Verdict != Refuse
	}
	e.read(new(scratch), target, judge)
	return all
}

// explainSet finds all rules of a set that match a packed target.
func (e *engine) explainSet(c *chosen, target string) Opinion {
	var ids []uint32
	for _, id := range e.rulesOf(e.groupsOf(c.at)) {
		if e.matches(id, target) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uint32) int {
		switch {
		case a == b:
			return 0
		case e.better(int(a), int(b)):
			return -1
		}
		return 1
	})
	o := Opinion{Verdict: Allow}
	if len(ids) > 0 && !e.rules[ids[0]].allows() {
		o.Verdict = Refuse
	}
	for _, id := range ids[:min(len(ids), MaxMatches)] {
		m := Match{Allow: e.rules[id].allows(), Octets: int(e.rules[id].length)}
		m.Rule, m.Line = e.ruleText(int(id))
		o.Matches = append(o.Matches, m)
	}
	o.Further = len(ids) - len(o.Matches)
	return o
}

// agentLineNumbers returns the numbers of the user-agent lines of a name.
func (e *engine) agentLineNumbers(at int) []int {
	var places []int
	for end := e.nameEnd(at); at < end; at++ {
		places = append(places, int(e.names[at].value))
	}
	slices.Sort(places)
	walk := lines{text: e.text, next: e.start, newline: -1}
	var numbers []int
	for len(places) > 0 {
		_, _, ok := walk.line()
		if !ok {
			break
		}
		for len(places) > 0 && places[0] < walk.next {
			numbers = append(numbers, walk.number)
			places = places[1:]
		}
	}
	return slices.Compact(numbers)
}

// unpack returns the canonical form of a packed target.
func unpack(packed string) string {
	dst := make([]byte, 0, len(packed))
	for i := 0; i < len(packed); i++ {
		c := packed[i]
		switch {
		case c == '/' || c == '?' || c == '&' || c == '=' || unreserved[c]:
			dst = append(dst, c)
			continue
		case c == codeLead:
			c = codeFirst + (packed[i+1]-codeTrail)<<2 + (packed[i+2] - codeTrail)
			i += 2
		case c >= codeFirst:
			c = "/?&="[c-codeSlash]
		}
		dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
	}
	return string(dst)
}
