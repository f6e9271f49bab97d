package rules

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

// index finds the rule that decides about a target among the rules of the groups that
// one name merges, in time that depends on the target and hardly on their number.
//
// The rules are sorted by their first pieces. Whatever begins a target is in order not after
// it, and begins whatever is in order between the two. So the rules whose first piece begins
// the target are the last one that is not after it, if its piece does, and those whose pieces
// begin that one's: before leads from each rule to the next of these.
//
// Where more than fewWild rules with wildcards have the same first piece, they are in grams,
// and one of them is here in their place, with gramsHere.
type index struct {
	rules []indexed
	grams grams
}

// indexed is a rule of an index.
type indexed struct {
	rule   uint32
	before int32  // the place of the last one before it whose first piece begins its own; -1: none
	size   uint16 // of its first piece
}

// first returns the first piece of a rule.
func (r *indexed) first(f *file) string { return f.text[f.rules[r.rule&ruleMask].pattern:][:r.size] }

// gramsHere marks a rule that is here in place of those in grams with the same first piece.
const gramsHere = 1 << 30

const (
	fewRules = 16 // up to so many rules, trying each costs less than an index
	fewWild  = 8  // up to so many rules with one first piece, trying each costs less than a search for grams
)

// find returns the rule that decides about target; -1 when none matches.
func (x *index) find(s *judging, f *file, target string) int {
	after := sort.Search(len(x.rules), func(i int) bool {
		r := &x.rules[i]
		s.steps -= stepsPerNode + int(r.size)/octetsPerStep
		return r.first(f) > target
	})
	if after == 0 {
		return -1
	}
	best, from, common := -1, -1, 0
	for last := x.rules[after-1].first(f); common < min(len(last), len(target)) && last[common] == target[common]; {
		common++
	}
	s.steps -= common
	for i := after - 1; i >= 0 && s.steps >= 0; i = int(x.rules[i].before) {
		switch r := &x.rules[i]; {
		case int(r.size) > common: // it does not begin the target
			s.steps--
		case r.rule&gramsHere == 0:
			best = s.try(f, r.rule, target, best)
		default:
			from = int(r.size) // the shortest is last
		}
	}
	if from >= 0 {
		best = x.grams.find(s, f, target, from, best)
	}
	return best
}

// size returns how many bytes of memory x takes.
func (x *index) size() int {
	return 96 + 12*cap(x.rules) + 4*cap(x.grams.starts) + 4*cap(x.grams.rules)
}

// newIndex returns the index of rules, at least one, and changes their order; the text of f
// must be complete.
func newIndex(f *file, rules []uint32) *index {
	x, wild := new(index), []uint32(nil)
	isWild := func(id uint32) bool { return f.rules[id].line&ruleWild != 0 }
	slices.SortFunc(rules, func(a, b uint32) int { return strings.Compare(f.firstPiece(a), f.firstPiece(b)) })
	for len(rules) > 0 {
		first := f.firstPiece(rules[0])
		end := slices.IndexFunc(rules, func(id uint32) bool { return f.firstPiece(id) != first })
		if end < 0 {
			end = len(rules)
		}
		own, from := rules[:end], len(wild)
		rules = rules[end:]
		for _, id := range own {
			if isWild(id) {
				wild = append(wild, id)
			}
		}
		if len(wild)-from > fewWild {
			x.add(f, wild[from]|gramsHere)
			own = slices.DeleteFunc(own, isWild)
		} else {
			wild = wild[:from]
		}
		for _, id := range slices.Backward(f.withoutCopies(own)) { // the better are looked at first
			x.add(f, id)
		}
	}
	x.rules = fit(x.rules)
	x.grams = newGrams(f, wild)
	return x
}

// add adds a rule that is in order after those of x.
func (x *index) add(f *file, rule uint32) {
	first, before := f.firstPiece(rule&ruleMask), len(x.rules)-1
	for before >= 0 && !strings.HasPrefix(first, x.rules[before].first(f)) {
		before = int(x.rules[before].before)
	}
	x.rules = append(x.rules, indexed{rule, int32(before), uint16(len(first))})
}

// withoutCopies sorts rules, the better first, and returns them without those that
// differ from another one in their line only. A rule may have a mark above ruleBits.
func (f *file) withoutCopies(rules []uint32) []uint32 {
	order := func(a, b uint32) int {
		r, o := &f.rules[a&ruleMask], &f.rules[b&ruleMask]
		if r.length != o.length {
			return cmp.Compare(o.length, r.length)
		}
		if x, y := r.line&^ruleLine, o.line&^ruleLine; x != y {
			return cmp.Compare(y, x)
		}
		return strings.Compare(f.pattern(r), f.pattern(o))
	}
	slices.SortFunc(rules, func(a, b uint32) int { return cmp.Or(order(a, b), cmp.Compare(a&ruleMask, b&ruleMask)) })
	return slices.CompactFunc(rules, func(a, b uint32) bool { return order(a, b) == 0 })
}

// indexKey returns the key of the index for a list of groups.
func indexKey(dst []byte, groups []uint32) []byte {
	for _, g := range groups {
		dst = binary.LittleEndian.AppendUint32(dst, g)
	}
	return dst
}
