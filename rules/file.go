package rules

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// file is a robots.txt as a profile reads it. Everything that is text is in one
// string: the file itself, and after it what differs from the site's own
// spelling.
type file struct {
	differences
	text   string
	packed *blocks         // if not nil, text is only what follows it
	start  int             // of the file in text, after a byte order mark
	rules  []rule          // in the order of the file
	groups []uint32        // the first rule of each group
	names  []name          // sorted; the lines of one name are adjacent
	fields []fieldLine     // in the order of the file
	words  int             // in the names of several words
	extra  strings.Builder // while parsing: what will be added to text
}

// pack adds a packed pattern to the text, and before it the position of its line.
func (f *file) pack(at Part, packed []byte) uint32 {
	f.extra.Write(appendPosition(nil, at))
	f.extra.Write(packed)
	return uint32(len(f.text) + f.extra.Len() - len(packed))
}

// appendPosition appends the position of a line as it is before a packed pattern.
func appendPosition(b []byte, at Part) []byte {
	return binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint32(b, uint32(at.From)), uint16(at.To-at.From))
}

// positionIn reverses appendPosition.
func positionIn(text string) Part {
	from := int(binary.LittleEndian.Uint32([]byte(text[:4])))
	return Part{from, from + int(binary.LittleEndian.Uint16([]byte(text[4:positionSize])))}
}

const (
	positionSize = 6
	ruleSize     = 12 // of a rule in memory
)

// repeats reports whether r, with that packed pattern, is equal to the last
// rule, and in its group.
func (f *file) repeats(r *rule, packed []byte) bool {
	last := len(f.rules) - 1
	if last < 0 || f.groups[len(f.groups)-1] > uint32(last) {
		return false
	}
	before := &f.rules[last]
	if (before.line^r.line)&^uint32(ruleLine) != 0 || int(before.size) != len(packed) {
		return false
	}
	text, at := f.text, int(before.pattern)
	if before.line&rulePacked != 0 {
		text, at = f.extra.String(), at-len(f.text)
	} else if before.line&ruleWild != 0 {
		return false // its wildcards are "*", not codeStar
	}
	return text[at:][:before.size] == view(packed)
}

// part returns size octets of the text from at on. Where it is packed, that may take steps.
func (f *file) part(at, size int, steps *int) string {
	if f.packed == nil {
		return f.text[at:][:size]
	}
	if at >= f.packed.size {
		return f.text[at-f.packed.size:][:size]
	}
	return f.packed.part(at, at+size, steps)
}

// finish completes the file when all lines are read.
func (f *file) finish() {
	if f.extra.Len() > 0 {
		f.text += f.extra.String()
		f.extra = strings.Builder{}
	}
	f.rules, f.groups, f.fields = fit(f.rules), fit(f.groups), fit(f.fields)
	f.sortNames()
}

// fit returns s without unused capacity.
func fit[T any](s []T) []T {
	if cap(s)-len(s) <= len(s)/16 {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// rulesOf returns the rules of groups, in the order of the file.
func (f *file) rulesOf(groups []uint32) []uint32 {
	var all []uint32
	for _, g := range groups {
		for id := f.groups[g]; id < f.groupEnd(g); id++ {
			all = append(all, id)
		}
	}
	return all
}

func (f *file) groupEnd(g uint32) uint32 {
	if int(g)+1 < len(f.groups) {
		return f.groups[g+1]
	}
	return uint32(len(f.rules))
}

// compress replaces the text of f, which is that of s, by its blocks. What is added to it is kept as
// it is: there are the patterns with wildcards, since a decision looks at many of them, and the names.
func (f *file) compress(s *Snapshot) {
	text := f.text
	var added strings.Builder
	added.WriteString(text[s.Size:])
	f.rules, f.names = append([]rule(nil), f.rules...), append([]name(nil), f.names...)
	for i := range f.rules {
		if r := &f.rules[i]; r.line&ruleWild != 0 && r.line&rulePacked == 0 {
			added.Write(appendPosition(nil, f.lineOf(r)))
			at := s.Size + added.Len()
			added.WriteString(strings.ReplaceAll(f.pattern(r), "*", string([]byte{codeStar})))
			r.pattern, r.line = uint32(at), r.line|rulePacked
		}
	}
	for i := range f.names {
		if n := &f.names[i]; int(n.text) < s.Size {
			at := s.Size + added.Len()
			added.WriteString(f.nameText(i))
			n.text = uint32(at)
		}
	}
	f.text, f.packed = strings.Clone(added.String()), &blocks{packed: s.blocks, size: s.Size}
}

// pattern returns the pattern of a rule.
func (f *file) pattern(r *rule) string { return f.part(int(r.pattern), int(r.size), nil) }

// ruleText returns the line of a rule as the site wrote it, and its number.
func (f *file) ruleText(id int) (text string, line int) {
	r := &f.rules[id]
	at := f.lineOf(r)
	return f.part(at.From, at.To-at.From, nil), int(r.line & ruleLine)
}

// lineOf returns where the line of a rule is.
func (f *file) lineOf(r *rule) Part {
	if r.line&rulePacked != 0 {
		return positionIn(f.part(int(r.pattern)-positionSize, positionSize, nil))
	}
	end := int(r.pattern) + int(r.size)
	if r.line&ruleEnds != 0 {
		end++
	}
	from := max(f.start, end-MaxLine)
	text := f.part(from, end-from, nil)
	at := Part{1 + strings.LastIndexAny(text, "\r\n"), len(text)}.trim(text)
	return Part{from + at.From, from + at.To}
}

// name is one name on a user-agent line: two parts of the file's text, that of
// the name, in whatever case, and that of the value that contains it.
type name struct {
	text, value     uint32
	size, valueSize uint16
	group           uint32
}

func (f *file) nameText(i int) string { return f.part(int(f.names[i].text), int(f.names[i].size), nil) }
func (f *file) nameValue(i int) string {
	return f.part(int(f.names[i].value), int(f.names[i].valueSize), nil)
}

// sortNames brings the lines of one name together, in the order of the file.
func (f *file) sortNames() {
	text := func(n name) string { return f.text[n.text:][:n.size] }
	slices.SortFunc(f.names, func(a, b name) int {
		return cmp.Or(compareFold(text(a), text(b)), cmp.Compare(a.group, b.group), cmp.Compare(a.value, b.value))
	})
	f.names = fit(slices.CompactFunc(f.names, func(a, b name) bool {
		return a.group == b.group && compareFold(text(a), text(b)) == 0
	}))
}

// named returns where the lines of a name begin; -1 when no group has it.
func (f *file) named(clean string) int {
	i, ok := slices.BinarySearchFunc(f.names, clean, func(n name, clean string) int {
		return compareFold(f.part(int(n.text), int(n.size), nil), clean)
	})
	if !ok {
		return -1
	}
	return i
}

// nameEnd returns where the lines of the name at i end.
func (f *file) nameEnd(i int) int {
	j := i + 1
	for j < len(f.names) && compareFold(f.nameText(i), f.nameText(j)) == 0 {
		j++
	}
	return j
}

// groupsOf returns the groups of the name at i, in the order of the file.
func (f *file) groupsOf(i int) []uint32 {
	var groups []uint32
	for _, n := range f.names[i:f.nameEnd(i)] {
		groups = append(groups, n.group)
	}
	return groups
}

// size returns how many octets of memory f takes.
func (f *file) size() int {
	n := 0
	if f.packed != nil {
		n = blockSize + 24*len(f.packed.packed)
	}
	return n + allocated(len(f.text)) + allocated(cap(f.rules)*ruleSize) + allocated(cap(f.groups)*4) +
		allocated(cap(f.names)*16) + allocated(cap(f.fields)*16)
}

// allocated returns about how many octets of memory n octets take: more than 32 KiB take
// whole pages of 8 KiB, fewer the next of the sizes that the allocator has.
func allocated(n int) int {
	const page = 8 << 10
	if n > 4*page {
		return (n + page - 1) / page * page
	}
	return n + n/16
}
