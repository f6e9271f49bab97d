package rules

import (
	"cmp"
	"slices"
	"strings"
)

// trie finds which of a set of keys begin a text, in time that depends on the
// text and not on how many keys there are. It is a radix tree in little
// memory: labels are places in the engine's text, and a leaf is nothing but
// the value of its key, which tells where the key is written.
type trie struct {
	nodes []node
	refs  []uint32 // the children of all nodes, those of one side by side
	first []byte   // the first octet of each child's label
}

// node is a place in the tree with more than one child. The first of them may
// be keys that end here.
type node struct {
	label uint32 // where the label begins
	child uint32 // the first child in refs
	meta  uint32 // size of the label, count of children, how many of them end here
}

const (
	labelBits = 16 // what MaxLine octets are packed to fits
	countBits = 9  // 256 octets and three keys that end here fit
	labelMask = 1<<labelBits - 1
	countMask = 1<<countBits - 1

	leafRef = 1 << 31 // a child that is a leaf; the rest is the key's value
	manyRef = 1 << 30 // the value is not one rule but a place where several are
)

// keyring knows the keys of a trie by their values: their text, and whether
// they must be all of what they are compared with.
type keyring interface {
	key(e *engine, value uint32) (text string, whole bool)
}

// key is a key to be put into a trie: a place in the engine's text.
type key struct {
	at    uint32
	value uint32
	size  uint16
	whole bool
}

func (k key) in(text string) string { return text[k.at:][:k.size] }

// newTrie builds a trie. Of keys that are equal but for their values the one is
// kept whose value is better. keys are sorted in place.
func newTrie(text string, keys []key, better func(a, b uint32) bool) trie {
	slices.SortFunc(keys, func(a, b key) int {
		switch c := strings.Compare(a.in(text), b.in(text)); {
		case c != 0:
			return c
		case a.whole != b.whole:
			return cmp.Compare(whether(a.whole), whether(b.whole))
		case a.value&manyRef != b.value&manyRef:
			return cmp.Compare(a.value&manyRef, b.value&manyRef)
		case better(a.value, b.value):
			return -1
		default:
			return 1
		}
	})
	keys = slices.CompactFunc(keys, func(a, b key) bool {
		return a.whole == b.whole && (a.value^b.value)&manyRef == 0 && a.in(text) == b.in(text)
	})
	if len(keys) == 0 {
		return trie{}
	}
	t := builder{text: text}
	t.nodes = make([]node, 0, len(keys)/4+4)
	t.refs = make([]uint32, 1, len(keys)+len(keys)/4+4)
	t.first = make([]byte, 1, cap(t.refs))
	t.build(0, keys, 0)
	return trie{fit(t.nodes), fit(t.refs), fit(t.first)}
}

func whether(b bool) int {
	if b {
		return 1
	}
	return 0
}

// builder is a trie in the making.
type builder struct {
	trie
	text string
}

// build makes the child at place i of keys that share their first depth octets.
func (t *builder) build(i int, keys []key, depth int) {
	if len(keys) == 1 {
		t.refs[i] = keys[0].value | leafRef
		return
	}
	head, tail := keys[0].in(t.text), keys[len(keys)-1].in(t.text)
	end := depth
	for end < len(head) && end < len(tail) && head[end] == tail[end] {
		end++
	}
	own, count := 0, 0
	for j, k := range keys {
		if int(k.size) == end {
			own++
			count++
		} else if j == own || t.octet(keys[j-1], end) != t.octet(k, end) {
			count++
		}
	}
	child := len(t.refs)
	t.refs[i] = uint32(len(t.nodes))
	t.nodes = append(t.nodes, node{
		label: keys[0].at + uint32(depth), child: uint32(child),
		meta: uint32(end-depth) | uint32(count)<<labelBits | uint32(own)<<(labelBits+countBits),
	})
	t.refs = append(t.refs, make([]uint32, count)...)
	t.first = append(t.first, make([]byte, count)...)
	for _, k := range keys[:own] {
		t.refs[child] = k.value | leafRef
		child++
	}
	for rest := keys[own:]; len(rest) > 0; child++ {
		c := t.octet(rest[0], end)
		size := 1
		for size < len(rest) && t.octet(rest[size], end) == c {
			size++
		}
		t.first[child] = c
		t.build(child, rest[:size], end)
		rest = rest[size:]
	}
}

func (t *builder) octet(k key, i int) byte { return t.text[int(k.at)+i] }

// size returns how many bytes the trie takes.
func (t *trie) size() int { return cap(t.nodes)*12 + cap(t.refs)*4 + cap(t.first) }

// walker walks down a trie along a text and stops at each key that begins it.
type walker struct {
	engine *engine
	trie   *trie
	keys   keyring
	text   string
	at     int    // how much of the text led to the current node
	next   uint32 // the child to enter
	more   bool   // there is such a child
	own    uint32 // the next key that ends at the current node
	left   uint32 // how many keys end there yet
	steps  int    // how many children were entered
}

func (t *trie) walk(e *engine, keys keyring, text string) walker {
	w := walker{engine: e, trie: t, keys: keys, text: text}
	if len(t.refs) > 0 {
		w.next, w.more = t.refs[0], true
	}
	return w
}

// step returns the value of the next key on the way and how much of the text
// the key takes.
func (w *walker) step() (value uint32, used int, ok bool) {
	for {
		for w.left > 0 {
			ref := w.trie.refs[w.own] &^ leafRef
			w.own++
			w.left--
			if _, whole := w.keys.key(w.engine, ref); !whole || w.at == len(w.text) {
				return ref, w.at, true
			}
		}
		if !w.more {
			return 0, 0, false
		}
		w.steps++
		if w.next&leafRef != 0 {
			w.more = false
			value = w.next &^ leafRef
			text, whole := w.keys.key(w.engine, value)
			if !strings.HasPrefix(w.text[w.at:], text[w.at:]) || whole && len(text) != len(w.text) {
				return 0, 0, false
			}
			return value, len(text), true
		}
		w.enter(&w.trie.nodes[w.next])
	}
}

// enter goes to a node, if the text leads there, and finds the child to enter
// after it.
func (w *walker) enter(n *node) {
	w.more = false
	size := int(n.meta & labelMask)
	if !strings.HasPrefix(w.text[w.at:], w.engine.text[n.label:][:size]) {
		return
	}
	w.at += size
	w.own, w.left = n.child, n.meta>>(labelBits+countBits)
	if w.at == len(w.text) {
		return
	}
	from, to := n.child+w.left, n.child+n.meta>>labelBits&countMask
	c := w.text[w.at]
	for i, f := range w.trie.first[from:to] {
		if f >= c {
			w.next, w.more = w.trie.refs[from+uint32(i)], f == c
			return
		}
	}
}
