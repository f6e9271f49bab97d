package rules

import (
	"slices"
	"strings"
)

// bucket is the wildcard rules that share their first piece.
type bucket struct {
	rules []uint32 // when they are few, and looked at one by one
	large *largeBucket
}

// smallBucket is up to how many wildcard rules are looked at one by one.
const smallBucket = 8

// largeBucket finds those of many wildcard rules that are worth a look: the
// longest of a rule's later pieces must occur in the rest of the target, and
// when it is bound to the end, there.
type largeBucket struct {
	posted []uint32  // runs of rules of one piece; the last of a run carries lastPosted
	floats trie      // of the pieces; the value is a place in posted
	tails  trie      // of those bound to the end; the same
	sizes  []uint16  // of the pieces bound to the end, ascending
	starts [4]uint64 // the octets with which the others begin
	one    uint32    // one of the rules
	keyed  int       // how many rules floats leads to
	crowd  bool      // a run is long: what was tried has to be remembered
}

const (
	lastPosted = 1 << 31
	// longRun is from where on trying a run of rules twice costs more than
	// remembering that it was tried.
	longRun = 8
)

// newBucket makes the bucket of the wildcard rules that wild leads to.
func newBucket(e *engine, wild []key) bucket {
	if len(wild) <= smallBucket {
		ids := make([]uint32, len(wild))
		for i, k := range wild {
			ids[i] = k.value
		}
		return bucket{rules: ids}
	}
	b := &largeBucket{one: wild[0].value}
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
	b.sizes = fit(slices.Compact(b.sizes))
	b.keyed = len(floats)
	b.floats, b.tails = b.post(e.text, floats), b.post(e.text, tails)
	b.posted = fit(b.posted)
	return bucket{large: b}
}

// post makes the trie of keys whose values are rules, several of one text.
func (b *largeBucket) post(text string, keys []key) trie {
	slices.SortStableFunc(keys, func(a, b key) int { return strings.Compare(a.in(text), b.in(text)) })
	runs := keys[:0]
	for i := 0; i < len(keys); {
		k, n := keys[i], 1
		for i+n < len(keys) && keys[i+n].in(text) == k.in(text) {
			n++
		}
		if n > 1 {
			k.value = uint32(len(b.posted)) | manyRef
			for _, other := range keys[i : i+n] {
				b.posted = append(b.posted, other.value)
			}
			b.posted[len(b.posted)-1] |= lastPosted
		}
		b.crowd = b.crowd || n > longRun
		runs = append(runs, k)
		i += n
	}
	return newTrie(text, runs, func(a, b uint32) bool { return a < b })
}

// find returns the rule of the bucket that decides, or best when that is
// better. rest is what follows the rules' first piece in the target.
func (b *bucket) find(e *engine, rest string, best int) int {
	for _, id := range b.rules {
		best = e.tryWild(id, rest, best)
	}
	if b.large == nil {
		return best
	}
	best = b.large.findTails(e, rest, best)
	if b.large.keyed == 0 {
		return best
	}
	return b.large.findFloats(e, rest, best)
}

// findTails tries the rules whose piece stands at the end of rest.
func (b *largeBucket) findTails(e *engine, rest string, best int) int {
	for _, size := range b.sizes {
		if int(size) > len(rest) {
			return best
		}
		w := b.tails.walk(e, b, rest[len(rest)-int(size):])
		for {
			value, used, ok := w.step()
			if !ok {
				break
			}
			if used == int(size) {
				best = b.try(e, value, rest, best, nil)
			}
		}
	}
	return best
}

// findFloats tries the rules whose piece stands anywhere in rest.
func (b *largeBucket) findFloats(e *engine, rest string, best int) int {
	var m *memory
	if b.crowd {
		m = newMemory(rest, b.keyed, len(b.posted))
		defer memories.Put(m)
	}
	const depth = 64 // steps for each octet of rest, beyond which all rules are tried
	steps := depth * (len(rest) + depth)
	for i := range len(rest) {
		if c := rest[i]; b.starts[c>>6]&(1<<(c&63)) == 0 {
			continue
		}
		w := b.floats.walk(e, b, rest[i:])
		for {
			value, _, ok := w.step()
			if !ok {
				break
			}
			if m == nil || value&manyRef == 0 || m.first(value&^manyRef) {
				best = b.try(e, value, rest, best, m)
			}
		}
		if steps -= w.steps; steps < 0 {
			return b.tryAll(e, rest, best, m)
		}
	}
	return best
}

// try tries a rule, or the rules of a run.
func (b *largeBucket) try(e *engine, value uint32, rest string, best int, m *memory) int {
	if value&manyRef == 0 {
		return tryOne(e, value, rest, best, m)
	}
	for i := value &^ manyRef; ; i++ {
		best = tryOne(e, b.posted[i]&^lastPosted, rest, best, m)
		if b.posted[i]&lastPosted != 0 {
			return best
		}
	}
}

func tryOne(e *engine, id uint32, rest string, best int, m *memory) int {
	if e.better(int(id), best) && (m == nil || m.possible(e, id)) {
		return e.tryWild(id, rest, best)
	}
	return best
}

// tryAll tries all rules that floats leads to.
func (b *largeBucket) tryAll(e *engine, rest string, best int, m *memory) int {
	for _, ref := range b.floats.refs {
		if ref&leafRef != 0 {
			best = b.try(e, ref&^leafRef, rest, best, m)
		}
	}
	return best
}

// key returns the piece under which a rule or a run of rules is found.
func (b *largeBucket) key(e *engine, value uint32) (text string, whole bool) {
	if value&manyRef != 0 {
		value = b.posted[value&^manyRef] &^ lastPosted
	}
	k, _ := e.longestPiece(value)
	return k.in(e.text), false
}

// any returns one of the bucket's rules: their first pieces are the same.
func (b *bucket) any() uint32 {
	if b.large != nil {
		return b.large.one
	}
	return b.rules[0]
}

func (b *bucket) size() int {
	n := 32 + 4*cap(b.rules)
	if l := b.large; l != nil {
		n += 192 + 4*cap(l.posted) + 2*cap(l.sizes) + l.floats.size() + l.tails.size()
	}
	return n
}
