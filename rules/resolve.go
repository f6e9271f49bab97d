package rules

import (
	"cmp"
	"index/suffixarray"
	"slices"
	"strings"
)

// name is one name on a user-agent line: two places in the engine's text, that
// of the name, in whatever case, and that of the value in which it stands.
type name struct {
	text, value     uint32
	size, valueSize uint16
	group           uint32
}

func (e *engine) nameText(i int) string  { return e.text[e.names[i].text:][:e.names[i].size] }
func (e *engine) nameValue(i int) string { return e.text[e.names[i].value:][:e.names[i].valueSize] }

// compareFold compares two names whatever their case.
func compareFold(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// sortNames brings the lines of one name together, in the order of the file.
func (e *engine) sortNames() {
	slices.SortStableFunc(e.names, func(a, b name) int {
		return compareFold(e.text[a.text:][:a.size], e.text[b.text:][:b.size])
	})
	e.names = slices.CompactFunc(e.names, func(a, b name) bool {
		return a.group == b.group && compareFold(e.text[a.text:][:a.size], e.text[b.text:][:b.size]) == 0
	})
	e.names = fit(e.names)
}

// nameEnd returns where the lines of the name at i end.
func (e *engine) nameEnd(i int) int {
	j := i + 1
	for j < len(e.names) && compareFold(e.nameText(i), e.nameText(j)) == 0 {
		j++
	}
	return j
}

// groupsOf returns the groups of the name at i.
func (e *engine) groupsOf(i int) []uint32 { return e.appendGroups(nil, i) }

// appendGroups appends them to dst, which is empty.
func (e *engine) appendGroups(dst []uint32, i int) []uint32 {
	for j, end := i, e.nameEnd(i); j < end; j++ {
		dst = append(dst, e.names[j].group)
	}
	return slices.Compact(dst)
}

// named returns where the lines of a name begin; -1 when nobody is called so.
func (e *engine) named(clean string) int {
	i, ok := slices.BinarySearchFunc(e.names, clean, func(n name, clean string) int {
		return compareFold(e.text[n.text:][:n.size], clean)
	})
	if !ok {
		return -1
	}
	return i
}

// How a group came to govern an agent.
const (
	byStar  = "star"  // nothing named the agent
	byName  = "name"  // the group has the name of the agent
	byFirst = "first" // the group has a name of several words, the first is the agent's
	byChain = "chain" // the agent obeys this group when there is none of its own
	byList  = "list"  // the agent is one of several names with blanks between them
	byPart  = "part"  // the group's name is part of the agent's (1994)
)

// chosen is the merged groups of one name that govern an agent.
type chosen struct {
	group   string // the value of the first of its user-agent lines
	at, end int    // of its lines in names
	token   Token
	how     string
	index   *index  // of all its groups; nil: they are asked one by one
	wishes  []*Wish // of all its groups
}

// MaxGoverning is how many names of a file may govern one agent. No honest
// User-Agent comes near; one that names more is refused as malformed, since
// judging it would take as long as judging thousands of requests.
const MaxGoverning = 50

// choice is the choosing for one agent.
type choice struct {
	engine *engine
	first  map[string][]int // the names of several words, by their first word; only the agent's words
	other  map[string][]int // and by their other words
	whole  map[string][]int // by their first word, those of which every word is the agent's
	known  map[int]bool     // the names that were chosen
	all    []chosen
}

// choose finds what governs an agent (RFC 9309 §2.2.1): each of the results
// must allow. Names that match take the place of the star groups; a name that
// is found only by reading the words of a line as a list adds to either.
func (e *engine) choose(tokens []Token) []chosen {
	c := choice{engine: e, known: make(map[int]bool)}
	if e.phrases && len(tokens) > 0 {
		c.readPhrases(tokens)
	}
	if e.substring {
		c.parts(tokens)
	} else {
		for _, t := range tokens {
			c.token(t)
		}
	}
	if star := e.named("*"); len(c.all) == 0 && star >= 0 {
		c.add(star, Token{}, byStar)
	}
	for _, t := range tokens {
		c.lists(t)
	}
	switch {
	case len(c.all) > MaxGoverning:
		return c.all
	case len(c.all) == 1 && c.all[0].how == byStar && e.star != nil:
		return e.star
	}
	for i := range c.all {
		groups := e.groupsOf(c.all[i].at)
		c.all[i].index, c.all[i].wishes = e.indexOf(groups), e.wishesOf(groups)
	}
	return c.all
}

func (c *choice) add(at int, t Token, how string) {
	if !c.known[at] {
		c.known[at] = true
		c.all = append(c.all, chosen{group: c.engine.nameValue(at), at: at, end: c.engine.nameEnd(at), token: t, how: how})
	}
}

func (c *choice) addAll(names []int, t Token, how string) {
	for _, at := range names {
		c.add(at, t, how)
	}
}

// readPhrases finds the names of several words of which one is the agent's.
func (c *choice) readPhrases(tokens []Token) {
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
		c.readPhrase(i, strings.ToLower(text), asked)
	}
}

func (c *choice) readPhrase(at int, phrase string, asked map[string]bool) {
	into, first, whole := c.first, "", true
	for word := range strings.FieldsSeq(phrase) {
		if word = trimName(word); asked[word] {
			into[word] = append(into[word], at)
		} else {
			whole = whole && first != "" && namesNobody(word)
		}
		if first == "" {
			into, first = c.other, word
		}
	}
	if whole {
		c.whole[first] = append(c.whole[first], at)
	}
}

// lists chooses the names of several words that may be meant for a name of the
// agent beside what fits it best. Such a group adds refusals and takes none
// away. A name of which the agent has every word may be the agent's, whatever
// else stands between the words in its User-Agent string.
func (c *choice) lists(t Token) {
	c.addAll(c.whole[t.Name], t, byList)
	if !generic[t.Name] {
		c.addAll(c.other[t.Name], t, byList)
	}
}

// token chooses the groups that fit one name of an agent best.
func (c *choice) token(t Token) {
	e := c.engine
	if t.Name == "" || t.Name == "*" {
		return
	}
	if at := e.named(t.Name); at >= 0 {
		c.add(at, t, byName)
		return
	}
	if fits := c.first[t.Name]; len(fits) > 0 && !c.longer(t) {
		c.addAll(fits, t, byFirst)
		return
	}
	for _, next := range fallbacks(t.Name) {
		if at := e.named(next); at >= 0 {
			c.add(at, t, byChain)
			return
		}
	}
}

// longer reports whether a token is the first word of a longer name that has a
// group of its own.
func (c *choice) longer(t Token) bool {
	return strings.HasPrefix(t.phrase, t.Name+" ") && c.engine.named(t.phrase) >= 0
}

// parts chooses every group whose name is part of a name of the agent, as the
// consensus of 1994 has it. A file may hold as many names as a User-Agent string
// does: looking each of them up takes an order of all ends of the agent's names.
func (c *choice) parts(tokens []Token) {
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
				c.add(i, t, byPart)
				break
			}
		}
	}
}
