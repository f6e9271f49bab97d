package rules

import (
	"encoding/binary"
	"slices"
	"strings"
)

// engine is what a robots.txt says, compiled. It is immutable but for what
// agents remembers. Everything that is text lies in one string: the file
// itself, and after it what differs from the way the site wrote it.
type engine struct {
	differences
	text    string
	phrases bool            // there are names of several words
	calls   bool            // there are names other than "*"
	costly  bool            // there are more than costlyStars wildcards
	paced   bool            // there are lines about speed
	general []*Wish         // of those, what stands before any group
	start   int             // of the file in text, after a byte order mark
	rules   []rule          // in the order of the file
	groups  []uint32        // the first rule of each group
	names   []name          // sorted; the lines of one name lie side by side
	fields  []carried       // in the order of the file
	sets    []ruleSet       // of the names that have many rules; sorted by groups
	star    []chosen        // what governs agents that no name in the file is for
	agents  agentMemo       // what governs the agents that asked
	extra   strings.Builder // while parsing: what will be added to text
}

// ruleSet is the rules of some groups, merged.
type ruleSet struct {
	groups []uint32
	index  *index
}

// pack adds a packed pattern to the text, and before it the place of its line.
func (e *engine) pack(at span, packed string) uint32 {
	var place [placeSize]byte
	binary.LittleEndian.PutUint32(place[:], uint32(at.from))
	binary.LittleEndian.PutUint16(place[4:], uint16(at.to-at.from))
	e.extra.Write(place[:])
	e.extra.WriteString(packed)
	return uint32(len(e.text) + e.extra.Len() - len(packed))
}

const placeSize = 6

// finish makes the parsed lines ready for questions.
func (e *engine) finish() {
	if e.crowded() {
		e.compact()
	}
	if e.extra.Len() > 0 {
		e.text += e.extra.String()
		e.extra = strings.Builder{}
	}
	e.rules, e.groups, e.fields = fit(e.rules), fit(e.groups), fit(e.fields)
	e.sortNames()
	e.makeSets()
	e.paced = slices.ContainsFunc(e.fields, func(f carried) bool { return f.kind.pacing() })
	e.general = e.wishesOf(nil)
	e.star = e.choose(nil)
	e.calls = len(e.names) > 0 && (e.nameText(0) != "*" || e.nameEnd(0) < len(e.names))
}

// fit returns s in memory of its own size: what grew has up to twice that.
func fit[T any](s []T) []T {
	if cap(s)-len(s) <= len(s)/16 {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// rulesOf returns the rules of groups, in the order of the file.
func (e *engine) rulesOf(groups []uint32) []uint32 {
	var all []uint32
	for _, g := range groups {
		for id := e.groups[g]; id < e.groupEnd(g); id++ {
			all = append(all, id)
		}
	}
	return all
}

func (e *engine) groupEnd(g uint32) uint32 {
	if int(g)+1 < len(e.groups) {
		return e.groups[g+1]
	}
	return uint32(len(e.rules))
}

// makeSets makes an index for each list of groups that some name merges, if it
// has many rules. Lists may overlap; what they take together is bounded, and
// beyond that the groups of a list are asked one by one.
func (e *engine) makeSets() {
	budget := 2 * len(e.rules)
	single := make([]bool, len(e.groups))
	several := make(map[string]bool)
	var groups []uint32
	for i := 0; i < len(e.names); i = e.nameEnd(i) {
		groups = e.appendGroups(groups[:0], i)
		count := 0
		for _, g := range groups {
			count += int(e.groupEnd(g) - e.groups[g])
		}
		switch {
		case count <= smallSet:
		case len(groups) == 1:
			e.makeSingle(single, groups[0])
		case count > budget:
			for _, g := range groups {
				e.makeSingle(single, g)
			}
		case !several[listKey(groups)]:
			several[listKey(groups)] = true
			budget -= count
			e.addSet(slices.Clone(groups))
		}
	}
	slices.SortFunc(e.sets, func(a, b ruleSet) int { return slices.Compare(a.groups, b.groups) })
	e.sets = fit(e.sets)
}

// makeSingle makes the index of one group, once.
func (e *engine) makeSingle(made []bool, g uint32) {
	if !made[g] && e.groupEnd(g)-e.groups[g] > smallSet {
		made[g] = true
		e.addSet([]uint32{g})
	}
}

func (e *engine) addSet(groups []uint32) {
	e.sets = append(e.sets, ruleSet{groups, newIndex(e, e.rulesOf(groups))})
}

func listKey(groups []uint32) string {
	var b []byte
	for _, g := range groups {
		b = binary.LittleEndian.AppendUint32(b, g)
	}
	return string(b)
}

// indexOf returns the index of the rules of groups; nil when they have none
// together.
func (e *engine) indexOf(groups []uint32) *index {
	i, ok := slices.BinarySearchFunc(e.sets, groups, func(s ruleSet, groups []uint32) int {
		return slices.Compare(s.groups, groups)
	})
	if !ok {
		return nil
	}
	return e.sets[i].index
}

// findIn returns the rule of a group that decides about target, or best when
// that is better.
func (e *engine) findIn(group uint32, target string, best int) int {
	from, to := e.groups[group], e.groupEnd(group)
	if to-from > smallSet {
		alone := [...]uint32{group}
		if x := e.indexOf(alone[:]); x != nil {
			return x.find(e, target, best)
		}
	}
	for id := from; id < to; id++ {
		if e.better(int(id), best) && e.matches(id, target) {
			best = int(id)
		}
	}
	return best
}

// pattern returns the pattern of a rule.
func (e *engine) pattern(r *rule) string { return e.text[r.pattern:][:r.size] }

// better reports whether rule a decides rather than rule b when both match; b
// is -1 when there is none. The longer one is more specific (RFC 9309
// §2.2.2); among equals Allow wins, and then the line that comes first.
func (e *engine) better(a, b int) bool {
	if b < 0 {
		return true
	}
	x, y := &e.rules[a], &e.rules[b]
	if x.length != y.length {
		return x.length > y.length
	}
	if x.allows() != y.allows() {
		return x.allows() != e.tieRefuses
	}
	return a < b
}

// matches reports whether a rule matches a packed target.
func (e *engine) matches(id uint32, target string) bool {
	r := &e.rules[id]
	pattern := e.pattern(r)
	if r.line&ruleWild == 0 {
		return strings.HasPrefix(target, pattern) && (r.line&ruleEnds == 0 || len(target) == len(pattern))
	}
	first, rest := cutPiece(pattern, r.separator())
	return strings.HasPrefix(target, first) &&
		matchWild(rest, r.separator(), r.line&ruleEnds != 0, target[len(first):])
}

// tryWild returns the wildcard rule id when it is better than best and what
// follows its first piece matches rest, else best.
func (e *engine) tryWild(id uint32, rest string, best int) int {
	if !e.better(int(id), best) {
		return best
	}
	r := &e.rules[id]
	_, pattern := cutPiece(e.pattern(r), r.separator())
	if matchWild(pattern, r.separator(), r.line&ruleEnds != 0, rest) {
		return int(id)
	}
	return best
}

// cutPiece returns the first piece of a pattern and what follows, from the
// separator on.
func cutPiece(pattern string, separator byte) (first, rest string) {
	i := strings.IndexByte(pattern, separator)
	return pattern[:i], pattern[i:]
}

// firstPiece returns the first piece of a wildcard rule.
func (e *engine) firstPiece(id uint32) string {
	r := &e.rules[id]
	first, _ := cutPiece(e.pattern(r), r.separator())
	return first
}

// longestPiece returns the longest piece but the first of a wildcard rule as
// a key for it, and whether it is bound to the end of the target.
func (e *engine) longestPiece(id uint32) (longest key, bound bool) {
	r := &e.rules[id]
	pattern, separator := e.pattern(r), r.separator()
	first, rest := cutPiece(pattern, separator)
	at := r.pattern + uint32(len(first))
	for rest != "" {
		rest = rest[1:]
		at++
		piece, next := rest, strings.IndexByte(rest, separator)
		if next >= 0 {
			piece = rest[:next]
		}
		if len(piece) >= int(longest.size) {
			longest = key{at: at, size: uint16(len(piece)), value: id}
			bound = next < 0 && r.line&ruleEnds != 0
		}
		at += uint32(len(piece))
		rest = rest[len(piece):]
	}
	return longest, bound
}

// ruleText returns the line of a rule as the site wrote it, and its number.
func (e *engine) ruleText(id int) (text string, line int) {
	r := &e.rules[id]
	line = int(r.line & ruleLine)
	if r.line&rulePacked != 0 {
		at := packedPlace(e.text, r)
		return e.text[at.from:at.to], line
	}
	at := span{0, int(r.pattern) + int(r.size)}
	if r.line&ruleEnds != 0 {
		at.to++
	}
	at.from = int(r.pattern)
	for at.from > e.start && e.text[at.from-1] != '\n' && e.text[at.from-1] != '\r' {
		at.from--
	}
	at = at.trim(e.text)
	return e.text[at.from:at.to], line
}

// packedPlace returns where the line of a packed rule is.
func packedPlace(text string, r *rule) span {
	place := text[r.pattern-placeSize : r.pattern]
	from := int(place[0]) | int(place[1])<<8 | int(place[2])<<16 | int(place[3])<<24
	return span{from, from + (int(place[4]) | int(place[5])<<8)}
}
