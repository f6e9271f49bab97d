package rules

import (
	"index/suffixarray"
	"slices"
	"strings"
)

// ruleSet is the merged groups of one name; the sets of an agent govern it.
type ruleSet struct {
	group   string // the value of the first of its user-agent lines
	at, end int    // of its lines in names
	token   Token
	how     How
	index   *index      // of all its groups; nil: they are asked one by one
	hints   []*RateHint // of all its groups
}

// MaxGoverning is the number of names in a file that may govern one agent. Honest
// User-Agents have far fewer; one that has more is refused as too complex, since
// judging it would take as long as judging thousands of requests.
const MaxGoverning = 50

// groupChooser collects the groups that govern one agent.
type groupChooser struct {
	engine *engine
	first  map[string][]int // names of several words, by the first one; only words that the agent has
	other  map[string][]int // the same names, by each of their other words
	whole  map[string][]int // those of them whose words all name the agent or no robot, by the first word
	named  bool             // only groups that name the agent govern it: it is a PolicyToken
	added  map[int]bool     // the names chosen so far, by their position
	all    []ruleSet
}

// choose finds the groups that govern an agent, or a nil one (RFC 9309 §2.2.1): each of the
// results must allow. The star groups govern only an agent without a matching name. A
// name that matches only when the words of a line are read as a list of names governs
// the agent as well, and takes the place of neither.
func (e *engine) choose(agent *Agent) []ruleSet {
	c := groupChooser{engine: e, added: make(map[int]bool)}
	var tokens []Token
	if agent != nil {
		tokens, c.named = agent.Tokens, agent.Role == Obeyed
	}
	if e.words > 0 && len(tokens) > 0 {
		c.indexPhrases(tokens)
	}
	if e.substring {
		c.addContained(tokens)
	} else {
		for _, t := range tokens {
			c.addBest(t)
		}
	}
	if star := e.named("*"); len(c.all) == 0 && star >= 0 && !c.named {
		c.add(star, Token{}, ByStar)
	}
	for _, t := range tokens {
		c.addListed(t)
	}
	switch {
	case len(c.all) > MaxGoverning:
		return c.all
	case len(c.all) == 1 && c.all[0].how == ByStar && e.star != nil:
		return e.star
	}
	lines := make([][]int, len(c.all))
	for i := range c.all {
		groups := e.groupsOf(c.all[i].at)
		c.all[i].index, lines[i] = e.indexes[string(indexKey(nil, groups))], e.hintLines(groups)
	}
	names := e.groupNames(slices.Concat(lines...))
	for i := range c.all {
		c.all[i].hints = e.hintsOf(lines[i], names)
	}
	return c.all
}

func (c *groupChooser) add(at int, t Token, how How) {
	if !c.added[at] {
		c.added[at] = true
		c.all = append(c.all, ruleSet{group: c.engine.nameValue(at), at: at, end: c.engine.nameEnd(at), token: t, how: how})
	}
}

func (c *groupChooser) addAll(names []int, t Token, how How) {
	for _, at := range names {
		c.add(at, t, how)
	}
}

// indexPhrases finds the names of several words of which one is the agent's.
func (c *groupChooser) indexPhrases(tokens []Token) {
	c.first, c.other, c.whole = make(map[string][]int), make(map[string][]int), make(map[string][]int)
	asked := make(map[string]bool, len(tokens))
	for _, t := range tokens {
		asked[t.Name] = true
	}
	e := c.engine
	for i := 0; i < len(e.names); i = e.nameEnd(i) {
		text := e.nameText(i)
		if strings.IndexByte(text, ' ') < 0 {
			continue
		}
		c.indexPhrase(i, strings.ToLower(text), asked)
	}
}

func (c *groupChooser) indexPhrase(at int, phrase string, asked map[string]bool) {
	into, first, whole := c.first, "", true
	for word := range strings.FieldsSeq(phrase) {
		if word = trimName(word); asked[word] {
			into[word] = append(into[word], at)
		} else {
			whole = whole && first != "" && noRobot(word)
		}
		if first == "" {
			into, first = c.other, word
		}
	}
	if whole {
		c.whole[first] = append(c.whole[first], at)
	}
}

// addListed adds the names of several words that may be meant for a name of the
// agent, beside its best match. Such a group adds refusals and removes none. A name of
// which the agent has every word may be the agent's, whatever is between the words in
// its User-Agent string.
func (c *groupChooser) addListed(t Token) {
	c.addAll(c.whole[t.Name], t, ByList)
	if !genericWords[t.Name] {
		c.addAll(c.other[t.Name], t, ByList)
	}
}

// addBest adds the groups that match one name of an agent best.
func (c *groupChooser) addBest(t Token) {
	e := c.engine
	if t.Name == "" || t.Name == "*" {
		return
	}
	if at := e.named(t.Name); at >= 0 {
		c.add(at, t, ByName)
		return
	}
	if fits := c.first[t.Name]; len(fits) > 0 && !c.longer(t) {
		c.addAll(fits, t, ByFirst)
		return
	}
	for _, next := range fallbacks(t.Name) {
		if c.named {
			return
		}
		if at := e.named(next); at >= 0 {
			c.add(at, t, ByChain)
			return
		}
	}
}

// longer reports whether a token is the first word of a longer name that has a
// group.
func (c *groupChooser) longer(t Token) bool {
	return strings.HasPrefix(t.phrase, t.Name+" ") && c.engine.named(t.phrase) >= 0
}

// addContained adds every group whose name is part of a name of the agent, by the
// consensus of 1994. Both may have very many names, so that each is looked up in
// a suffix array of the agent's names.
func (c *groupChooser) addContained(tokens []Token) {
	var every strings.Builder
	for _, t := range tokens {
		every.WriteString(t.Name + "\n")
	}
	ends := suffixarray.New([]byte(every.String()))
	e := c.engine
	for i := 0; i < len(e.names) && len(c.all) <= MaxGoverning; i = e.nameEnd(i) {
		name := strings.ToLower(e.nameText(i))
		if len(ends.Lookup([]byte(name), 1)) == 0 {
			continue
		}
		for _, t := range tokens {
			if strings.Contains(t.Name, name) {
				c.add(i, t, ByPart)
				break
			}
		}
	}
}
