package rules

import "iter"

// carried is a line beyond RFC 9309's own that is kept: its value is a place
// in the engine's text.
type carried struct {
	value uint32
	line  uint32
	group uint32 // 1 + the group it stands in; 0 for the file
	size  uint16
	kind  FieldKind
}

// carry keeps a field that has a meaning to some.
func (p *parser) carry(kind FieldKind, value span) {
	e := p.engine
	c := carried{
		kind: kind, value: uint32(value.from), size: uint16(value.to - value.from),
		line: uint32(p.lines.number),
	}
	if p.open && !kind.global() {
		c.group = uint32(len(e.groups))
	}
	e.fields = append(e.fields, c)
}

// Field is a line of a robots.txt beyond RFC 9309's own. Access ignores it.
type Field struct {
	Kind  FieldKind
	Value string // as the site wrote it: hostile until escaped; may be empty
	Line  int    // from 1
	// Groups are the values of the user-agent lines of the group the field
	// stands in; nil when it speaks for the whole file.
	Groups []string
}

// Fields returns the lines that are neither user-agent nor rule and have a
// meaning to some, in the order of the file. Sitemap, Host, Clean-param and
// License speak for the whole file wherever they stand; the others for the
// group in which they stand, and for the file before any group.
func (p *Policy) Fields() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		if p.engine == nil {
			return
		}
		groups := p.engine.agentLines()
		for i := range p.engine.fields {
			if !yield(p.engine.field(i, groups)) {
				return
			}
		}
	}
}

// FieldsFor returns the lines of one kind that concern agent, in the order of
// the file: those of the groups that govern it, and those of the whole file. A
// group that names the agent inherits nothing from the star group. The groups
// of several names an agent goes by are all counted.
func (p *Policy) FieldsFor(agent *Agent, kind FieldKind) []Field {
	if p.engine == nil {
		return nil
	}
	e := p.engine
	governs := make(map[uint32]bool)
	for _, c := range e.governing(agent) {
		for _, g := range e.groupsOf(c.at) {
			governs[g+1] = true
		}
	}
	var all []Field
	var groups map[uint32][]string
	for i, f := range e.fields {
		if f.kind != kind || f.group != 0 && !governs[f.group] {
			continue
		}
		if groups == nil {
			groups = e.agentLines()
		}
		all = append(all, e.field(i, groups))
	}
	return all
}

func (e *engine) field(i int, groups map[uint32][]string) Field {
	c := e.fields[i]
	return Field{
		Kind: c.kind, Value: e.text[c.value:][:c.size], Line: int(c.line),
		Groups: groups[c.group],
	}
}

// agentLines returns the values of the user-agent lines by 1 + their group.
func (e *engine) agentLines() map[uint32][]string {
	all := make(map[uint32][]string)
	for i, n := range e.names {
		all[n.group+1] = append(all[n.group+1], e.nameValue(i))
	}
	return all
}

// size returns how many bytes the engine takes.
func (e *engine) size() int {
	n := len(e.text) + cap(e.rules)*12 + cap(e.groups)*4 + cap(e.names)*16 + cap(e.fields)*16
	for _, s := range e.sets {
		n += 32 + 4*cap(s.groups) + s.index.size()
	}
	return n
}

func (x *index) size() int {
	n := 72 + x.literal.size()
	for i := range x.buckets {
		n += x.buckets[i].size()
	}
	return n
}
