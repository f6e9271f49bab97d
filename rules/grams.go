package rules

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// grams finds rules with wildcards by one of their grams, three octets in a row that
// every target they match contains after their first piece: the rarest. Only rules whose
// gram is in the target are tried.
type grams struct {
	shift  uint8    // of the hash of a gram
	starts []uint32 // by place, a shifted hash, where its rules begin; the last place is for those without a gram
	rules  []uint32 // by place, then the better first
}

// gramSize is the length of a gram. Shorter ones are in nearly every URL, longer
// ones in too few rules.
const gramSize = 3

// An entry of grams.rules is a rule, and above it the end of the hash of its gram, which
// most other grams of the same place have not.
const (
	ruleBits = 22 // a file has at most MaxBytes/2 rules
	ruleMask = 1<<ruleBits - 1
)

// hashGram returns a hash of the last octets of a text.
func hashGram(octets uint32) uint32 {
	const spread = 0x9E3779B97F4A7C15 // an odd number near 2^64 divided by the golden ratio
	return uint32(uint64(octets<<(32-8*gramSize)) * spread >> 32)
}

// newGrams returns the grams of rules with wildcards.
func newGrams(f *file, rules []uint32) (g grams) {
	if len(rules) == 0 {
		return g
	}
	size := bits.Len(uint(len(rules))) - 1 // at most one place a rule, so that many rules take little memory
	g.shift = uint8(32 - size)
	chosen, none := rarestGrams(f, rules), uint32(1)<<size
	place := func(i int) uint32 {
		if chosen[i] == 0 {
			return none
		}
		return uint32(uint64(chosen[i]) >> g.shift)
	}
	g.starts, g.rules = make([]uint32, none+2), make([]uint32, len(rules))
	for i := range rules {
		g.starts[place(i)+1]++
	}
	for i := range g.starts[1:] {
		g.starts[i+1] += g.starts[i]
	}
	next := slices.Clone(g.starts)
	for i, id := range rules {
		at := place(i)
		g.rules[next[at]] = id | chosen[i]<<ruleBits
		next[at]++
	}
	g.dropCopies(f)
	return g
}

// dropCopies sorts the rules of each place, and leaves out those that decide nothing
// since another one has the same pattern.
func (g *grams) dropCopies(f *file) {
	to := 0
	for i := range g.starts[1:] {
		rules := f.withoutCopies(g.rules[g.starts[i]:g.starts[i+1]])
		g.starts[i] = uint32(to)
		to += copy(g.rules[to:], rules)
	}
	g.starts[len(g.starts)-1] = uint32(to)
	g.rules = fit(g.rules[:to])
}

// rarestGrams returns the hash of the gram of each rule that fewest rules have; 0: it
// has none.
func rarestGrams(f *file, rules []uint32) []uint32 {
	size := bits.Len(uint(4 * len(rules)))
	counts, chosen := make([]uint32, 1<<size), make([]uint32, len(rules))
	var hashes []uint32
	for _, id := range rules {
		hashes = f.appendGrams(hashes[:0], id)
		for _, hash := range hashes {
			counts[hash>>(32-size)]++
		}
	}
	for i, id := range rules {
		hashes = f.appendGrams(hashes[:0], id)
		fewest := uint32(0)
		for _, hash := range hashes {
			if n := counts[hash>>(32-size)]; fewest == 0 || n < fewest {
				chosen[i], fewest = hash, n
			}
		}
	}
	return chosen
}

// appendGrams appends the hashes of the grams of a rule.
func (f *file) appendGrams(dst []uint32, id uint32) []uint32 {
	r := &f.rules[id]
	separator, octets, run := r.separator(), uint32(0), 0
	for _, c := range []byte(f.pattern(r)[len(f.firstPiece(id)):]) {
		if c == separator {
			run = 0
			continue
		}
		octets = octets<<8 | uint32(c)
		if run++; run >= gramSize {
			dst = append(dst, hashGram(octets))
		}
	}
	return dst
}

// find returns the rule with a gram in the target from an octet on, or without any, that
// decides about target, or best.
func (g *grams) find(s *judging, f *file, target string, from, best int) int {
	none := len(g.starts) - 2
	for _, entry := range g.rules[g.starts[none]:] {
		best = s.try(f, entry&ruleMask, target, best)
	}
	var v *visits
	s.steps -= stepsPerGram * (len(target) - from)
	octets, starts := uint32(0), g.starts
	for i := from; i < len(target) && s.steps >= 0; i++ {
		octets = octets<<8 | uint32(target[i])
		if i < from+gramSize-1 {
			continue
		}
		hash := hashGram(octets)
		place := uint64(hash) >> g.shift
		for _, entry := range g.rules[starts[place]:starts[place+1]] {
			s.steps--
			if entry>>ruleBits == hash<<ruleBits>>ruleBits {
				if v == nil {
					v = newVisits(none)
				}
				best = g.visit(s, f, v, int(place), target, i+1-gramSize, best)
				break
			}
		}
	}
	if v != nil {
		v.free()
	}
	return best
}

// visit returns the rule of a place that decides about target, whose gram at an octet leads
// to the place, or best. The rules are tried once, when target has a piece of one of them.
func (g *grams) visit(s *judging, f *file, v *visits, place int, target string, octet, best int) int {
	rules, count := g.rules[g.starts[place]:g.starts[place+1]], &v.counts[place]
	if *count > maxVisits {
		return best
	}
	if *count == 0 {
		v.places = append(v.places, place)
	}
	if *count++; *count < maxVisits {
		there := func(entry uint32) bool {
			return f.better(int(entry&ruleMask), best) && s.pieceAt(f, entry&ruleMask, target, octet)
		}
		if !slices.ContainsFunc(rules, there) {
			return best
		}
	}
	*count = maxVisits + 1
	for _, entry := range rules {
		best = s.try(f, entry&ruleMask, target, best)
	}
	return best
}

// pieceAt reports whether the first of the pieces of a rule that contain the gram of target
// at a place, after its first piece, is there. Without it, each rule whose gram is in the
// target is searched for in all of it: a URL of 8 KiB takes up to 13 times the steps under
// the largest file found in the open, more than the budget has.
func (s *judging) pieceAt(f *file, id uint32, target string, place int) bool {
	r := &f.rules[id]
	pattern, separator := f.pattern(r), r.separator()
	first := strings.IndexByte(pattern, separator)
	gram := strings.Index(pattern[first:], target[place:place+gramSize])
	s.steps -= stepsPerVisit + len(pattern)
	if gram < 0 {
		return false
	}
	gram += first
	start := strings.LastIndexByte(pattern[:gram], separator) + 1
	piece := pattern[start:]
	if end := strings.IndexByte(piece, separator); end >= 0 {
		piece = piece[:end]
	}
	place -= gram - start
	return place >= 0 && strings.HasPrefix(target[place:], piece)
}

// visits counts how often one target led to each place of grams, up to maxVisits+1.
type visits struct {
	counts []uint8
	places []int // those that are not zero
}

// maxVisits is the number of visits without a piece of a rule after which the rules of a
// place are tried all the same: then none of them costs much more than a search.
const maxVisits = 64

var allVisits = sync.Pool{New: func() any { return new(visits) }}

// newVisits returns the zero visits of n places.
func newVisits(n int) *visits {
	v := allVisits.Get().(*visits)
	if len(v.counts) < n {
		v.counts = make([]uint8, n)
	}
	return v
}

// free makes v zero, for the next target.
func (v *visits) free() {
	for _, place := range v.places {
		v.counts[place] = 0
	}
	v.places = v.places[:0]
	allVisits.Put(v)
}
