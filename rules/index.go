package rules

import (
	"slices"
	"strings"
)

// index finds the rule that decides about a target among all rules of the
// groups it was made of, in time that hardly depends on how many those are.
// Rules without a wildcard lie in one trie, and each wildcard rule in a bucket
// at the place where its first piece ends.
type index struct {
	literal trie
	buckets []bucket
}

// smallSet is up to how many rules of a group are looked at one by one.
const smallSet = 16

// newIndex makes the index of rules; the engine's text must be complete.
func newIndex(e *engine, rules []uint32) *index {
	x := &index{}
	keys := make([]key, 0, len(rules))
	var wild []key
	for _, id := range rules {
		r := &e.rules[id]
		k := key{at: r.pattern, size: r.size, value: id}
		switch {
		case r.line&ruleWild != 0:
			first, rest := cutPiece(e.pattern(r), r.separator())
			k.size = uint16(len(first))
			if strings.Count(rest, rest[:1]) != len(rest) {
				wild = append(wild, k)
				continue
			}
		case r.line&ruleEnds != 0:
			k.whole = true
		}
		keys = append(keys, k)
	}
	keys = x.makeBuckets(e, wild, keys)
	x.literal = newTrie(e.text, keys, func(a, b uint32) bool { return e.better(int(a), int(b)) })
	return x
}

// makeBuckets puts wildcard rules, whose keys are their first pieces, into
// buckets, and adds a key for each bucket to keys.
func (x *index) makeBuckets(e *engine, wild, keys []key) []key {
	slices.SortStableFunc(wild, func(a, b key) int { return strings.Compare(a.in(e.text), b.in(e.text)) })
	for len(wild) > 0 {
		n := 1
		for n < len(wild) && wild[n].in(e.text) == wild[0].in(e.text) {
			n++
		}
		k := wild[0]
		k.value = uint32(len(x.buckets)) | manyRef
		keys = append(keys, k)
		x.buckets = append(x.buckets, newBucket(e, wild[:n]))
		wild = wild[n:]
	}
	x.buckets = fit(x.buckets)
	return keys
}

// find returns the rule that decides about target, or best when that is better.
func (x *index) find(e *engine, target string, best int) int {
	w := x.literal.walk(e, x, target)
	for {
		value, used, ok := w.step()
		switch {
		case !ok:
			return best
		case value&manyRef != 0:
			best = x.buckets[value&^manyRef].find(e, target[used:], best)
		case e.better(int(value), best):
			best = int(value)
		}
	}
}

// key returns the key of a rule or of a bucket.
func (x *index) key(e *engine, value uint32) (text string, whole bool) {
	if value&manyRef != 0 {
		return e.firstPiece(x.buckets[value&^manyRef].any()), false
	}
	r := &e.rules[value]
	if r.line&ruleWild != 0 {
		return e.firstPiece(value), false
	}
	return e.pattern(r), r.line&ruleEnds != 0
}
