package rules

import (
	"slices"
	"strings"
)

// Target is the path and query of one request, exactly as they are sent. Whatever compares
// a path takes a Target and judges each of its readings (readings.go): rules, exceptions,
// and the paths of statements. A Target also contains the steps that are left for all of
// them together. It is for one goroutine at a time.
type Target struct {
	text  string
	steps int // left for the request; negative: none
}

// NewTarget returns the target of a request, with a full budget.
func NewTarget(text string) *Target { return &Target{text: text, steps: maxSteps} }

// String returns the target as it is sent.
func (t *Target) String() string { return t.text }

// NamesRobots reports whether the target is that of robots.txt, as it is sent.
func (t *Target) NamesRobots() bool { return t.text == robotsPath }

// Spend takes steps from the budget, for work that the length of a document decides about.
// It reports whether there were as many. Most steps take about a nanosecond.
func (t *Target) Spend(steps int) bool {
	t.steps -= steps
	return t.steps >= 0
}

// Spent returns the steps that were taken.
func (t *Target) Spent() int { return maxSteps - t.steps }

// TooComplex reports whether the budget is used up: what was not compared may refuse.
func (t *Target) TooComplex() bool { return t.steps < 0 }

// path returns the path and query that are judged; ok is false for a malformed target.
func (t *Target) path() (text string, ok bool) {
	switch {
	case t.text == "":
		return "/", true
	case t.text[0] == '?':
		return "/" + t.text, true
	}
	return t.text, t.text[0] == '/'
}

// Paths are the paths of the statements in one document, in the order of the document.
// Each is compared as that of an Allow or a Disallow is (RFC 9309 §2.2.2, §2.2.3): "*" is
// any run of octets, a final "$" the end of the target. Paths are immutable and safe for
// concurrent use. The zero value has none.
type Paths struct{ file file }

// NewPaths returns paths as a site wrote them. A path that begins neither with "/" nor with
// "*" gets a "/". Of a path of more than MaxLine octets only those are used. The empty path
// matches every target, and is less specific than all others.
func NewPaths(paths []string) *Paths {
	p := &Paths{file{rules: make([]rule, 0, len(paths))}}
	var c compiler
	var text []byte
	for _, path := range paths {
		if path = path[:min(len(path), MaxLine)]; path != "" && path[0] != '/' && path[0] != '*' {
			path = "/" + path
		}
		c.compile(path, differences{})
		p.file.rules = append(p.file.rules, rule{
			pattern: uint32(len(text)), line: c.flags | rulePacked, size: uint16(len(c.packed)), length: uint16(c.length),
		})
		text = append(text, c.packed...)
	}
	p.file.text = string(text)
	return p
}

// Len returns how many paths there are.
func (p *Paths) Len() int { return len(p.file.rules) }

// Selection is the statements that count for a target in one of its readings.
type Selection struct {
	Variant string // the name of the reading, as in Decision
	Of      []int  // the indexes of their paths, ascending
}

// Choice is which of several paths that match a target counts.
type Choice uint8

// The choices.
const (
	Longest Choice = iota // that of most octets in the canonical form, as for rules; all that are equal
	First                 // the first of the document
)

// Select returns the statements that count for a target, once for each reading in which
// others do than in those before; none for a reading without any. Each Selection must
// allow. A path without wildcards that counts for the target as sent counts for those of
// its readings that it names too, as an Allow does. Paths for which only returns false match
// nothing; nil: there are none of these. When the budget of t is used up, what is returned is
// incomplete.
func (p *Paths) Select(t *Target, profile Profile, choice Choice, only func(i int) bool) []Selection {
	text, ok := t.path()
	if !ok || t.steps < 0 || len(p.file.rules) == 0 {
		return nil
	}
	c := chooser{file: &p.file, choice: choice, only: only}
	how := differences{allReadings: profile.differences().allReadings}
	if how.plain(text) {
		c.judge(&t.steps, text)
		if len(c.of) == 0 || t.steps < 0 {
			return nil
		}
		return []Selection{{Of: c.of}}
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.begin(t.steps)
	selections := c.selectEach(s, text, how)
	t.steps = s.steps
	return selections
}

// chooser finds the paths that count for a reading of a target.
type chooser struct {
	*file
	choice Choice
	only   func(i int) bool

	of    []int // that count for the reading that was judged last
	sent  int   // the one of those for the target as sent that has no wildcards; -1: none
	first int   // the first of those for the target as sent; -1: none
}

// selectEach returns a Selection for each reading of a target, as Paths.Select does.
func (c *chooser) selectEach(s *scratch, text string, how differences) (selections []Selection) {
	first := true
	how.read(s, text, func(name, reading string) bool {
		if s.before(&s.judged, name, reading) {
			return s.steps >= 0
		}
		c.judge(&s.steps, reading)
		switch {
		case s.steps < 0:
			return false
		case first:
			c.sent, c.first, first = c.withoutWildcards(), -1, false
			if len(c.of) > 0 {
				c.first = c.of[0]
			}
		case c.sentCounts(s, name, reading):
			return true
		}
		if len(c.of) > 0 && !c.known(s, selections) {
			selections = append(selections, Selection{name, c.of})
		}
		return s.steps >= 0
	})
	return selections
}

// judge sets of for a packed reading of a target.
func (c *chooser) judge(steps *int, reading string) {
	c.of = nil
	most := -1
	for i := range c.rules {
		if *steps -= stepsPerPath; *steps < 0 {
			return
		}
		length := int(c.rules[i].length)
		if c.choice == Longest && length < most || c.only != nil && !c.only(i) || !c.matches(uint32(i), reading, steps) {
			continue
		}
		if length > most {
			c.of, most = c.of[:0], length
		}
		if c.of = append(c.of, i); c.choice == First {
			return
		}
	}
}

// stepsPerPath is for a path that is looked at; those of the document are not indexed.
const stepsPerPath = 32

// withoutWildcards returns the first of the paths of the last reading that has no
// wildcards; -1 when none has.
func (c *chooser) withoutWildcards() int {
	for _, i := range c.of {
		if c.rules[i].line&ruleWild == 0 {
			return i
		}
	}
	return -1
}

// sentCounts reports whether the path that counts for the target as sent counts for a
// reading as well, in place of those that were found.
func (c *chooser) sentCounts(s *scratch, name, reading string) bool {
	sent, named := c.sent, name == readV6 || name == readV7 // as in allowsReading
	if named {
		sent = c.first
	}
	if sent < 0 || len(c.of) == 0 {
		return false
	}
	better := sent < c.of[0]
	if c.choice == Longest {
		better = c.rules[sent].length > c.rules[c.of[0]].length
	}
	return better && (named || c.namesReading(&s.judging, sent, name, reading))
}

// known reports whether an earlier reading has the paths of the last one.
func (c *chooser) known(s *scratch, selections []Selection) bool {
	for i := range selections {
		s.steps -= 1 + len(c.of)/octetsPerStep
		if slices.Equal(selections[i].Of, c.of) {
			return true
		}
	}
	return false
}

// SplitTarget splits a request target, or a URL, into what is before its path
// (empty in origin form) and the path with the query. Neither part is decoded, and a
// fragment stays part of the second.
func SplitTarget(target string) (before, rest string) {
	if strings.HasPrefix(target, "/") {
		return "", target
	}
	_, after, found := strings.Cut(target, "://")
	if !found {
		return target, ""
	}
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		return target[:len(target)-len(after)+i], after[i:]
	}
	return target, ""
}

// EscapePercents returns a request target in which every "%" of the path that does
// not begin an escape is escaped. Such a "%" is a literal octet to many servers,
// and an error to net/url; a query may hold any.
func EscapePercents(target string) string {
	if strings.IndexByte(target, '%') < 0 {
		return target
	}
	before, rest := SplitTarget(target)
	path, _, _ := strings.Cut(rest, "?")
	query := rest[len(path):]
	odd := 0
	for i := range len(path) {
		if path[i] == '%' && !isEscape(path[i:]) {
			odd++
		}
	}
	if odd == 0 {
		return target
	}
	var b strings.Builder
	b.Grow(len(target) + 2*odd)
	b.WriteString(before)
	for i := range len(path) {
		b.WriteByte(path[i])
		if path[i] == '%' && !isEscape(path[i:]) {
			b.WriteString("25")
		}
	}
	b.WriteString(query)
	return b.String()
}

// TargetFault describes what in the path of a request target keeps rules from being compared
// with it; empty when nothing does. Octets written as "%u0070" are decoded by IIS,
// which then serves the page that is written without them; other servers take them as
// they are, or refuse them.
func TargetFault(target string) string {
	path, _, _ := strings.Cut(target, "?")
	if strings.Contains(path, "%00") {
		return "the path contains a NUL octet"
	}
	for i := range len(path) {
		if path[i] == '%' && len(path) > i+5 && path[i+1]|0x20 == 'u' && hexValue(path[i+2])|hexValue(path[i+3])|hexValue(path[i+4])|hexValue(path[i+5]) <= 15 {
			return "the path contains " + path[i:i+6] + ", which some servers decode; write the character in UTF-8 with an escape for each octet"
		}
	}
	return ""
}

// SendableTarget returns the path and query of a request target, or of a URL, as a
// request line may contain them: as they are, but "/" for an empty path, and a "#",
// at which servers cut a target, as an escape. ok is false for blanks and controls,
// which a request line cannot contain.
func SendableTarget(target string) (sendable string, ok bool) {
	if _, sendable = SplitTarget(target); !strings.HasPrefix(sendable, "/") {
		sendable = "/" + sendable
	}
	if strings.IndexByte(sendable, '#') >= 0 {
		sendable = strings.ReplaceAll(sendable, "#", "%23")
	}
	return sendable, Sendable(sendable)
}
