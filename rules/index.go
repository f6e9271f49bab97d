package rules

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// index finds the rule that decides about a target among the rules of the groups that
// one name merges, in time that depends on the target and hardly on their number.
//
// It is a hash table of the rules by their first pieces. Of each beginning of a target that is as
// long as one of them, the rules are tried, the longest first.
//
// Where more than fewWild rules with wildcards have the same first piece, they are in grams,
// and one of them is here in their place, with gramsHere.
type index struct {
	slots   []uint32 // noRule, or a rule and above it tagBits of the hash of its first piece
	used    int      // of slots
	lengths []uint64 // a bit for each length of a first piece
	grams   grams
}

const (
	noRule    = 1<<32 - 1 // no rule has ruleMask
	gramsHere = 1 << 31   // marks a rule that is here in place of those in grams with the same first piece
	tagBits   = 31 - ruleBits

	fewRules = 16 // up to so many rules, trying each costs less than an index
	fewWild  = 8  // up to so many rules with one first piece, trying each costs less than a search for grams
)

// A hash of octets is the polynomial with these coefficients at hashPoint, modulo a prime. The
// point is random, so that no file can have many first pieces with the same hash.
const hashPrime = 1<<61 - 1

var hashPoint = 1<<32 + rand.Uint64N(hashPrime-1<<33)

// addHash returns the hash of octets with the given hash and c.
func addHash(hash uint64, c byte) uint64 {
	high, low := bits.Mul64(hash, hashPoint)
	if hash = low&hashPrime + (low>>61 | high<<3) + uint64(c) + 1; hash >= hashPrime {
		hash -= hashPrime
	}
	return hash
}

// slot returns the first slot that may have rules with this hash, and their tag.
func (x *index) slot(hash uint64) (at int, tag uint32) {
	return int(uint64(uint32(hash>>29)) * uint64(len(x.slots)) >> 32), uint32(hash) & (1<<tagBits - 1) << ruleBits
}

// find returns the rule that decides about target; -1 when none matches.
func (x *index) find(s *judging, f *file, target string) int {
	var room [16]uint32
	found, hash := room[:0], uint64(0)
	most := min(len(target), 64*len(x.lengths)-1)
	for size := 0; size <= most && s.steps >= 0; size++ {
		if x.lengths[size/64]>>(size%64)&1 != 0 {
			at, tag := x.slot(hash)
			for s.steps -= stepsPerNode; x.slots[at] != noRule; s.steps-- {
				if x.slots[at]&^(ruleMask|gramsHere) == tag {
					found = append(found, x.slots[at])
				}
				if at++; at == len(x.slots) {
					at = 0
				}
			}
		}
		if size < most {
			hash = addHash(hash, target[size])
		}
	}
	s.steps -= stepsPerOctet * most
	best, from := -1, -1
	for _, slot := range slices.Backward(found) {
		id := slot & ruleMask
		if slot&gramsHere == 0 {
			best = s.try(f, id, target, best)
		} else if first := f.firstPiece(id); strings.HasPrefix(target, first) {
			from = len(first) // the shortest is last
		}
	}
	if from >= 0 {
		best = x.grams.find(s, f, target, from, best)
	}
	return best
}

// size returns how many octets of memory x takes.
func (x *index) size() int {
	return 128 + allocated(4*cap(x.slots)) + allocated(8*cap(x.lengths)) + 4*cap(x.grams.starts) + 4*cap(x.grams.rules)
}

// newIndex returns the index of rules, at least one, in the order of the file, and changes their
// order; the text of f must be complete.
func newIndex(f *file, rules []uint32) *index {
	x, wild, inGrams := &index{slots: emptySlots(len(rules))}, []uint32(nil), []uint32(nil)
	for _, id := range rules {
		if f.rules[id].line&ruleWild != 0 {
			wild = append(wild, id)
		} else {
			x.add(f, id)
		}
	}
	slices.SortFunc(wild, func(a, b uint32) int { return strings.Compare(f.firstPiece(a), f.firstPiece(b)) })
	for len(wild) > 0 {
		first := f.firstPiece(wild[0])
		end := slices.IndexFunc(wild, func(id uint32) bool { return f.firstPiece(id) != first })
		if end < 0 {
			end = len(wild)
		}
		if own := wild[:end]; end > fewWild {
			x.add(f, own[0]|gramsHere)
			inGrams = append(inGrams, own...)
		} else {
			for _, id := range f.withoutCopies(own) {
				x.add(f, id)
			}
		}
		wild = wild[end:]
	}
	if many := x.slots; len(many) > len(emptySlots(x.used+x.used/8)) {
		x.slots, x.used = emptySlots(x.used), 0
		for _, slot := range many {
			if slot != noRule {
				x.add(f, slot&(ruleMask|gramsHere))
			}
		}
	}
	x.lengths = fit(x.lengths)
	x.grams = newGrams(f, inGrams)
	return x
}

// emptySlots returns slots for rules, of which a third stays free.
func emptySlots(rules int) []uint32 {
	return slices.Repeat([]uint32{noRule}, rules+rules/2+1)
}

// add adds a rule, unless it is without wildcards and differs from another one in its line only.
func (x *index) add(f *file, rule uint32) {
	id := rule & ruleMask
	first, hash := f.firstPiece(id), uint64(0)
	for i := range len(first) {
		hash = addHash(hash, first[i])
	}
	for len(x.lengths) <= len(first)/64 {
		x.lengths = append(x.lengths, 0)
	}
	x.lengths[len(first)/64] |= 1 << (len(first) % 64)
	at, tag := x.slot(hash)
	for x.slots[at] != noRule {
		if other := x.slots[at]; other&^(ruleMask|gramsHere) == tag && f.rules[id].line&ruleWild == 0 && f.orderOfCopies(id, other&ruleMask) == 0 {
			return
		}
		if at++; at == len(x.slots) {
			at = 0
		}
	}
	x.slots[at] = rule | tag
	x.used++
}

// withoutCopies sorts rules, the better first, and returns them without those that
// differ from another one in their line only. A rule may have a mark above ruleBits.
func (f *file) withoutCopies(rules []uint32) []uint32 {
	slices.SortFunc(rules, func(a, b uint32) int {
		return cmp.Or(f.orderOfCopies(a, b), cmp.Compare(a&ruleMask, b&ruleMask))
	})
	return slices.CompactFunc(rules, func(a, b uint32) bool { return f.orderOfCopies(a, b) == 0 })
}

// orderOfCopies compares rules for a sort that has the better first; 0 when they differ in their
// line only. They may have a mark above ruleBits.
func (f *file) orderOfCopies(a, b uint32) int {
	r, o := &f.rules[a&ruleMask], &f.rules[b&ruleMask]
	if r.length != o.length {
		return cmp.Compare(o.length, r.length)
	}
	if x, y := r.line&^ruleLine, o.line&^ruleLine; x != y {
		return cmp.Compare(y, x)
	}
	return strings.Compare(f.pattern(r), f.pattern(o))
}

// indexKey returns the key of the index for a list of groups.
func indexKey(dst []byte, groups []uint32) []byte {
	for _, g := range groups {
		dst = binary.LittleEndian.AppendUint32(dst, g)
	}
	return dst
}
