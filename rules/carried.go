package rules

// carried is a line beyond RFC 9309's own that is kept: its value is a place
// in the engine's text.
type carried struct {
	kind  FieldKind
	size  uint16
	value uint32
	line  uint32
	group uint32 // 1 + the group it stands in; 0 for the file
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

// size returns how many bytes the engine takes.
func (e *engine) size() int {
	n := len(e.text) + cap(e.rules)*12 + cap(e.groups)*4 + cap(e.names)*16 + cap(e.fields)*20
	for _, s := range e.sets {
		n += 32 + 4*cap(s.groups) + s.index.size()
	}
	return n
}

func (x *index) size() int {
	n := 96 + 4*cap(x.small) + x.literal.size()
	for _, b := range x.buckets {
		n += 200 + 4*cap(b.rules) + 4*cap(b.posted) + 2*cap(b.sizes) + b.keys.size() + b.tails.size()
	}
	return n
}
