package rules

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"heed/rules/clock"
)

// FieldKind is the meaning of a line beyond those of RFC 9309.
type FieldKind uint8

// The fields. Those that an operator may want to honour are kept with the
// policy; none of them touches access (RFC 9309 §2.2.4).
const (
	fieldUnknown   FieldKind = iota
	fieldUserAgent           // begins or continues a group (RFC 9309 §2.2.1)
	fieldAllow               // a rule (RFC 9309 §2.2.2)
	fieldDisallow            // a rule (RFC 9309 §2.2.2)

	Sitemap       // the URL of a sitemap, for all robots (sitemaps.org)
	CrawlDelay    // seconds between two requests of a group's agents
	RequestRate   // documents per time of a group's agents (Conner 1996)
	VisitTime     // hours of UTC at which a group's agents may come (Conner 1996)
	ContentSignal // what a group's content may be used for (Cloudflare 2025)
	ContentUsage  // what a group's content may be used for (IETF aipref)
	License       // the URL of the content's licence (RSL 1.0)
	Host          // the preferred name of the site (Yandex, until 2018)
	CleanParam    // query parameters that do not change a page (Yandex)
	Noindex       // never a standard; ignored by Google since 2019
	Nofollow      // never a standard; ignored by Google since 2019
	CacheDelay    // seconds between two requests of a caching robot
	Comment       // a remark for the robot's operator (Conner 1996)
	RobotVersion  // the version of the record (Conner 1996)

	ContentSignals // a misspelt ContentSignal: the WordPress plugin CrawlBridge, and others, write it
)

// fieldNames are the names of the fields in lower case, as sites write them.
var fieldNames = [...]string{
	fieldUserAgent: "user-agent", fieldAllow: "allow", fieldDisallow: "disallow",
	Sitemap: "sitemap", CrawlDelay: "crawl-delay", RequestRate: "request-rate",
	VisitTime: "visit-time", ContentSignal: "content-signal", ContentUsage: "content-usage",
	License: "license", Host: "host", CleanParam: "clean-param", Noindex: "noindex",
	Nofollow: "nofollow", CacheDelay: "cache-delay", Comment: "comment", RobotVersion: "robot-version",
	ContentSignals: "content-signals",
}

// String returns the field's name in lower case; empty for an unknown field.
func (k FieldKind) String() string {
	if int(k) < len(fieldNames) {
		return fieldNames[k]
	}
	return ""
}

// ErrNoField is the error for a file without a single field of a robots.txt: a list of URLs, a
// picture. A site that serves it allows everything, but a file that a user names is then another
// than was meant.
var ErrNoField = errors.New("no line of it is one of a robots.txt, such as \"Disallow: /private\"; name the right file (an empty one allows everything)")

// CheckFile returns ErrNoField for a text that has lines other than comments, and none with a
// field.
func CheckFile(body []byte) error {
	text := false
	for line := range strings.FieldsFuncSeq(string(body), func(c rune) bool { return c == '\n' || c == '\r' }) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")); line == "" || line[0] == '#' {
			continue
		}
		text = true
		key, _, found := strings.Cut(line, ":")
		if kind, _ := fieldOf(strings.TrimSpace(key)); found && kind != fieldUnknown {
			return nil
		}
	}
	if text {
		return ErrNoField
	}
	return nil
}

// Global reports whether a field applies to the whole file and not to the
// group that contains it.
func (k FieldKind) Global() bool {
	return k == Sitemap || k == Host || k == CleanParam
}

// misspellings are those that Google's parser accepts.
var misspellings = map[string]FieldKind{
	"useragent": fieldUserAgent, "user agent": fieldUserAgent,
	"dissallow": fieldDisallow, "dissalow": fieldDisallow, "disalow": fieldDisallow,
	"diasllow": fieldDisallow, "disallaw": fieldDisallow,
	"site-map": Sitemap,
}

// fieldOf returns which field a key is. Keys of RFC 9309 and Sitemap are known
// by how they begin ("Disallowed" is Disallow), and in the misspellings above;
// exact reports that the key is written as it should be.
func fieldOf(key string) (kind FieldKind, exact bool) {
	for _, k := range [...]FieldKind{fieldDisallow, fieldAllow, fieldUserAgent, Sitemap} {
		if name := fieldNames[k]; prefixFold(key, name) && strings.IndexByte(key, ' ') < 0 {
			return k, len(key) == len(name)
		}
	}
	for k := CrawlDelay; int(k) < len(fieldNames); k++ {
		if equalFold(key, fieldNames[k]) {
			return k, true
		}
	}
	if len(key) < len("disalow") {
		return fieldUnknown, false
	}
	for wrong, k := range misspellings {
		if prefixFold(key, wrong) && strings.IndexByte(key[len(wrong):], ' ') < 0 {
			return k, false
		}
	}
	return fieldUnknown, false
}

// embedded finds a further field within a value: a line break was lost, as in
// "User-agent: * Disallow: /". A field begins the value or follows white space
// or, on a user-agent line, a star. The result is where it begins.
func (p *parser) embedded(value Part, onAgentLine bool) (at int, found bool) {
	text := p.lines.text
	for i := value.From; i < value.To; i++ {
		colon := strings.IndexByte(text[i:value.To], ':')
		if colon < 0 {
			p.looked += value.To - i
			return 0, false
		}
		p.looked += colon + 1
		i += colon
		end := i
		for end > value.From && blank(text[end-1]) {
			end--
		}
		from := end
		for from > value.From && (letter(text[from-1]) || text[from-1] == '-') {
			from--
		}
		p.looked += i - from
		starts := from == value.From || blank(text[from-1]) || onAgentLine && text[from-1] == '*'
		if starts && mayFollow(text[from:end]) {
			return from, true
		}
	}
	return 0, false
}

// mayFollow reports whether a key is one of those that lose their line break.
func mayFollow(key string) bool {
	for _, k := range [...]FieldKind{fieldDisallow, fieldAllow, fieldUserAgent, Sitemap, CrawlDelay} {
		if equalFold(key, fieldNames[k]) {
			return true
		}
	}
	_, known := misspellings[strings.ToLower(key)]
	return known
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// fieldLine is a line beyond RFC 9309's own that is kept: its value is a place
// in the engine's text.
type fieldLine struct {
	value uint32
	line  uint32
	group uint32 // 1 + the group that contains it; 0 for the file
	size  uint16
	kind  FieldKind
	apart bool
}

// keepField keeps a field that some robots understand.
func (p *parser) keepField(kind FieldKind, value Part) {
	f := p.file
	c := fieldLine{
		kind: kind, value: uint32(value.From), size: uint16(value.To - value.From),
		line: uint32(p.lines.number), apart: p.apart,
	}
	p.apart = p.apart || kind == Sitemap
	if p.InGroup && !kind.Global() {
		c.group = uint32(len(f.groups))
	}
	f.fields = append(f.fields, c)
	if kind.pacing() && p.lostLines < maxLost && !f.field(len(f.fields)-1).Understood() {
		p.lostLines++
		p.lost = append(p.lost, lostLine{p.lines.number, "bad-value"})
	}
}

func (f *file) field(i int) Field {
	c := f.fields[i]
	return Field{Kind: c.kind, Value: f.part(int(c.value), int(c.size), nil), Line: int(c.line), Apart: c.apart}
}

// Field is a line of a robots.txt beyond RFC 9309's own. Access ignores it.
type Field struct {
	Kind  FieldKind
	Value string // as the site wrote it: hostile until escaped; may be empty
	Line  int    // from 1
	Scope Scope
	// Apart is set when a blank line or a Sitemap line separates the field from the
	// lines of its group. RFC 9309 gives that no meaning; some readers of usage signals
	// take the field as one of the whole file then.
	Apart bool
}

// Scope is the robots that a Field concerns.
type Scope uint8

// The scopes.
const (
	ScopeFile  Scope = iota // all: it is before the first group, or of a kind that applies to the whole file
	ScopeGroup              // the agent: it is in a group that governs it
	ScopeOther              // others: it is in a group that does not govern the agent
)

// Fields returns all lines of some kinds, in the order of the file, those of groups that do
// not govern agent included, whose Scope is ScopeOther; nil when there is no file. Sitemap,
// Host and Clean-param apply to the whole file wherever they are, and any field before the
// first group does. A group that names the agent inherits nothing from the star group. For
// an agent of several names the groups of all are used.
func (p *Policy) Fields(agent *Agent, kinds ...FieldKind) []Field {
	if p.engine == nil || !slices.ContainsFunc(p.engine.fields, func(f fieldLine) bool { return slices.Contains(kinds, f.kind) }) {
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
	for i, c := range e.fields {
		if !slices.Contains(kinds, c.kind) {
			continue
		}
		f := e.field(i)
		switch {
		case governs[c.group]:
			f.Scope = ScopeGroup
		case c.group != 0:
			f.Scope = ScopeOther
		}
		all = append(all, f)
	}
	return all
}

// CountFields returns how many lines of some kinds the file has.
func (p *Policy) CountFields(kinds ...FieldKind) (n int) {
	if p.engine == nil {
		return 0
	}
	for i := range p.engine.fields {
		if slices.Contains(kinds, p.engine.fields[i].kind) {
			n++
		}
	}
	return n
}

// Names reports whether a group of the file names agent: one governs it that is not the star
// group.
func (p *Policy) Names(agent *Agent) bool {
	if p == nil || p.engine == nil {
		return false
	}
	sets := p.engine.governing(agent)
	return len(sets) > 0 && sets[0].how != ByStar
}

// RateHints returns the limits of speed in the groups that govern agent, one for
// each group that has any; nil for none. It allocates nothing once it has met the agent,
// unless groups of several names govern it. The result must not be changed.
func (p *Policy) RateHints(agent *Agent) []*RateHint {
	if p.engine == nil || !p.engine.paced {
		return nil
	}
	sets := p.engine.governing(agent)
	if len(sets) == 1 {
		return sets[0].hints
	}
	var all []*RateHint
	for i := range sets {
		for _, w := range sets[i].hints {
			known := slices.ContainsFunc(all, func(o *RateHint) bool { return o.Group == w.Group })
			if !known && len(all) < maxHints {
				all = append(all, w)
			}
		}
	}
	if len(sets) == 0 && (agent == nil || agent.Role != Obeyed) {
		return p.engine.general
	}
	return all
}

// Speed is what a field about speed asks for.
type Speed struct {
	Delay  time.Duration // between two requests
	Window clock.Window  // of a Visit-time, or of the day when a Request-rate applies
	Exact  bool          // the value has the form of its document, so that other robots understand it
}

// Speed reads a Crawl-delay, a Cache-delay, a Request-rate or a Visit-time, or what
// obviously means one (see package clock). ok is false for other fields and for values that
// cannot be understood, which have no effect.
func (f Field) Speed() (s Speed, ok bool) {
	switch f.Kind {
	case CrawlDelay, CacheDelay:
		s.Delay, s.Exact, ok = clock.Seconds(f.Value)
	case RequestRate:
		var r clock.Rate
		r, s.Exact, ok = clock.RateOf(f.Value)
		s.Delay, s.Window = r.Delay(), r.Window
	case VisitTime:
		s.Window, s.Exact, ok = clock.Hours(f.Value)
	}
	return s, ok
}

// Understood reports whether the field's value can be understood; otherwise the line has no
// effect. What a usage signal says is not a matter of this package.
func (f Field) Understood() (ok bool) {
	switch f.Kind {
	case CrawlDelay, CacheDelay, RequestRate, VisitTime:
		_, ok = f.Speed()
	case Sitemap: // an absolute URL
		u, err := url.Parse(f.Value)
		ok = err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
	case CleanParam: // parameters with "&" between them, and perhaps the beginning of a path
		words := strings.Fields(f.Value)
		ok = (len(words) == 1 || len(words) == 2) && !slices.Contains(strings.Split(words[0], "&"), "")
	default:
		ok = true
	}
	return ok
}
