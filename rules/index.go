package rules

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"
)

// index finds the rule that decides about a target among the rules of the
// groups that one name merges. Of rules with the same pattern it has the one that
// decides.
//
// Rules without a wildcard are in a sorted list, where a binary search finds
// those that begin a target. Those with wildcards are in a list by one of their grams,
// three octets in a row that every target they match contains. Only rules whose gram is
// in the target are tried.
type index struct {
	literals []literal
	wild     []wildRule // by gram, of one gram the better first
}

// wildRule is a rule with wildcards and the rarest of its grams; 0: it has none, or the
// rules are few.
type wildRule struct{ gram, rule uint32 }

// literal is a rule that matches by its prefix alone.
type literal struct {
	rule   uint32
	parent int32 // the place of the longest other prefix that this one begins with; -1: none
}

// gramSize is the length of a gram. Shorter ones are in nearly every URL, longer
// ones in too few rules.
const gramSize = 3

// fewRules is the number of rules up to which trying each costs less than a search.
const fewRules = 16

// newIndex returns the index of rules; the text of f must be complete.
func newIndex(f *file, rules []uint32) *index {
	x := &index{}
	var literals, wild []uint32
	for _, id := range rules {
		if f.rules[id].line&ruleWild != 0 && !f.endsInStars(id) {
			wild = append(wild, id)
		} else {
			literals = append(literals, id)
		}
	}
	x.addLiterals(f, literals)
	x.addWildcards(f, wild)
	return x
}

// addLiterals sorts rules by their prefixes. Of those that match the same
// targets it keeps the one that decides.
func (x *index) addLiterals(f *file, rules []uint32) {
	slices.SortFunc(rules, func(a, b uint32) int {
		textA, wholeA := f.prefix(a)
		textB, wholeB := f.prefix(b)
		switch order := strings.Compare(textA, textB); {
		case order != 0:
			return order
		case wholeA == wholeB && f.better(int(a), int(b)), !wholeA && wholeB:
			return -1
		default:
			return 1
		}
	})
	rules = slices.CompactFunc(rules, func(a, b uint32) bool {
		textA, wholeA := f.prefix(a)
		textB, wholeB := f.prefix(b)
		return wholeA == wholeB && textA == textB
	})
	x.literals = make([]literal, len(rules))
	for i, id := range rules {
		text, _ := f.prefix(id)
		parent := int32(i) - 1
		for ; parent >= 0; parent = x.literals[parent].parent {
			if begin, _ := f.prefix(x.literals[parent].rule); strings.HasPrefix(text, begin) {
				break
			}
		}
		x.literals[i] = literal{id, parent}
	}
}

// addWildcards adds each rule with the rarest of its grams.
func (x *index) addWildcards(f *file, rules []uint32) {
	rules = f.withoutCopies(rules)
	count := make(map[uint32]int)
	for _, id := range rules {
		for gram := range f.grams(id) {
			count[gram]++
		}
	}
	x.wild = make([]wildRule, len(rules))
	for i, id := range rules {
		w := &x.wild[i]
		w.rule = id
		for gram := range f.grams(id) {
			if len(rules) > fewRules && (w.gram == 0 || count[gram] < count[w.gram]) {
				w.gram = gram
			}
		}
	}
	slices.SortStableFunc(x.wild, func(a, b wildRule) int { return cmp.Compare(a.gram, b.gram) })
}

// withoutCopies sorts rules, the better first, and returns them without those that
// differ from another one in their line only.
func (f *file) withoutCopies(rules []uint32) []uint32 {
	same := func(a, b uint32) bool {
		r, o := &f.rules[a], &f.rules[b]
		return r.length == o.length && (r.line^o.line)&^uint32(ruleLine) == 0 && f.pattern(r) == f.pattern(o)
	}
	slices.SortFunc(rules, func(a, b uint32) int {
		r, o := &f.rules[a], &f.rules[b]
		return cmp.Or(cmp.Compare(r.length, o.length), cmp.Compare(r.line&^ruleLine, o.line&^ruleLine),
			strings.Compare(f.pattern(r), f.pattern(o)), cmp.Compare(a, b))
	})
	rules = slices.CompactFunc(rules, same)
	slices.SortFunc(rules, f.order)
	return rules
}

// grams yields the grams that every target of a wildcard rule contains.
func (f *file) grams(id uint32) iter.Seq[uint32] {
	r := &f.rules[id]
	return func(yield func(uint32) bool) {
		for piece := range strings.SplitSeq(f.pattern(r), string([]byte{r.separator()})) {
			for i := 0; i+gramSize <= len(piece); i++ {
				if !yield(gramAt(piece, i)) {
					return
				}
			}
		}
	}
}

// gramAt returns the gram at position i of text.
func gramAt(text string, i int) uint32 {
	return uint32(text[i])<<16 | uint32(text[i+1])<<8 | uint32(text[i+2])
}

// spread is an odd number near 2^32 divided by the golden ratio, for hashes of grams.
const spread = 0x9E3779B1

// stepsPerGram is what a search for the rules of a gram costs.
const stepsPerGram = 30

// find returns the rule that decides about target; -1 when none matches. It searches
// for each gram of the target, or in the target for each rule's where that costs less.
func (x *index) find(s *scratch, f *file, target string) int {
	best := x.findLiteral(s, f, target)
	if len(x.wild) > fewRules {
		s.steps -= len(target)
		s.seen.note(target)
	}
	i := 0
	for ; i < len(x.wild) && x.wild[i].gram == 0; i++ {
		best = s.tryWild(f, x.wild[i], target, best)
	}
	if stepsPerGram*len(target) < len(x.wild) {
		return x.findByGram(s, f, target, best)
	}
	s.steps -= len(x.wild)
	for ; i < len(x.wild); i++ {
		if s.seen.has(x.wild[i].gram) {
			best = s.tryWild(f, x.wild[i], target, best)
		}
	}
	return best
}

// findByGram returns the rule with a gram that decides about target, or best.
func (x *index) findByGram(s *scratch, f *file, target string, best int) int {
	s.steps -= stepsPerGram * len(target)
	for i := 0; i+gramSize <= len(target); i++ {
		gram := gramAt(target, i)
		at, end := 0, len(x.wild)
		for at < end {
			if middle := int(uint(at+end) / 2); x.wild[middle].gram < gram {
				at = middle + 1
			} else {
				end = middle
			}
		}
		for ; at < len(x.wild) && x.wild[at].gram == gram; at++ {
			best = s.tryWild(f, x.wild[at], target, best)
		}
	}
	return best
}

// tryWild returns the rule of w when it is better than best and matches target, else
// best. When the steps are used up it returns best.
func (s *scratch) tryWild(f *file, w wildRule, target string, best int) int {
	s.steps--
	if s.steps < 0 || !f.better(int(w.rule), best) {
		return best
	}
	r := &f.rules[w.rule]
	if s.steps -= stepsPerRule; w.gram != 0 && !s.seen.all(f.pattern(r), r.separator()) || !f.matches(w.rule, target, &s.steps) {
		return best
	}
	return int(w.rule)
}

// gramSet is the grams of a target, two bits of one word for each, by a hash: it may seem
// to have others as well.
type gramSet [1 << 10]uint64

// bits returns the word of a gram in a gramSet, and its bits in that.
func bits(gram uint32) (word uint32, mask uint64) {
	hash := gram * spread
	return hash >> 22, 1<<(hash>>16&63) | 1<<(hash>>10&63)
}

// has reports whether a gram may be in g.
func (g *gramSet) has(gram uint32) bool {
	word, mask := bits(gram)
	return g[word]&mask == mask
}

// note makes g the grams of target.
func (g *gramSet) note(target string) {
	*g = gramSet{}
	if len(target) < gramSize {
		return
	}
	gram := gramAt(target, 0) >> 8
	for i := gramSize - 1; i < len(target); i++ {
		gram = gram<<8&0xFFFFFF | uint32(target[i])
		word, mask := bits(gram)
		g[word] |= mask
	}
}

// all reports whether g has all grams of a pattern, as far as its first octets go. Most
// rules are ruled out by that without a search of the target.
func (g *gramSet) all(pattern string, separator byte) bool {
	run, gram := 0, uint32(0)
	for i := range min(len(pattern), 4*stepsPerRule) {
		if pattern[i] == separator {
			run = 0
			continue
		}
		gram = gram<<8&0xFFFFFF | uint32(pattern[i])
		if run++; run >= gramSize && !g.has(gram) {
			return false
		}
	}
	return true
}

// findLiteral returns the literal rule that decides; -1 when none matches. In the sorted
// list all prefixes of target are the last entry that is not after target, its
// parent, and so on.
func (x *index) findLiteral(s *scratch, f *file, target string) int {
	best := -1
	after, _ := slices.BinarySearchFunc(x.literals, target, func(l literal, target string) int {
		text, _ := f.prefix(l.rule)
		s.steps -= stepsPerLiteral + len(text)/octetsPerStep
		if text <= target {
			return -1
		}
		return 1
	})
	i := int32(after) - 1
	if i < 0 {
		return best
	}
	text, _ := f.prefix(x.literals[i].rule)
	common := commonPrefix(text, target)
	s.steps -= common
	for ; i >= 0; i = x.literals[i].parent { // each a prefix of the one before
		id := x.literals[i].rule
		text, whole := f.prefix(id)
		s.steps -= stepsPerLiteral + len(text)/octetsPerStep
		if len(text) <= common && (!whole || len(target) == len(text)) && f.better(int(id), best) {
			best = int(id)
		}
	}
	return best
}

// commonPrefix returns how many octets a and b have in common at their beginning.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// size returns how many bytes of memory x takes.
func (x *index) size() int {
	return 48 + 8*(cap(x.literals)+cap(x.wild))
}

// indexKey returns the key of the index for a list of groups.
func indexKey(dst []byte, groups []uint32) []byte {
	for _, g := range groups {
		dst = binary.LittleEndian.AppendUint32(dst, g)
	}
	return dst
}
