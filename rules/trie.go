package rules

import (
	"cmp"
	"slices"
	"strings"
)

// trie finds which of a set of keys begin a text, in time that depends on the
// text and not on how many keys there are. It is a radix tree whose labels are
// places in the engine's text; the children of a node lie side by side, with
// their first octets in a string of their own, to be searched at once.
type trie struct {
	nodes []node
	first []byte // of the label of each node
}

// node is one node. Its marks say what ends here: a leaf has one mark and its
// value, any other node has for each mark a leaf without label, before its
// other children.
type node struct {
	label uint32 // where the label begins
	ref   uint32 // leaf: value of the key; else the first child
	meta  uint32 // size of the label, count of children, marks
}

// A mark is what a key is the beginning of.
type mark uint32

// The marks of a key, in the order in which leaves lie.
const (
	markOpen mark = 1 << (29 + iota) // any text that begins with the key
	markEnd                          // the key alone
	markStar                         // a bucket of wildcard rules
)

const (
	labelBits = 15 // MaxLine fits
	countBits = 9  // 256 octets and three marks fit
	labelMask = 1<<labelBits - 1
	countMask = 1<<countBits - 1
)

func (n node) labelSize() int { return int(n.meta & labelMask) }
func (n node) children() int  { return int(n.meta >> labelBits & countMask) }

// key is a key to be put into a trie: a place in the engine's text.
type key struct {
	at    uint32
	value uint32
	size  uint16
	mark  mark
}

func (k key) in(text string) string { return text[k.at:][:k.size] }

// newTrie builds a trie. Of keys with equal text and mark the one is kept whose
// value is better. keys are sorted in place.
func newTrie(text string, keys []key, better func(a, b uint32) bool) trie {
	slices.SortFunc(keys, func(a, b key) int {
		switch c := strings.Compare(a.in(text), b.in(text)); {
		case c != 0:
			return c
		case a.mark != b.mark:
			return cmp.Compare(a.mark, b.mark)
		case better(a.value, b.value):
			return -1
		default:
			return 1
		}
	})
	keys = slices.CompactFunc(keys, func(a, b key) bool { return a.mark == b.mark && a.in(text) == b.in(text) })
	if len(keys) == 0 {
		return trie{}
	}
	t := builder{text: text}
	t.nodes = make([]node, 1, len(keys)+len(keys)/4+4)
	t.first = make([]byte, 1, cap(t.nodes))
	t.build(0, keys, 0)
	return trie{slices.Clip(t.nodes), slices.Clip(t.first)}
}

// builder is a trie in the making.
type builder struct {
	trie
	text string
}

// build makes the node at place i of keys that share their first depth octets.
func (t *builder) build(i int, keys []key, depth int) {
	head, tail := keys[0].in(t.text), keys[len(keys)-1].in(t.text)
	end := depth
	for end < len(head) && end < len(tail) && head[end] == tail[end] {
		end++
	}
	n := node{label: keys[0].at + uint32(depth), meta: uint32(end - depth)}
	if len(keys) == 1 {
		n.meta |= uint32(keys[0].mark)
		n.ref = keys[0].value
		t.nodes[i] = n
		return
	}
	count, own := 0, 0
	for j, k := range keys {
		if int(k.size) == end {
			n.meta |= uint32(k.mark)
			own++
			count++
		} else if j == own || t.octet(keys[j-1], end) != t.octet(k, end) {
			count++
		}
	}
	child := len(t.nodes)
	n.ref = uint32(child)
	n.meta |= uint32(count) << labelBits
	t.nodes[i] = n
	t.nodes = append(t.nodes, make([]node, count)...)
	t.first = append(t.first, make([]byte, count)...)
	for _, k := range keys[:own] {
		t.nodes[child] = node{label: k.at, ref: k.value, meta: uint32(k.mark)}
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
func (t *trie) size() int { return cap(t.nodes)*12 + cap(t.first) }

// walker walks down a trie along a text and stops at each mark.
type walker struct {
	trie  *trie
	keys  string // the engine's text
	text  string // what is walked along
	at    int    // how much of it the marks so far have used
	node  int32  // to be entered next; -1: done
	leaf  uint32 // the next mark's leaf in a node that was entered
	left  mark   // the marks of that node not yet returned
	steps int    // how many nodes were entered
}

func (t *trie) walk(keys, text string) walker {
	w := walker{trie: t, keys: keys, text: text}
	if len(t.nodes) == 0 {
		w.node = -1
	}
	return w
}

// next returns the next mark on the way, its value, and how much of the text
// its key takes.
func (w *walker) next() (m mark, value uint32, used int, ok bool) {
	for {
		if w.left != 0 {
			m = w.left & -w.left
			w.left &^= m
			value = w.trie.nodes[w.leaf].ref
			w.leaf++
			if m == markEnd && w.at != len(w.text) {
				continue
			}
			return m, value, w.at, true
		}
		if w.node < 0 {
			return 0, 0, 0, false
		}
		n := w.trie.nodes[w.node]
		w.steps++
		size := n.labelSize()
		if len(w.text)-w.at < size || w.keys[n.label:int(n.label)+size] != w.text[w.at:w.at+size] {
			w.node = -1
			return 0, 0, 0, false
		}
		w.at += size
		count := n.children()
		if count == 0 {
			w.node = -1
			m = mark(n.meta &^ (1<<29 - 1))
			if m == markEnd && w.at != len(w.text) {
				return 0, 0, 0, false
			}
			return m, n.ref, w.at, true
		}
		w.enter(n, count)
	}
}

// enter notes the marks of a node and finds the child to go on with.
func (w *walker) enter(n node, count int) {
	w.leaf = n.ref
	w.left = mark(n.meta &^ (1<<29 - 1))
	from := int(n.ref)
	to := from + count
	for m := w.left; m != 0; m &= m - 1 {
		from++
	}
	w.node = -1
	if w.at == len(w.text) {
		return
	}
	c := w.text[w.at]
	for i := from; i < to; i++ {
		if f := w.trie.first[i]; f >= c {
			if f == c {
				w.node = int32(i)
			}
			return
		}
	}
}
