package signal

import (
	"net/url"
	"slices"
	"strings"

	"heed/internal/safetext"
	"heed/internal/structured"
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
	for _, kind := range []rules.FieldKind{rules.ContentSignal, rules.License, rules.ContentUsage} {
		for _, f := range governing(fields, kind) {
			s, path := readLine(f, address)
			if r.lines = append(r.lines, s); kind == rules.ContentUsage {
				paths = append(paths, path)
			}
		}
	}
	r.usage = rules.NewPaths(paths)
	return r
}

// MaxLines is the number of lines with usage signals that a robots.txt may have, in all of its
// groups. One with more is too complex: it refuses every purpose.
const MaxLines = 2000

// signalFields are the kinds of these lines.
var signalFields = []rules.FieldKind{rules.ContentSignal, rules.ContentUsage, rules.License}

// governing returns the lines of one kind that count: those of the agent's groups, else
// those of the whole file.
func governing(fields []rules.Field, kind rules.FieldKind) []rules.Field {
	var own, site []rules.Field
	for _, f := range fields {
		switch {
		case f.Kind != kind:
		case f.Scope == rules.ScopeGroup:
			own = append(own, f)
		case f.Scope == rules.ScopeFile, f.Apart:
			site = append(site, f)
		}
	}
	if len(own) > 0 {
		return own
	}
	return site
}

// fieldNames are the names of the lines as their documents write them.
var fieldNames = map[rules.FieldKind]string{
	rules.ContentSignal: "Content-Signal", rules.ContentUsage: "Content-Usage", rules.License: "License",
}

// readLine reads one line of robots.txt, and the path of a Content-Usage; empty: it has none.
func readLine(f rules.Field, address string) (s Statement, path string) {
	name := fieldNames[f.Kind]
	s = Statement{Source: SourceRobots, URL: address, Line: f.Line, Name: name, Text: safetext.Excerpt(name + ": " + f.Value)}
	switch {
	case f.Scope != rules.ScopeGroup:
		s.Note = "a line of the whole file; the agent's own group has none"
	case f.Apart:
		s.Note = "a blank line or a Sitemap line is above it: some readers take it for the whole file"
	}
	switch f.Kind {
	case rules.ContentSignal:
		s.Protocol = ContentSignal
		s.readContentSignal(f.Value)
	case rules.ContentUsage:
		s.Protocol = ContentUsage
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

// readContentSignal reads the value of a Content-Signal: "search=yes, ai-train=no". Keys
// and values are read in any case. A member that cannot be read has no effect on others.
func (s *Statement) readContentSignal(value string) {
	for _, m := range signalMembers(value) {
		switch m.fault {
		case "":
			s.say(m.answer, signalKeys[m.key])
		case recordedOnly:
			s.Note = strings.TrimPrefix(s.Note+"; use is recorded only", "; ")
		case SignalList:
			s.Fault = "not a list of key=value"
		case SignalValue:
			s.Fault = "the value of " + m.key + " is neither yes nor no"
		}
	}
}

// signalMember is a member of a Content-Signal.
type signalMember struct {
	text   string // as the site wrote it
	key    string // in lower case
	answer Answer
	fault  FindingKind // why it says nothing; empty: it says answer
}

// recordedOnly is the fault of a member that says nothing of a use.
const recordedOnly FindingKind = "signal-use"

// signalMembers returns the members of a Content-Signal. Between commas without anything
// there is none.
func signalMembers(value string) (all []signalMember) {
	for part := range strings.SplitSeq(value, ",") {
		key, v, has := strings.Cut(part, "=")
		key, v = strings.ToLower(strings.TrimSpace(key)), strings.ToLower(strings.TrimSpace(v))
		_, known := signalKeys[key]
		m := signalMember{text: part, key: key}
		switch {
		case key == "" && !has && strings.TrimSpace(value) != "":
			continue
		case key == "use" && has:
			m.fault = recordedOnly
		case !has || strings.ContainsAny(key, " \t/"):
			m.fault = SignalList
		case !known:
			m.fault = SignalKey
		case v == "yes":
			m.answer = Allow
		case v == "no":
			m.answer = Disallow
		default:
			m.fault = SignalValue
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

// readUsage reads a Content-Usage (AIPREF vocabulary §6): a dictionary whose values are
// the tokens y and n. One that cannot be read as a whole says nothing.
func (s *Statement) readUsage(lines []string) {
	members, err := structured.Dictionary(lines)
	if err != nil {
		s.Fault = "not a dictionary: the whole value has no effect"
		return
	}
	specific := Statement{}
	for _, m := range members {
		answer := map[string]Answer{"y": Allow, "n": Disallow}[m.Token]
		categories := usageLabels[m.Key]
		switch {
		case len(categories) == 0:
		case answer == "":
			s.Fault = "the value of " + m.Key + " is neither y nor n"
		case len(categories) > 1:
			s.say(answer, categories...)
		default:
			specific.say(answer, categories...)
		}
	}
	for c, a := range specific.Says {
		if s.Says == nil {
			s.Says = make(map[Category]Answer, 1)
		}
		s.Says[c] = a
	}
}

// statements returns the lines that concern a target. Of the Content-Usage lines those of
// the longest path count, in each reading of the target; those of equal length all do.
func (r *Robots) statements(t *rules.Target, profile rules.Profile) []Statement {
	if r == nil {
		return nil
	}
	usage := len(r.lines) - r.usage.Len()
	all := slices.Clone(r.lines[:usage])
	chosen := make(map[int]bool)
	for _, selection := range r.usage.Select(t, profile, rules.Longest, nil) {
		for _, i := range selection.Of {
			if !chosen[i] {
				chosen[i] = true
				s := r.lines[usage+i]
				s.Variant = selection.Variant
				all = append(all, s)
			}
		}
	}
	return all
}
