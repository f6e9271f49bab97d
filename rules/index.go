package rules

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// index finds the rule that decides about a target among the rules of the groups that
// one name merges, in time that depends on the target and hardly on their number.
//
// It is a trie of the first pieces of the rules: those that begin a target are on one
// way through it. Where more than fewWild rules with wildcards have the same first
// piece, they are in grams, and the trie has gramsHere in their place.
type index struct {
	nodes []node
	refs  []uint32 // of each node: the rules whose first piece ends there, then the children
	first []byte   // of each child the octet that it begins with
	grams grams
}

// node is a place in the trie where the first pieces of several rules end or part.
type node struct {
	label    uint32 // the place in the text of what leads to the node
	refs     uint32 // the place of the first of its refs
	own      uint32 // how many of the refs are rules
	size     uint16 // octets of the label
	children uint16
}

// A ref is the place of a node, or a rule with leafRef.
const (
	leafRef   = 1 << 31
	gramsHere = 1 << 30
)

const (
	fewRules = 16 // up to so many rules, trying each costs less than an index
	fewWild  = 8  // up to so many rules with one first piece, trying each costs less than a search for grams
)

// find returns the rule that decides about target; -1 when none matches.
func (x *index) find(s *judging, f *file, target string) int {
	best, from, at := -1, -1, 0
	for ref := x.refs[0]; ; {
		if ref&leafRef != 0 {
			best = s.try(f, ref&^leafRef, target, best)
			break
		}
		n := &x.nodes[ref]
		s.steps -= stepsPerNode + int(n.size)/octetsPerStep
		if !strings.HasPrefix(target[at:], f.text[n.label:][:n.size]) {
			break
		}
		at += int(n.size)
		children := n.refs + n.own
		for _, own := range x.refs[n.refs:children] {
			if own != gramsHere {
				best = s.try(f, own, target, best)
			} else if from < 0 {
				from = at
			}
		}
		if at == len(target) {
			break
		}
		i := bytes.IndexByte(x.first[children:][:n.children], target[at])
		if i < 0 {
			break
		}
		ref = x.refs[int(children)+i]
	}
	if from >= 0 {
		best = x.grams.find(s, f, target, from, best)
	}
	return best
}

// size returns how many bytes of memory x takes.
func (x *index) size() int {
	return 144 + 16*cap(x.nodes) + 4*cap(x.refs) + cap(x.first) + 4*cap(x.grams.starts) + 4*cap(x.grams.rules)
}

// builder makes an index.
type builder struct {
	*index
	file *file
	wild []key // the rules for grams
}

// key is the first piece of a rule.
type key struct {
	at, rule uint32
	size     uint16
	octet    int16 // the one that it is sorted by
}

// newIndex returns the index of rules, at least one; the text of f must be complete.
func newIndex(f *file, rules []uint32) *index {
	b := builder{index: new(index), file: f}
	keys := make([]key, len(rules))
	for i, id := range rules {
		keys[i] = key{at: f.rules[id].pattern, rule: id, size: uint16(len(f.firstPiece(id)))}
	}
	b.refs, b.first = make([]uint32, 1, len(keys)+len(keys)/4+4), make([]byte, 1, len(keys)+len(keys)/4+4)
	b.build(0, keys, 0)
	b.nodes, b.refs, b.first = fit(b.nodes), fit(b.refs), fit(b.first)
	b.grams = newGrams(f, b.wild)
	return b.index
}

// build makes what refs has at a place: the rules of keys, which have their first depth
// octets in common.
func (b *builder) build(place int, keys []key, depth int) {
	if len(keys) == 1 {
		b.refs[place] = keys[0].rule | leafRef
		return
	}
	end := b.common(keys, depth)
	for i := range keys {
		k := &keys[i]
		k.octet = -1 // the rule is one of the node itself
		if int(k.size) > end {
			k.octet = int16(b.file.text[int(k.at)+end])
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return int(a.octet) - int(b.octet) })
	own, children := 0, 0
	for i, k := range keys {
		if k.octet < 0 {
			own++
		} else if i == own || k.octet != keys[i-1].octet {
			children++
		}
	}
	n := node{label: keys[0].at + uint32(depth), refs: uint32(len(b.refs)), size: uint16(end - depth), children: uint16(children)}
	b.addOwn(keys[:own])
	child := len(b.refs)
	n.own = uint32(child) - n.refs
	b.refs[place] = uint32(len(b.nodes))
	b.nodes = append(b.nodes, n)
	b.refs = append(b.refs, make([]uint32, children)...)
	b.first = append(b.first, make([]byte, len(b.refs)-len(b.first))...)
	for keys = keys[own:]; len(keys) > 0; child++ {
		size := 1
		for size < len(keys) && keys[size].octet == keys[0].octet {
			size++
		}
		b.first[child] = byte(keys[0].octet)
		b.build(child, keys[:size], end)
		keys = keys[size:]
	}
}

// common returns how many octets all of keys have in common. It is at least depth.
func (b *builder) common(keys []key, depth int) int {
	head := b.file.text[keys[0].at:][:keys[0].size]
	for _, k := range keys[1:] {
		text := b.file.text[k.at:][:k.size]
		if !strings.HasPrefix(text[depth:], head[depth:]) {
			n := depth
			for n < len(text) && n < len(head) && text[n] == head[n] {
				n++
			}
			head = head[:n]
		}
	}
	return len(head)
}

// addOwn adds the rules of keys, whose first pieces are equal, to refs.
func (b *builder) addOwn(keys []key) {
	wild := 0
	for _, k := range keys {
		if b.file.rules[k.rule].line&ruleWild != 0 {
			wild++
		}
	}
	from := len(b.refs)
	if wild > fewWild {
		b.refs = append(b.refs, gramsHere)
		from++
	}
	for _, k := range keys {
		if wild > fewWild && b.file.rules[k.rule].line&ruleWild != 0 {
			b.wild = append(b.wild, k)
		} else {
			b.refs = append(b.refs, k.rule)
		}
	}
	b.refs = b.refs[:from+len(b.file.withoutCopies(b.refs[from:]))]
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
