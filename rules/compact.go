package rules

import (
	"cmp"
	"slices"
	"strings"
)

// crowded reports whether the rules take more memory than the file, as those of
// a list of one-letter paths do.
func (e *engine) crowded() bool { return 12*len(e.rules)+e.extra.Len() > len(e.text) }

// compact drops the rules that their group has already, which decide nothing,
// and what was packed for them.
func (e *engine) compact() {
	packed := e.text + e.extra.String()
	drop := e.repeated(packed)
	e.extra = strings.Builder{}
	kept := e.rules[:0]
	g := 0
	for id, r := range e.rules {
		for g < len(e.groups) && e.groups[g] == uint32(id) {
			e.groups[g] = uint32(len(kept))
			g++
		}
		if drop[id] {
			continue
		}
		if r.line&rulePacked != 0 {
			r.pattern = e.pack(packedPlace(packed, &r), packed[r.pattern:][:r.size])
		}
		kept = append(kept, r)
	}
	for ; g < len(e.groups); g++ {
		e.groups[g] = uint32(len(kept))
	}
	e.rules = kept
	for i, n := range e.names {
		if int(n.text) >= len(e.text) {
			e.names[i].text = uint32(len(e.text) + e.extra.Len())
			e.extra.WriteString(packed[n.text:][:n.size])
		}
	}
}

// repeated marks the rules that their group has already, on an earlier line or
// earlier on theirs.
func (e *engine) repeated(packed string) []bool {
	pattern := func(id uint32) string { return packed[e.rules[id].pattern:][:e.rules[id].size] }
	const flags = ^uint32(ruleLine)
	drop := make([]bool, len(e.rules))
	for g := range e.groups {
		ids := e.rulesOf([]uint32{uint32(g)})
		slices.SortStableFunc(ids, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(e.rules[a].line&flags, e.rules[b].line&flags), strings.Compare(pattern(a), pattern(b)))
		})
		for i := 1; i < len(ids); i++ {
			a, b := ids[i-1], ids[i]
			drop[b] = (e.rules[a].line^e.rules[b].line)&flags == 0 && pattern(a) == pattern(b)
		}
	}
	return drop
}
