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
	small   []uint32 // the rules, when they are too few for more
	literal trie
	buckets []bucket
}

// smallSet is up to how many rules are looked at one by one.
const smallSet = 6

// bucket is the wildcard rules that share their first piece. A rule in keys is
// worth a look only when its longest later piece occurs in the rest of the
// target. Pieces that must stand at its end are looked for only there.
type bucket struct {
	rules  []uint32 // looked at one by one
	keys   trie     // of pieces; the value is a place in posted
	tails  trie     // of last pieces bound to the end; the same
	sizes  []uint16 // the sizes of those, ascending
	posted []uint32 // runs of rules; the last of a run carries lastPosted
	starts [4]uint64
	keyed  int // how many rules keys leads to
}

const lastPosted = 1 << 31

// smallBucket is up to how many wildcard rules are looked at one by one.
const smallBucket = 8

// newIndex makes the index of rules; the engine's text must be complete.
func newIndex(e *engine, rules []uint32) *index {
	if len(rules) <= smallSet {
		return &index{small: rules}
	}
	x := &index{}
	keys := make([]key, 0, len(rules))
	var wild []key
	for _, id := range rules {
		r := &e.rules[id]
		k := key{at: r.pattern, size: r.size, mark: markOpen, value: id}
		switch {
		case r.line&ruleWild != 0:
			first, rest := cutPiece(e.pattern(r), r.separator())
			k.size = uint16(len(first))
			if strings.Count(rest, rest[:1]) != len(rest) {
				wild = append(wild, k)
				continue
			}
		case r.line&ruleEnds != 0:
			k.mark = markEnd
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
		k.mark, k.value = markStar, uint32(len(x.buckets))
		keys = append(keys, k)
		x.buckets = append(x.buckets, newBucket(e, wild[:n]))
		wild = wild[n:]
	}
	x.buckets = slices.Clip(x.buckets)
	return keys
}

// newBucket makes the bucket of the wildcard rules that wild leads to.
func newBucket(e *engine, wild []key) bucket {
	var b bucket
	if len(wild) <= smallBucket {
		for _, k := range wild {
			b.rules = append(b.rules, k.value)
		}
		b.rules = slices.Clip(b.rules)
		return b
	}
	var floats, tails []key
	for _, k := range wild {
		k, bound := e.longestPiece(k.value)
		if bound {
			tails = append(tails, k)
			b.sizes = append(b.sizes, k.size)
			continue
		}
		floats = append(floats, k)
		c := e.text[k.at]
		b.starts[c>>6] |= 1 << (c & 63)
	}
	slices.Sort(b.sizes)
	b.sizes = slices.Clone(slices.Compact(b.sizes))
	b.keyed = len(floats)
	b.posted = make([]uint32, 0, len(wild))
	b.keys, b.tails = b.post(e.text, floats), b.post(e.text, tails)
	return b
}

// post makes the trie of keys whose values are rules, several of one text.
func (b *bucket) post(text string, keys []key) trie {
	slices.SortStableFunc(keys, func(a, b key) int { return strings.Compare(a.in(text), b.in(text)) })
	runs := keys[:0]
	for i := 0; i < len(keys); {
		k := keys[i]
		k.value = uint32(len(b.posted))
		for ; i < len(keys) && keys[i].in(text) == k.in(text); i++ {
			b.posted = append(b.posted, keys[i].value)
		}
		b.posted[len(b.posted)-1] |= lastPosted
		runs = append(runs, k)
	}
	return newTrie(text, runs, func(a, b uint32) bool { return a < b })
}

// find returns the rule that decides about target, or best when that is better.
func (x *index) find(e *engine, target string, best int) int {
	for _, id := range x.small {
		if e.better(int(id), best) && e.matches(id, target) {
			best = int(id)
		}
	}
	w := x.literal.walk(e.text, target)
	for {
		m, value, used, ok := w.next()
		switch {
		case !ok:
			return best
		case m == markStar:
			best = x.buckets[value].find(e, target[used:], best)
		case e.better(int(value), best):
			best = int(value)
		}
	}
}

// find returns the rule of the bucket that decides, or best when that is
// better. rest is what follows the rules' first piece in the target.
func (b *bucket) find(e *engine, rest string, best int) int {
	for _, id := range b.rules {
		best = e.tryWild(id, rest, best)
	}
	for _, size := range b.sizes {
		if int(size) > len(rest) {
			break
		}
		w := b.tails.walk(e.text, rest[len(rest)-int(size):])
		for m, value, used, ok := w.next(); ok; m, value, used, ok = w.next() {
			if m == markOpen && used == int(size) {
				best = b.try(e, value, rest, best)
			}
		}
	}
	if b.keyed == 0 {
		return best
	}
	if len(rest) > longTarget {
		return b.findLong(e, rest, best)
	}
	for i := range len(rest) {
		if c := rest[i]; b.starts[c>>6]&(1<<(c&63)) == 0 {
			continue
		}
		w := b.keys.walk(e.text, rest[i:])
		for _, value, _, ok := w.next(); ok; _, value, _, ok = w.next() {
			best = b.try(e, value, rest, best)
		}
	}
	return best
}

// try tries the rules of a run.
func (b *bucket) try(e *engine, start uint32, rest string, best int) int {
	for i := start; ; i++ {
		id := b.posted[i]
		best = e.tryWild(id&^lastPosted, rest, best)
		if id&lastPosted != 0 {
			return best
		}
	}
}

// longTarget is from which size on a target deserves an index of its own.
const longTarget = 512

func (b *bucket) findLong(e *engine, rest string, best int) int {
	for _, id := range b.posted {
		best = e.tryWild(id&^lastPosted, rest, best)
	}
	return best
}
