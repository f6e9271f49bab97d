package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Limits of the lines about speed; honest files have one line of a kind.
const (
	maxHints      = 16 // groups that govern one agent
	maxHintLines  = 32 // of one group
	maxGroupNames = 80 // octets of RateHint.Group
)

// RateHint is the limits of speed in one group of a robots.txt for the agents that
// it governs: Crawl-delay, Request-rate and Visit-time. It is immutable.
type RateHint struct {
	// Group identifies the group within its file, and is the same in every
	// copy of it: the names of its user-agent lines, in lower case and in
	// order. Empty for lines before any group.
	Group string

	lines []hintLine
}

// hintLine is one line, understood.
type hintLine struct {
	field Field
	Speed
}

// Delay returns the time between two requests that is required at t, the longest
// of all lines that are valid then, and its line; 0 when none is.
func (w *RateHint) Delay(t time.Time) (d time.Duration, by Field) {
	for i := range w.lines {
		if l := &w.lines[i]; l.field.Kind != VisitTime && l.Delay > d && l.Window.Contains(t) {
			d, by = l.Delay, l.field
		}
	}
	return d, by
}

// LongestDelay returns the time between two requests that hints require at t, the longest
// of all; 0 when none does.
func LongestDelay(hints []*RateHint, t time.Time) (d time.Duration) {
	for _, w := range hints {
		asked, _ := w.Delay(t)
		d = max(d, asked)
	}
	return d
}

// NextVisit returns the earliest time at or after t at which visits are allowed,
// and the line with that window; t itself and the zero Field when they are
// allowed at t. With several windows each of them allows visits.
func (w *RateHint) NextVisit(t time.Time) (from time.Time, by Field) {
	for i := range w.lines {
		l := &w.lines[i]
		if l.field.Kind != VisitTime {
			continue
		}
		if l.Window.Contains(t) {
			return t, Field{}
		}
		if next := l.Window.Next(t); by.Line == 0 || next.Before(from) {
			from, by = next, l.field
		}
	}
	if by.Line == 0 {
		return t, Field{}
	}
	return from, by
}

// pacing reports whether lines of a kind are about speed.
func (k FieldKind) pacing() bool { return k == CrawlDelay || k == RequestRate || k == VisitTime }

// hintsOf returns the limits of speed in lines, which hintLines has returned. names are
// those of their groups.
func (e *engine) hintsOf(lines []int, names map[uint32]string) (all []*RateHint) {
	for _, i := range lines {
		line, ok := e.hintLine(i)
		if !ok {
			continue
		}
		name := names[e.fields[i].group]
		at := slices.IndexFunc(all, func(w *RateHint) bool { return w.Group == name })
		if at < 0 && len(all) < maxHints {
			at = len(all)
			all = append(all, &RateHint{Group: name})
		}
		if at >= 0 && len(all[at].lines) < maxHintLines {
			all[at].lines = append(all[at].lines, line)
		}
	}
	return all
}

// hintLines returns the first fields about speed, in groups and before any group. groups
// are in the order of the file, as fields are.
func (e *engine) hintLines(groups []uint32) (lines []int) {
	if !e.paced {
		return nil
	}
	for i := range e.fields {
		f := &e.fields[i]
		for len(groups) > 0 && groups[0]+1 < f.group {
			groups = groups[1:]
		}
		if f.kind.pacing() && (f.group == 0 || len(groups) > 0 && groups[0]+1 == f.group) && len(lines) < maxHints*maxHintLines {
			lines = append(lines, i)
		}
	}
	return lines
}

// hintLine reads a field; ok is false when it has no effect.
func (e *engine) hintLine(i int) (l hintLine, ok bool) {
	l.field = e.field(i)
	l.Speed, ok = l.field.Speed()
	if l.field.Kind == VisitTime {
		return l, ok && l.Window.From != l.Window.To
	}
	return l, ok && l.Delay > 0
}

// groupNames returns the names of the groups of some fields, by fieldLine.group.
func (e *engine) groupNames(lines []int) map[uint32]string {
	each, wanted := make(map[uint32][]string), make([]bool, len(e.groups)+1)
	for _, i := range lines {
		each[e.fields[i].group], wanted[e.fields[i].group] = nil, true
	}
	for i := 0; i < len(e.names) && len(lines) > 0; i++ {
		if g := e.names[i].group + 1; wanted[g] {
			each[g] = append(each[g], strings.ToLower(e.nameText(i)))
		}
	}
	all := make(map[uint32]string, len(each))
	for group, names := range each {
		slices.Sort(names)
		all[group] = shortGroup(strings.Join(names, ","))
	}
	return all
}

// shortGroup returns the names of a group, or a digest of them, in at most
// maxGroupNames bytes.
func shortGroup(names string) string {
	if len(names) <= maxGroupNames {
		return names
	}
	sum := sha256.Sum256([]byte(names))
	return names[:maxGroupNames/2] + "~" + hex.EncodeToString(sum[:8])
}
