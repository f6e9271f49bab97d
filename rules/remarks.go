package rules

import (
	"slices"
	"strings"
	"unicode/utf8"

	"heed/rules/names"
	"heed/rules/slips"
)

// Findings about lines that are valid, but may not mean what they seem to mean.

// line looks at a whole line before it is read.
func (l *linter) line(at span) {
	text := l.parser.lines.text[at.from:at.to]
	if strings.Trim(text, " \t\v\f") == "" {
		l.blank = true
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			l.report(notUTF8, span{at.from + i, at.to})
			return
		}
		i += size
	}
}

// field looks at a field before the parser uses it.
func (l *linter) field(kind FieldKind, key, value span) {
	switch {
	case kind == fieldUserAgent:
		l.userAgent(key, value)
	case kind == fieldAllow, kind == fieldDisallow:
		if l.parser.open && !l.parser.inRules && l.blank {
			l.report(blankInGroup, key)
		}
		l.rule(kind == fieldAllow, key, value)
	default:
		l.between = true
		l.otherField(kind, key, value)
	}
}

// userAgent looks at a user-agent line.
func (l *linter) userAgent(key, value span) {
	p := l.parser
	begins := !p.open || p.inRules
	if !begins && (l.blank || l.between) {
		l.report(sharedGroup, key)
	}
	group := len(p.file.groups)
	if begins {
		group++
	}
	for part := range strings.SplitSeq(strings.ToLower(p.lines.text[value.from:value.to]), ",") {
		name := strings.Trim(part, " \t\v\f")
		if name == "" {
			continue
		}
		if last, known := l.names[name]; known && last != group {
			l.report(repeatedGroup, value)
		}
		l.names[name] = group
		if name != "*" && !p.cutNames && !strings.ContainsAny(name, " \t/*") && names.Cut(name) != name {
			l.report(nameCharacter, value)
		}
	}
	if text := p.lines.text[value.from:value.to]; !prefixFold(text, "mozilla/") {
		l.slips(slips.InName(text), value)
	}
	l.agent, l.number, l.blank, l.between = value, p.lines.number, false, false
}

// rule reports mistakes in an Allow or Disallow line.
func (l *linter) rule(allow bool, key, value span) {
	text := l.parser.lines.text
	path := text[value.from:value.to]
	if path == "" {
		if allow {
			l.report(emptyAllow, key)
		}
		return
	}
	if value.to < len(text) && text[value.to] == '#' {
		l.report(hashInPath, span{value.to, value.to + 1})
	}
	if !hasScheme(path) {
		l.slips(slips.InPath(path), value)
	}
	if i := strings.Index(path, ", /"); i >= 0 {
		l.report(commaInPath, span{value.from + i, value.from + i + 1})
	}
	bare, _, _ := strings.Cut(path, "?")
	segments := strings.Split(strings.TrimRight(bare, "$"), "/")[1:]
	if slices.Contains(segments, "..") || slices.Contains(segments, ".") {
		l.report(dotSegment, value)
	}
	if len(path) > 1 && path[len(path)-1] == '*' {
		l.report(trailingStar, span{value.to - 1, value.to})
	}
	if !allow && strings.TrimSuffix(path, "$") == robotsPath {
		l.report(ruleForFile, value)
	}
}

// otherField looks at a field that access ignores.
func (l *linter) otherField(kind FieldKind, key, value span) {
	switch kind {
	case fieldUnknown:
		return
	case Noindex, Nofollow:
		l.report(noEffect, key)
		return
	case Host, CacheDelay, RobotVersion:
		l.report(oldField, key)
		return
	}
	f := Field{Kind: kind, Value: l.parser.lines.text[value.from:value.to]}
	switch {
	case !f.Understood():
		l.report(badValue, value)
	case kind.pacing() && !f.exact():
		l.report(looseValue, value)
	}
	if !kind.global() && kind != License && !l.parser.open {
		l.report(orphanField, key)
	}
}

// refine returns a more specific kind for a finding of the parser, if there is one.
func (l *linter) refine(kind FindingKind, at span) FindingKind {
	text := l.parser.lines.text[at.from:at.to]
	switch kind {
	case unknownLine:
		if kind := hiddenField(text); kind != "" {
			return kind
		}
		// It is nearly a field of RFC 9309.
		if word := strings.ToLower(text); slips.Distance(word, "disallow") <= 2 || slips.Distance(word, "user-agent") <= 2 || slips.Distance(word, "allow") == 1 {
			return likelyMisspelt
		}
	case noSlash:
		if v := slips.Trim(text); v != text && strings.HasPrefix(v, "/") {
			return hiddenCharacter
		}
	case noField:
		if kind := hiddenField(text); kind != "" {
			return kind
		}
		fallthrough
	case nameOfNoRobot:
		if v := slips.Trim(text); v == "" || v == "*" && text != "*" {
			return hiddenCharacter
		}
	}
	return kind
}

// slips looks for accidents in the value of a rule or a user-agent line.
func (l *linter) slips(found []slips.Slip, value span) {
	for _, s := range found {
		if s.Kind == slips.Hidden {
			s.To = value.to - value.from
		}
		l.report(FindingKind(s.Kind), span{value.from + s.From, value.from + s.To})
	}
}

// compareRules finds rules that a group has twice, or that contradict each other.
func (l *linter) compareRules() {
	e := l.parser.file
	packed := e.text + e.extra.String()
	for g := range e.groups {
		known := map[string]uint32{}
		for id := e.groups[g]; id < e.groupEnd(uint32(g)); id++ {
			r := &e.rules[id]
			key := patternKey(packed[r.pattern:][:r.size], r)
			first, again := known[key]
			switch {
			case !again:
				known[key] = id
			case e.rules[first].allows() != r.allows():
				l.at(opposedRules, int(r.line&ruleLine), positionOf(packed, r))
			default:
				l.at(repeatedRule, int(r.line&ruleLine), positionOf(packed, r))
			}
		}
	}
}

// patternKey returns a key that two rules share when they match the same
// targets by the same pattern.
func patternKey(pattern string, r *rule) string {
	if r.line&rulePacked == 0 {
		pattern = strings.ReplaceAll(pattern, "*", string([]byte{codeStar}))
	}
	if r.line&ruleEnds != 0 {
		pattern += "\xFF" // no code, and in no text that is packed
	}
	return pattern
}

// positionOf returns the position of a rule's path, or of its line when the path
// is packed elsewhere.
func positionOf(text string, r *rule) span {
	if r.line&rulePacked != 0 {
		return packedPosition(text, r)
	}
	return span{int(r.pattern), int(r.pattern) + int(r.size)}
}
