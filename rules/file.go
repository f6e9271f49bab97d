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
	var position [positionSize]byte
	binary.LittleEndian.PutUint32(position[:], uint32(at.From))
	binary.LittleEndian.PutUint16(position[4:], uint16(at.To-at.From))
	f.extra.Write(position[:])
	f.extra.Write(packed)
	return uint32(len(f.text) + f.extra.Len() - len(packed))
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

// packedPosition returns where the line of a packed rule is.
func packedPosition(text string, r *rule) Part {
	position := []byte(text[r.pattern-positionSize : r.pattern])
	from := int(binary.LittleEndian.Uint32(position))
	return Part{from, from + int(binary.LittleEndian.Uint16(position[4:]))}
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

// pattern returns the pattern of a rule.
func (f *file) pattern(r *rule) string { return f.text[r.pattern:][:r.size] }

// ruleText returns the line of a rule as the site wrote it, and its number.
func (f *file) ruleText(id int) (text string, line int) {
	r := &f.rules[id]
	line = int(r.line & ruleLine)
	if r.line&rulePacked != 0 {
		at := packedPosition(f.text, r)
		return f.text[at.From:at.To], line
	}
	end := int(r.pattern) + int(r.size)
	if r.line&ruleEnds != 0 {
		end++
	}
	from := max(f.start, 1+strings.LastIndexAny(f.text[:end], "\r\n"))
	return strings.Trim(f.text[from:end], " \t\v\f"), line
}

// name is one name on a user-agent line: two parts of the file's text, that of
// the name, in whatever case, and that of the value that contains it.
type name struct {
	text, value     uint32
	size, valueSize uint16
	group           uint32
}

func (f *file) nameText(i int) string  { return f.text[f.names[i].text:][:f.names[i].size] }
func (f *file) nameValue(i int) string { return f.text[f.names[i].value:][:f.names[i].valueSize] }

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
		return compareFold(f.text[n.text:][:n.size], clean)
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

// size returns how many bytes of memory f takes.
func (f *file) size() int {
	return allocated(len(f.text)) + allocated(cap(f.rules)*ruleSize) + allocated(cap(f.groups)*4) +
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
