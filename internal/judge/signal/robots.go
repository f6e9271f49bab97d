package signal

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/internal/base/structured"
	"heed/rules"
)

// Robots is the usage signals of one robots.txt that concern one agent. It is immutable
// and safe for concurrent use, and should be kept as long as the Policy. nil is a file
// without any.
type Robots struct {
	tooMany bool // there are more than MaxLines; none is kept

	lines []Statement  // those of the Content-Usage lines last
	usage *rules.Paths // of the Content-Usage lines; "": the line has none
}

// Size returns how many lines r has.
func (r *Robots) Size() int {
	if r == nil {
		return 0
	}
	return len(r.lines)
}

// ReadRobots returns the usage signals in the groups of a file that govern agent. A group
// without any has those of the whole file: lines before the first group, and lines that a
// blank line or a Sitemap line separates from their group, which readers understand in
// both ways.
//
// address is where the file is, for the places of its statements.
func ReadRobots(p *rules.Policy, agent *rules.Agent, address string) *Robots {
	if p.CountFields(signalFields...) > MaxLines {
		return &Robots{tooMany: true, usage: new(rules.Paths)}
	}
	fields := p.Fields(agent, signalFields...)
	if len(fields) == 0 {
		return nil
	}
	r := &Robots{}
	var paths []string
	for _, kinds := range [][]rules.FieldKind{{rules.ContentSignal, rules.ContentSignals}, {rules.License}, {rules.ContentUsage}} {
		own, site := governing(fields, kinds)
		if len(own) == 0 {
			own = site
		}
		lines, at := readLines(own, address)
		lines = append(lines, spares(lines, site, address, &at)...)
		if r.lines = append(r.lines, lines...); kinds[0] == rules.ContentUsage {
			paths = at
		}
	}
	r.usage = rules.NewPaths(paths)
	return r
}

// readLines reads lines of robots.txt, and their paths.
func readLines(fields []rules.Field, address string) (all []Statement, paths []string) {
	for _, f := range fields {
		s, path := readLine(f, address)
		all, paths = append(all, s), append(paths, path)
	}
	return all, paths
}

// spares returns the lines of the whole file that count although the agent's groups have lines
// of their own: some of these are not understood, and hide no reservation. Those with paths
// are chosen for a target.
func spares(own []Statement, site []rules.Field, address string, paths *[]string) (all []Statement) {
	var unclear []Category
	unread := false
	for i := range own {
		unclear = append(unclear, own[i].unclears()...)
		unread = unread || own[i].unread()
	}
	if len(unclear) == 0 && !unread || own[0].Note == wholeFile {
		return nil
	}
	lines, at := readLines(site, address)
	for i, s := range lines {
		if s.spare = true; s.Protocol == ContentSignal {
			s = s.about(unclear)
		}
		all, *paths = append(all, s), append(*paths, at[i])
	}
	return all
}

// MaxLines is the number of lines with usage signals that a robots.txt may have, in all of its
// groups. One with more is too complex: it refuses every purpose.
const MaxLines = 2000

// signalFields are the kinds of these lines.
var signalFields = []rules.FieldKind{rules.ContentSignal, rules.ContentSignals, rules.ContentUsage, rules.License}

// governing returns the lines of some kinds in the agent's groups, which count, and those of
// the whole file, which count when there are none.
func governing(fields []rules.Field, kinds []rules.FieldKind) (own, site []rules.Field) {
	for _, f := range fields {
		switch {
		case !slices.Contains(kinds, f.Kind):
		case f.Scope == rules.ScopeGroup:
			own = append(own, f)
		case f.Scope == rules.ScopeFile, f.Apart:
			site = append(site, f)
		}
	}
	return own, site
}

// fieldNames are the names of the lines as their documents write them.
var fieldNames = map[rules.FieldKind]string{
	rules.ContentSignal: "Content-Signal", rules.ContentSignals: "Content-Signals", rules.ContentUsage: "Content-Usage", rules.License: "License",
}

// readLine reads one line of robots.txt, and the path of a Content-Usage; empty: it has none.
func readLine(f rules.Field, address string) (s Statement, path string) {
	name := fieldNames[f.Kind]
	s = Statement{Source: SourceRobots, URL: address, Line: f.Line, Name: name, Text: safetext.Excerpt(name + ": " + f.Value)}
	switch {
	case f.Scope != rules.ScopeGroup:
		s.Note = wholeFile
	case f.Apart:
		s.Note = "a blank line or a Sitemap line is above it: some readers take it for the whole file"
	}
	switch f.Kind {
	case rules.ContentSignal, rules.ContentSignals:
		s.readContentSignal(f.Value, f.Kind == rules.ContentSignal)
	case rules.ContentUsage:
		var preferences string
		path, preferences = splitUsage(f.Value)
		s.readUsage([]string{preferences})
	case rules.License:
		s.Protocol = RSL
		if s.licence = licenceURL(f.Value); s.licence == "" {
			s.Fault = "not an absolute http or https URL"
		}
	}
	return s, path
}

// LicencesIn returns the URLs of the licences that a robots.txt names, each once.
func LicencesIn(p *rules.Policy) (all []string) {
	for _, f := range p.Fields(nil, rules.License) {
		if u := licenceURL(f.Value); u != "" && !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	return all
}

// wholeFile is the Note of a line that the groups of the agent have none of.
const wholeFile = "a line of the whole file; the agent's own group has none"

// licenceURL returns value if it is the absolute URL of a licence; otherwise it is empty.
func licenceURL(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.User != nil {
		return ""
	}
	if _, err := rules.OriginOf(u); err != nil {
		return ""
	}
	return u.String()
}

// readContentSignal reads the value of a Content-Signal: "search=yes, ai-train=no". A member
// that cannot be read has no effect on others. exact is false for one with a name that is
// nearly the right one: it permits nothing.
func (s *Statement) readContentSignal(value string, exact bool) {
	s.Protocol = ContentSignal
	for _, m := range signalMembers(value) {
		switch {
		case m.fault == recordedOnly:
			s.Note = strings.TrimPrefix(s.Note+"; use is recorded only", "; ")
		case m.fault == "" && (exact || m.answer == Disallow):
			s.say(m.answer, m.about...)
		case m.fault == "":
			s.unclearly("the name is not Content-Signal", m.about...)
		case m.fault == SignalList:
			s.unclearly("not a list of key=value", m.about...)
		case m.fault == SignalKey && m.answer == Disallow:
			s.unclearly("a key is unknown", m.about...)
		case m.fault == SignalValue, m.fault == SignalCase:
			s.unclearly("the value of "+m.key+" is neither yes nor no", m.about...)
		}
		s.parametersReserve(m.parameters)
	}
}

// signalMember is a member of a Content-Signal.
type signalMember struct {
	text       string      // as the site wrote it
	key        string      // in lower case
	about      []Category  // nil: it may be any
	answer     Answer      // Disallow of an unknown key: it may be a reservation
	fault      FindingKind // why it says nothing; empty: it says answer
	parameters string      // behind a semicolon
}

// recordedOnly is the fault of a member that says nothing of a use.
const recordedOnly FindingKind = "signal-use"

// signalMembers returns the members of a Content-Signal. Between commas without anything
// there is none.
func signalMembers(value string) (all []signalMember) {
	for part := range strings.SplitSeq(value, ",") {
		one, parameters, _ := strings.Cut(part, ";")
		key, v, has := strings.Cut(one, "=")
		m := signalMember{text: part, key: strings.ToLower(strings.TrimSpace(key)), parameters: parameters}
		_, own := signalKeys[m.key]
		about := keyUses(m.key)
		switch {
		case strings.TrimSpace(part) == "" && strings.TrimSpace(value) != "":
			continue
		case m.key == "use" && has:
			m.fault = recordedOnly
		case !has || strings.ContainsAny(m.key, " \t/"):
			m.fault = SignalList
		case about == nil:
			if m.fault = SignalKey; denies(v) {
				m.answer = Disallow
			}
		case denies(v):
			m.answer, m.about = Disallow, about
		case own && strings.TrimSpace(part) == m.key+"=yes":
			m.answer, m.about = Allow, about
		case strings.ContainsAny(strings.TrimSpace(v), " \t="):
			m.fault = SignalList // perhaps several members
		default:
			if m.fault, m.about = SignalValue, about; own && strings.EqualFold(strings.TrimSpace(v), "yes") {
				m.fault = SignalCase
			}
		}
		all = append(all, m)
	}
	return all
}

// signalKeys are the keys of Content-Signal.
var signalKeys = map[string]Category{"search": Search, "ai-input": AIInput, "ai-train": TrainAI}

// usageLabels are the labels of Content-Usage, in all drafts of the vocabulary.
var usageLabels = map[string][]Category{
	"train-ai": {TrainAI}, "train-genai": {TrainAI}, "genai": {TrainAI}, "ai": {TrainAI},
	"ai-input": {AIInput}, "ai-use": {AIInput}, "ai-output": {AIInput}, "inference": {AIInput},
	"search": {Search},
	"all":    collective, "bots": collective, "tdm": collective,
}

// collective are the categories of a label for every use.
var collective = []Category{Search, AIInput, TrainAI, TDM}

// splitUsage returns the path of a Content-Usage in robots.txt, empty for none, and its
// dictionary (AIPREF attach §4).
func splitUsage(value string) (path, preferences string) {
	if !strings.HasPrefix(value, "/") {
		return "", value
	}
	if i := strings.IndexAny(value, " \t"); i >= 0 {
		return value[:i], strings.Trim(value[i:], " \t")
	}
	return value, ""
}

// parametersReserve records what in the parameters of a member is meant for a member of its
// own that denies a use, behind a semicolon in place of a comma.
func (s *Statement) parametersReserve(parameters string) {
	for parameters != "" {
		var one string
		one, parameters = structured.Cut(parameters, ';')
		key, value, _ := strings.Cut(one, "=")
		if about := keyUses(strings.ToLower(strings.TrimSpace(key))); about != nil && denies(value) {
			s.unclearly("a preference is behind a semicolon", about...)
		}
	}
}

// readUsage reads a Content-Usage (AIPREF vocabulary §6): a dictionary whose values are
// the tokens y and n. Of one that cannot be read as a whole only what is clearly a reservation
// counts.
func (s *Statement) readUsage(lines []string) {
	s.Protocol = ContentUsage
	members, err := structured.Dictionary(lines)
	if err != nil {
		s.readUsageLoosely(strings.Join(lines, ","))
		return
	}
	specific := Statement{Protocol: ContentUsage}
	for _, m := range members {
		about := keyUses(m.Key)
		of := &specific
		if len(about) > 1 {
			of = s
		}
		switch {
		case m.Token == "y" && len(usageLabels[m.Key]) > 0:
			of.say(Allow, about...)
		case about != nil && denies(m.Text):
			of.say(Disallow, about...)
		case about != nil:
			of.unclearly("the value of "+m.Key+" is neither y nor n", about...)
		case denies(m.Text), m.Text == "?1" && strings.HasPrefix(m.Key, "no"): // "no-train-ai"
			of.unclearly("a label is unknown")
		}
		of.parametersReserve(m.Parameters)
	}
	s.Fault = cmp.Or(specific.Fault, s.Fault)
	for c, a := range specific.Says {
		if a == Unknown {
			s.say(a, c)
			continue
		}
		memo.Set(&s.Says, c, a)
	}
}

// readUsageLoosely reads a Content-Usage that is no dictionary.
func (s *Statement) readUsageLoosely(value string) {
	s.Fault = "not a dictionary"
	for value != "" {
		var member string
		member, value = structured.Cut(value, ',')
		one, parameters, _ := strings.Cut(member, ";")
		key, v, _ := strings.Cut(one, "=")
		about := keyUses(strings.ToLower(strings.TrimSpace(key)))
		switch {
		case strings.TrimSpace(member) == "":
		case about != nil && denies(v):
			s.say(Disallow, about...)
		case about == nil, strings.ContainsAny(strings.TrimSpace(v), " \t="): // perhaps several members
			s.unclearly(s.Fault)
		default:
			s.unclearly(s.Fault, about...)
		}
		s.parametersReserve(parameters)
	}
}

// statements returns the lines that concern a target. Of the Content-Usage lines those of
// the longest path count, in each reading of the target; those of equal length all do. Where a
// line that counts is not understood, those count too that would without it.
func (r *Robots) statements(t *rules.Target, profile rules.Profile) []Statement {
	if r == nil {
		return nil
	}
	first := len(r.lines) - r.usage.Len()
	all := slices.Clone(r.lines[:first])
	usage := r.lines[first:]
	chosen := make(map[int]bool)
	choose := func(only func(i int) bool) (unclear []Category) {
		for _, selection := range r.usage.Select(t, profile, rules.Longest, only) {
			for _, i := range selection.Of {
				if chosen[i] {
					continue
				}
				chosen[i] = true
				s := usage[i]
				s.Variant = selection.Variant
				all, unclear = append(all, s), append(unclear, s.unclears()...)
			}
		}
		return unclear
	}
	unclear := choose(func(i int) bool { return !usage[i].spare })
	for _, only := range []func(i int) bool{
		func(i int) bool { return !usage[i].spare && len(usage[i].unclears()) == 0 },
		func(i int) bool { return usage[i].spare && len(usage[i].unclears()) == 0 },
	} {
		if len(unclear) > 0 {
			from := len(all)
			choose(only)
			for i := range all[from:] {
				all[from+i] = all[from+i].about(unclear)
			}
		}
	}
	return all
}
