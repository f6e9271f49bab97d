package lint

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"heed/rules"
)

// Findings about lines that are valid, but may not mean what they seem to mean.

// Line looks at a whole line before it is read.
func (l *linter) Line(at rules.Progress, line rules.Part) {
	text := line.Of(at.Text)
	if strings.Trim(text, " \t\v\f") == "" {
		l.blank = true
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			l.found(notUTF8, at, rules.Part{From: line.From + i, To: line.To})
			return
		}
		i += size
	}
}

// Field looks at a field before the parser uses it.
func (l *linter) Field(at rules.Progress, kind rules.FieldKind, key, value rules.Part) {
	switch kind.String() {
	case "user-agent":
		l.userAgent(at, key, value)
	case "allow", "disallow":
		if at.InGroup && !at.InRules && l.blank {
			l.found(blankInGroup, at, key)
		}
		l.rule(at, kind.String() == "allow", key, value)
	default:
		l.between = true
		l.otherField(at, kind, key, value)
	}
}

// userAgent looks at a user-agent line.
func (l *linter) userAgent(at rules.Progress, key, value rules.Part) {
	begins := !at.InGroup || at.InRules
	if !begins && (l.blank || l.between) {
		l.found(sharedGroup, at, key)
	}
	group := at.Groups
	if begins {
		group++
	}
	text := strings.ToLower(value.Of(at.Text))
	for part := range strings.SplitSeq(text, ",") {
		name := strings.Trim(part, " \t\v\f")
		if name == "" {
			continue
		}
		if last, known := l.names[name]; known && last != group {
			l.found(repeatedGroup, at, value)
		}
		l.names[name] = group
		if name != "*" && !l.cutNames && !strings.ContainsAny(name, " \t/*") && rules.CutName(name) != name {
			l.found(nameCharacter, at, value)
		}
	}
	if !strings.HasPrefix(text, "mozilla/") {
		l.slips(at, slipsInName(value.Of(at.Text)), value)
	}
	l.agent, l.number, l.blank, l.between = value, at.Line, false, false
}

// rule looks at an Allow or Disallow line.
func (l *linter) rule(at rules.Progress, allow bool, key, value rules.Part) {
	path := value.Of(at.Text)
	if path == "" {
		if allow {
			l.found(emptyAllow, at, key)
		}
		return
	}
	if value.To < len(at.Text) && at.Text[value.To] == '#' {
		l.found(hashInPath, at, rules.Part{From: value.To, To: value.To + 1})
	}
	if !rules.HasScheme(path) {
		l.slips(at, slipsInPath(path), value)
	}
	if i := strings.Index(path, ", /"); i >= 0 {
		l.found(commaInPath, at, rules.Part{From: value.From + i, To: value.From + i + 1})
	}
	bare, _, _ := strings.Cut(path, "?")
	segments := strings.Split(strings.TrimRight(bare, "$"), "/")[1:]
	if slices.Contains(segments, "..") || slices.Contains(segments, ".") {
		l.found(dotSegment, at, value)
	}
	if len(path) > 1 && path[len(path)-1] == '*' {
		l.found(trailingStar, at, rules.Part{From: value.To - 1, To: value.To})
	}
	if !allow && rules.NewTarget(strings.TrimSuffix(path, "$")).NamesRobots() {
		l.found(ruleForFile, at, value)
	}
}

// Path looks at the octets of a path that is kept.
func (l *linter) Path(at rules.Progress, path rules.Part) {
	text := path.Of(at.Text)
	for i := range len(text) {
		octet := rules.Part{From: path.From + i, To: path.From + i + 1}
		switch c := text[i]; {
		case strings.IndexByte(" \t\v\f", c) >= 0:
			l.found(blankInPath, at, path)
			return
		case c < 0x20 || c == 0x7F:
			l.found(controlOctet, at, octet)
			return
		case c == '$' && i < len(text)-1:
			l.found(innerDollar, at, octet)
		case c == '%':
			if _, err := strconv.ParseUint(text[i+1:min(i+3, len(text))], 16, 8); err != nil || i+3 > len(text) {
				l.found(badEscape, at, octet)
			}
		}
	}
}

// otherField looks at a field that access ignores.
func (l *linter) otherField(at rules.Progress, kind rules.FieldKind, key, value rules.Part) {
	switch kind {
	case rules.Noindex, rules.Nofollow:
		l.found(noEffect, at, key)
		return
	case rules.Host, rules.CacheDelay, rules.RobotVersion:
		l.found(oldField, at, key)
		return
	}
	if kind.String() == "" {
		return
	}
	f := rules.Field{Kind: kind, Value: value.Of(at.Text)}
	if !f.Understood() {
		l.found(badValue, at, value)
	} else if s, isSpeed := f.Speed(); isSpeed && !s.Exact {
		l.found(looseValue, at, value)
	}
	if !kind.Global() && kind != rules.License && !at.InGroup {
		l.found(orphanField, at, key)
	}
}

// Odd adds what the parser found, or a more specific kind of that.
func (l *linter) Odd(at rules.Progress, kind string, part rules.Part) {
	l.found(refined(Kind(kind), part.Of(at.Text)), at, part)
}

// refined returns a more specific kind for a finding of the parser, if there is one.
func refined(kind Kind, text string) Kind {
	seen := rules.TrimUnseen(text)
	switch kind {
	case unknownLine: // it is nearly a field of RFC 9309
		if word := strings.ToLower(text); rules.Distance(word, "disallow") <= 2 || rules.Distance(word, "user-agent") <= 2 || rules.Distance(word, "allow") == 1 {
			return likelyMisspelt
		}
	case noSlash:
		if seen != text && strings.HasPrefix(seen, "/") {
			return hiddenCharacter
		}
	case noField, nameOfNoRobot:
		if seen == "" || seen == "*" && text != "*" {
			return hiddenCharacter
		}
	}
	return kind
}

// slips adds accidents in the value of a rule or a user-agent line.
func (l *linter) slips(at rules.Progress, found []slip, value rules.Part) {
	for _, s := range found {
		if s.kind == hiddenCharacter {
			s.to = value.To - value.From
		}
		l.found(s.kind, at, rules.Part{From: value.From + s.from, To: value.From + s.to})
	}
}

// compareRules finds rules that a group has twice, or that contradict each other.
func (l *linter) compareRules(f *rules.Watched) {
	group, allows := 0, map[string]bool{}
	for r := range f.RulesAsWritten() {
		if r.Group != group {
			group, allows = r.Group, map[string]bool{}
		}
		switch allow, again := allows[r.Pattern]; {
		case !again:
			allows[r.Pattern] = r.Allow
		case allow != r.Allow:
			l.add(opposedRules, &f.Progress, r.Line, r.At)
		default:
			l.add(repeatedRule, &f.Progress, r.Line, r.At)
		}
	}
}
