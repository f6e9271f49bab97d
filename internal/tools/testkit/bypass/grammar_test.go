package bypass

import (
	"fmt"
	"slices"
	"strings"
)

// chooser drives the grammar: a random source, or the octets of a fuzz input.
type chooser interface {
	// IntN returns a number from 0 to n-1.
	IntN(n int) int
}

// pick returns one of the choices.
func pick(c chooser, choices ...string) string { return choices[c.IntN(len(choices))] }

// spelling is a target made by the grammar: separators and segments by turns,
// the first a separator.
type spelling struct {
	chooser
	page  page
	parts []string
	tail  string
}

// spell writes the target of a page in another way, after one to four changes.
func spell(c chooser, p page) string {
	s := &spelling{chooser: c, page: p}
	for segment := range strings.SplitSeq(p.path[1:], "/") {
		s.parts = append(s.parts, "/", escapeName(c, segment))
	}
	changes := []func(){
		s.escape, s.escape, s.escape, s.dot, s.dot, s.detour, s.detour, s.detour, s.slashes, s.slashes,
		s.climb, s.separator, s.separator, s.dots, s.dots, s.hole, s.end, s.end, s.junk, s.overEscape, s.strange,
	}
	for range 1 + c.IntN(4) {
		changes[c.IntN(len(changes))]()
	}
	query := p.query
	if query != "" && c.IntN(3) == 0 {
		query = pick(c, "?%76iew=secret", "?view=secre%74", "?view=secret&x=1", "?view=secret/../", "?view=secret%00", "?vie%77=%73ecret")
	}
	return strings.Join(s.parts, "") + s.tail + query
}

// escapeName writes the octets of a name that may not stand in a target.
func escapeName(c chooser, name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch o := name[i]; {
		case o >= 0x80 && c.IntN(4) > 0, o == '\\' && c.IntN(4) > 0:
			b.WriteString(escaped(c, o))
		case strings.IndexByte("*&=~", o) >= 0 && c.IntN(3) == 0:
			b.WriteString(escaped(c, o))
		default:
			b.WriteByte(o)
		}
	}
	return b.String()
}

// escaped is one octet as an escape, in either case of the digits.
func escaped(c chooser, o byte) string {
	return fmt.Sprintf(pick(c, "%%%02X", "%%%02x"), o)
}

// segment picks the place of a segment; separator the place of a separator.
func (s *spelling) segmentAt() int   { return 1 + 2*s.IntN(len(s.parts)/2) }
func (s *spelling) separatorAt() int { return 2 * s.IntN(len(s.parts)/2) }

// escape writes some octets of a segment as escapes.
func (s *spelling) escape() {
	at := s.segmentAt()
	every := 1 + s.IntN(4)
	var b strings.Builder
	for i := 0; i < len(s.parts[at]); i++ {
		o := s.parts[at][i]
		if o == '%' || i > 0 && s.parts[at][i-1] == '%' || i > 1 && s.parts[at][i-2] == '%' || s.IntN(every) > 0 {
			b.WriteByte(o)
			continue
		}
		b.WriteString(escaped(s, o))
	}
	s.parts[at] = b.String()
}

// insert puts segments behind a separator, each with a separator of its own.
func (s *spelling) insert(segments ...string) {
	at := s.separatorAt() + 1
	var more []string
	for _, segment := range segments {
		more = append(more, segment, pick(s, "/", "/", "/", "/", "/", "//", "%2F", "%5C"))
	}
	s.parts = slices.Insert(s.parts, at, more...)
}

func (s *spelling) dot() { s.insert(".") }

// detour goes into a folder, which need not be there, and out again.
func (s *spelling) detour() {
	name := pick(s, "open", "open", "x", "holes", "private", "a.b", "%20", "...", ".x", "100%", "%zz", "a|b", "caf\xe9")
	if s.IntN(4) > 0 {
		s.insert(name, "..")
		return
	}
	s.insert(name, "x", "..", "..")
}

// strange goes through a folder whose name some servers take for two.
func (s *spelling) strange() {
	name := pick(s, `a\b`, "a%5Cb", "a%5cb", "a%2Fb", "a;b", "..;", "%5C", "%2F", "..%5C", "..%2F", "%2E%2E%5Cx", "%252e%252e", "a%00")
	if s.IntN(2) == 0 {
		s.insert(name, "..")
		return
	}
	s.insert("x", name, "..", "..")
}

// climb goes above the root.
func (s *spelling) climb() {
	s.parts = slices.Insert(s.parts, 1, pick(s, "..", "..", ".", "%2e%2e"), "/")
}

// hole begins in the part that an Allow leaves open.
func (s *spelling) hole() {
	s.parts = slices.Insert(s.parts, 1, "holes", "/", "open", "/", "..", "/", "..", "/")
}

func (s *spelling) slashes() {
	s.parts[s.separatorAt()] = pick(s, "//", "//", "///", "/%2F", "%2F/", "/\\")
}

func (s *spelling) separator() {
	at := s.separatorAt()
	if at == 0 && s.IntN(4) > 0 {
		return // a target that begins with another octet is no target
	}
	s.parts[at] = pick(s, "%2F", "%2f", "%2F", "%5C", "%5c", "\\", "%252F", "%c0%af", "%u2215")
}

// dots spells the dots of dot segments in another way.
func (s *spelling) dots() {
	for i := 1; i < len(s.parts); i += 2 {
		switch s.parts[i] {
		case ".":
			s.parts[i] = pick(s, "%2e", "%2E", ".")
		case "..":
			s.parts[i] = pick(s, "%2e%2e", "%2E.", ".%2e", "%2e%2E", "..", "%c0%ae%c0%ae", "%252e%252e", "..;x")
		}
	}
}

// overEscape escapes the escapes once more.
func (s *spelling) overEscape() {
	at := s.segmentAt()
	if strings.Contains(s.parts[at], "%") {
		s.parts[at] = strings.ReplaceAll(s.parts[at], "%", "%25")
		return
	}
	s.parts[at] = "%25" + fmt.Sprintf("%02x", s.parts[at][:min(1, len(s.parts[at]))]) + s.parts[at][min(1, len(s.parts[at])):]
}

// junk adds what some servers cut off.
func (s *spelling) junk() {
	at := s.segmentAt()
	s.parts[at] += pick(s, ";p=1", ";", "%00", "%20", "%09", ".", "\xe9", "\xc0\xae", "é", "%0d%0a", "::$DATA", "%EF%BC%8F", "\u202e", "|", "^", "\"", "{}", "~1", "+", "%zz", "%", "%2", "%%", "%2%46")
}

// end adds what may stand behind the target and change nothing.
func (s *spelling) end() {
	tails := []string{"/.", "/x/..", "/./.", "%2F", "/%2e", "/x%2F..", "%5C", "/%2E%2E/canary.html", ";x", "", "#f"}
	if !s.page.exact && s.page.query == "" {
		tails = append(tails, "?x", "?", "?x=1&y=2", "?/../../open/page.html", "?x#f", "?x#f", "?%00", "??", "?x=/open/", "?;")
	}
	s.tail = pick(s, tails...)
}

// generate makes n different spellings, a tenth of them of allowed pages.
func generate(c chooser, n int) []probe {
	var canaries, open []page
	for _, p := range pages {
		if p.open {
			open = append(open, p)
		} else {
			canaries = append(canaries, p)
		}
	}
	seen := map[string]bool{}
	var probes []probe
	for len(probes) < n {
		from := canaries
		if len(probes)%10 == 9 {
			from = open
		}
		p := from[c.IntN(len(from))]
		if target := spell(c, p); !seen[target] {
			seen[target] = true
			probes = append(probes, probe{target: target, open: p.open})
		}
	}
	return probes
}

// probe is one target to ask for.
type probe struct {
	target string
	open   bool // it spells an allowed page
}
