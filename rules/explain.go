package rules

import (
	"slices"
	"strings"
)

// Explanation is each step from an agent to a verdict, for people. Its texts
// are from the client and the site: hostile until escaped.
type Explanation struct {
	// Tokens are the agent's names in order, with the groups found for each.
	Tokens []TokenGroups
	// Dropped are the pieces of the User-Agent string that name no robot.
	Dropped []Dropped
	// Governing are the names in the file whose groups govern; each must
	// allow. None: there are no rules for this agent. Of more than MaxGoverning
	// one more than that is listed.
	Governing []Governing
	// Readings are the readings of the target that were judged, the target as
	// sent first. They end with the one that was refused, if one was, and where
	// listing them takes too long, which hostile files alone do.
	Readings []Reading
	Decision Decision
}

// TokenGroups is a name of an agent with the groups found for it.
type TokenGroups struct {
	Token
	Groups []FoundGroup // none: no group has this name
}

// FoundGroup is a name in the file, and how it was found.
type FoundGroup struct {
	Name string // the value of the first user-agent line, as the site wrote it
	How  How
}

// How is the way in which a group was found for an agent.
type How string

// The ways from an agent to its groups, the best first.
const (
	ByName  How = "name"  // the group has this name (RFC 9309 §2.2.1)
	ByFirst How = "first" // the group's name has several words, of which this is the first
	ByChain How = "chain" // by its vendor's documentation the robot obeys this group when it has none
	ByPart  How = "part"  // the group's name is part of the robot's (1994)
	ByList  How = "list"  // the name is one of several on a line; such a group only adds refusals
	ByStar  How = "star"  // no group has any name of the agent
)

// Governing is the groups of one name, merged.
type Governing struct {
	FoundGroup
	Token Token // the zero Token for the star group
	Lines []int // the user-agent lines with this name, in order
	Rules int   // how many rules the groups have
}

// Reading is one reading of a target, judged.
type Reading struct {
	Variant string        // as in Decision
	Target  string        // in the canonical form of RFC 9309 §2.2.2
	Results []GroupResult // of each of Governing, up to the first that refuses
}

// GroupResult is the result for a target under the groups of one name.
type GroupResult struct {
	Verdict Verdict
	Matches []Match // at most MaxMatches, the one that decides first; none: no rule matches
	Further int     // how many more rules match
}

// Match is a rule that matches a target.
type Match struct {
	Rule   string // the line as the site wrote it
	Line   int    // from 1
	Allow  bool
	Octets int // the length that counts: the most octets decide
}

// MaxMatches is how many rules a GroupResult contains.
const MaxMatches = 100

// Explain returns each step by which Decide comes to its Decision about a target
// for agent. Its time grows with the number of rules.
func (p *Policy) Explain(agent *Agent, t *Target) Explanation {
	x := Explanation{Decision: p.Decide(agent, t)}
	e := p.engine
	if agent != nil {
		x.Tokens, x.Dropped = e.groupsOfEach(agent.Tokens), agent.Dropped()
	}
	var sets []ruleSet
	if e != nil {
		sets = e.governing(agent)
		sets = sets[:min(len(sets), MaxGoverning+1)]
	}
	for _, c := range sets {
		groups := e.groupsOf(c.at)
		x.Governing = append(x.Governing, Governing{
			FoundGroup: FoundGroup{c.group, c.how}, Token: c.token,
			Lines: e.agentLineNumbers(c.at), Rules: len(e.rulesOf(groups)),
		})
	}
	if r := x.Decision.Reason; r == ReasonRule || r == ReasonNoRule {
		x.Readings = e.explainReadings(sets, t)
	}
	return x
}

// groupsOfEach finds the groups of each token alone. e may be nil.
func (e *engine) groupsOfEach(tokens []Token) []TokenGroups {
	c := groupChooser{engine: e}
	if e != nil && e.words > 0 {
		c.indexPhrases(tokens)
	}
	all := make([]TokenGroups, len(tokens))
	for i, t := range tokens {
		all[i].Token = t
		if e == nil {
			continue
		}
		c.added, c.all = make(map[int]bool), nil
		if e.substring {
			c.addContained(tokens[i : i+1])
		} else {
			c.addBest(t)
		}
		c.addListed(t)
		for _, to := range c.all {
			all[i].Groups = append(all[i].Groups, FoundGroup{to.group, to.how})
		}
	}
	return all
}

// explainSteps bounds what the readings of an Explanation may cost, as maxSteps does for
// a Decision: about a second.
const explainSteps = 64 * maxSteps

// stepsPerReading is for each octet of a reading that an Explanation contains, which has
// room for at most 16 Mi of them.
const stepsPerReading = 64

// explainReadings judges the readings of a target as decide does.
func (e *engine) explainReadings(sets []ruleSet, t *Target) []Reading {
	target, _ := t.path()
	var all []Reading
	s, steps := new(scratch), explainSteps
	judge := func(variant, target string) bool {
		if all == nil {
			s.sent = append(s.sent, target...)
		}
		r := Reading{Variant: variant, Target: strings.Clone(target)}
		if !e.asSent {
			r.Target = string(appendCanonical(nil, target))
		}
		for i := range sets {
			o := e.explainSet(s, &steps, &sets[i], variant, target)
			r.Results = append(r.Results, o)
			if o.Verdict == Refuse {
				break
			}
		}
		all = append(all, r)
		steps -= stepsPerReading * len(target)
		return steps > 0 && (len(r.Results) == 0 || r.Results[len(r.Results)-1].Verdict != Refuse)
	}
	e.read(s, target, judge)
	return all
}

// explainSet finds all rules of a set that match the reading of a target, and the
// one that matches it as sent and allows the reading as well.
func (e *engine) explainSet(s *scratch, steps *int, c *ruleSet, name, target string) GroupResult {
	var ids []uint32
	for _, id := range e.rulesOf(e.groupsOf(c.at)) {
		if e.matches(id, target, steps) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, e.order)
	if len(ids) > 0 && !e.rules[ids[0]].allows() {
		s.begin(maxSteps)
		if sent := e.bestRule(&s.judging, c, view(s.sent)); e.allowsReading(&s.judging, sent, int(ids[0]), name, target) {
			ids = slices.Insert(ids, 0, uint32(sent))
		}
	}
	o := GroupResult{Verdict: Allow}
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

// FirstPieces calls each with every rule of each of Explanation.Governing, and with what
// its targets begin with in canonical form, before a "*" (more) or a "$" (ends).
func (p *Policy) FirstPieces(agent *Agent, each func(governing, line, octets int, first string, more, ends bool)) {
	for i, set := range p.engine.governing(agent) {
		for _, id := range p.engine.rulesOf(p.engine.groupsOf(set.at)) {
			first := p.engine.firstPiece(id)
			_, line := p.engine.ruleText(int(id))
			r := &p.engine.rules[id]
			each(i, line, int(r.length), string(appendCanonical(nil, first)), r.line&ruleWild != 0, r.line&ruleEnds != 0)
		}
	}
}

// agentLineNumbers returns the numbers of the user-agent lines of a name.
func (e *engine) agentLineNumbers(at int) []int {
	var places []int
	for end := e.nameEnd(at); at < end; at++ {
		places = append(places, int(e.names[at].value))
	}
	slices.Sort(places)
	walk := lines{text: e.text, next: e.start}
	if e.packed != nil {
		walk.text = e.part(0, e.packed.size, nil)
	}
	var numbers []int
	for _, _, ok := walk.line(); ok && len(places) > 0; _, _, ok = walk.line() {
		for len(places) > 0 && places[0] < walk.next {
			numbers = append(numbers, walk.number)
			places = places[1:]
		}
	}
	return slices.Compact(numbers)
}
