package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Bounds of what is read about speed: honest files have one line each.
const (
	maxWishes     = 16 // groups that govern one agent
	maxWishLines  = 32 // of one group
	maxGroupNames = 80 // octets of Wish.Group
)

// Wish is what one group of a robots.txt asks about speed of the agents that it
// governs: Crawl-delay, Request-rate and Visit-time. It is immutable.
type Wish struct {
	// Group tells the group from the others of its file, and is the same in
	// every copy of it: the names of its user-agent lines, in lower case and in
	// order. Empty for lines that stand before any group.
	Group string

	lines []wishLine
}

// wishLine is one line, understood.
type wishLine struct {
	field  Field
	delay  time.Duration
	window Window
}

// Delay returns the time between two requests that is asked for at t: the
// longest of all lines that hold then, and the line it stands in. 0: none is.
func (w *Wish) Delay(t time.Time) (d time.Duration, by Field) {
	for i := range w.lines {
		l := &w.lines[i]
		if l.field.Kind != VisitTime && l.delay > d && l.window.Contains(t) {
			d, by = l.delay, l.field
		}
	}
	return d, by
}

// Welcome returns from when on visits are welcome, not before t, and the line
// that says so; t itself and the zero Field when they are at t. Of several
// windows any will do.
func (w *Wish) Welcome(t time.Time) (from time.Time, by Field) {
	for i := range w.lines {
		l := &w.lines[i]
		if l.field.Kind != VisitTime {
			continue
		}
		if l.window.Contains(t) {
			return t, Field{}
		}
		if next := l.window.next(t); by.Line == 0 || next.Before(from) {
			from, by = next, l.field
		}
	}
	if by.Line == 0 {
		return t, Field{}
	}
	return from, by
}

// next returns when the window begins after t.
func (w Window) next(t time.Time) time.Time {
	utc := t.UTC()
	day := time.Date(utc.Year(), utc.Month(), utc.Day(), 0, 0, 0, 0, time.UTC)
	begin := day.Add(time.Duration(w.From) * time.Minute)
	if begin.Before(utc) {
		begin = begin.Add(24 * time.Hour)
	}
	return t.Add(begin.Sub(utc))
}

// Wishes returns what the groups that govern agent ask about speed, one for each
// that does; nil when none does. It allocates nothing once it has met the agent,
// unless groups of several names govern it. The result must not be changed.
func (p *Policy) Wishes(agent *Agent) []*Wish {
	if p.engine == nil || !p.engine.paced {
		return nil
	}
	sets := p.engine.governing(agent)
	if len(sets) == 1 {
		return sets[0].wishes
	}
	var all []*Wish
	for i := range sets {
		for _, w := range sets[i].wishes {
			known := slices.ContainsFunc(all, func(o *Wish) bool { return o.Group == w.Group })
			if !known && len(all) < maxWishes {
				all = append(all, w)
			}
		}
	}
	if len(sets) == 0 {
		return p.engine.general
	}
	return all
}

// pacing reports whether lines of a kind are about speed.
func (k FieldKind) pacing() bool { return k == CrawlDelay || k == RequestRate || k == VisitTime }

// wishesOf returns what groups ask about speed, and with them the lines that
// stand before any group.
func (e *engine) wishesOf(groups []uint32) (all []*Wish) {
	if !e.paced {
		return nil
	}
	for i := range e.fields {
		f := &e.fields[i]
		if !f.kind.pacing() || f.group != 0 && !slices.Contains(groups, f.group-1) {
			continue
		}
		line, ok := e.wishLine(i)
		if !ok {
			continue
		}
		name := e.groupNames(f.group)
		at := slices.IndexFunc(all, func(w *Wish) bool { return w.Group == name })
		if at < 0 && len(all) < maxWishes {
			at = len(all)
			all = append(all, &Wish{Group: name})
		}
		if at >= 0 && len(all[at].lines) < maxWishLines {
			all[at].lines = append(all[at].lines, line)
		}
	}
	return all
}

// wishLine reads a field; ok is false when it asks for nothing.
func (e *engine) wishLine(i int) (l wishLine, ok bool) {
	l.field = e.field(i, nil)
	switch l.field.Kind {
	case CrawlDelay:
		l.delay, ok = l.field.Delay()
	case RequestRate:
		var r Rate
		r, ok = l.field.Rate()
		l.delay, l.window = r.Delay(), r.Window
	default:
		l.window, ok = l.field.Window()
		return l, ok && l.window.From != l.window.To
	}
	return l, ok && l.delay > 0
}

// groupNames returns the names of a group, given as carried.group has it.
func (e *engine) groupNames(group uint32) string {
	if group == 0 {
		return ""
	}
	var names []string
	for i, n := range e.names {
		if n.group == group-1 {
			names = append(names, strings.ToLower(e.nameText(i)))
		}
	}
	slices.Sort(names)
	all := strings.Join(names, ",")
	if len(all) > maxGroupNames {
		sum := sha256.Sum256([]byte(all))
		all = all[:maxGroupNames/2] + "~" + hex.EncodeToString(sum[:8])
	}
	return all
}
