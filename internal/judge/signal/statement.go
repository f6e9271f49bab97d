package signal

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"heed/rules"
)

// Answer is what a statement or a verdict says about a category.
type Answer string

// The answers.
const (
	Unknown  Answer = "unknown"
	Allow    Answer = "allow"
	Disallow Answer = "disallow"
)

// Source is where a statement was made.
type Source string

// The sources, in the order in which they are read.
const (
	SourceRobots  Source = "robots"  // a line of robots.txt
	SourceTDMRep  Source = "tdmrep"  // an entry of /.well-known/tdmrep.json
	SourceLicence Source = "licence" // a licence document
	SourceHeader  Source = "header"  // a header field of the answer
	SourceMeta    Source = "meta"    // an element in the head of the page
)

// Protocol is the convention that gives a statement its meaning.
type Protocol string

// The protocols.
const (
	ContentSignal Protocol = "content-signal"
	ContentUsage  Protocol = "content-usage"
	RobotsTerms   Protocol = "robots-terms" // META robots, X-Robots-Tag, Robots-Tag
	TDMRepP       Protocol = "tdmrep"
	RSL           Protocol = "rsl"
)

// protocols are all of them: a statement of another one would be collected and never count.
var protocols = []Protocol{ContentSignal, ContentUsage, RSL, TDMRepP, RobotsTerms}

// Statement is one thing that a site states about the use of a page, with its place. Name
// and Text are the site's: hostile until escaped.
type Statement struct {
	Source   Source   `json:"source"`
	Protocol Protocol `json:"protocol"`
	URL      string   `json:"url"`           // of the document or the answer that contains it
	Line     int      `json:"line,omitzero"` // from 1; 0 for a header field
	// Name is the field, the member or the element, such as "Content-Signal" or "meta
	// robots".
	Name string `json:"name"`
	Text string `json:"text"` // as the site wrote it, at most safetext.MaxExcerpt octets
	// Says is what it means; categories that it does not speak of are missing.
	Says map[Category]Answer `json:"says,omitempty"`
	// Terms are the words of a META robots or an X-Robots-Tag, in lower case; also those
	// that refuse nothing.
	Terms []string `json:"terms,omitempty"`
	// Demand is what a licence asks for before it allows the categories of Says, and heed
	// does not do; empty when it is nothing.
	Demand string `json:"demand,omitempty"`
	// Only is the uses that a licence permits, when it refuses all others: "ai-train". Often
	// empty.
	Only []string `json:"only,omitempty"`
	// Fault is why the statement, or a part of it, has no meaning; empty when it was read.
	Fault string `json:"fault,omitempty"`
	// Note is a remark about how it was read; often empty.
	Note string `json:"note,omitempty"`
	// Variant is the reading of the target in which the statement counts, as in
	// rules.Decision: empty for the target as it was sent, and for statements without a path.
	Variant string `json:"variant,omitempty"`
	// Expired is set when its unavailable_after had passed.
	Expired bool `json:"expired,omitzero"`

	spare   bool   // of robots.txt: it counts only where a line of the agent's group is not understood
	licence string // the URL of the licence that a line of robots.txt declares
}

// say records what a statement says about categories. Of several answers about one of them
// disallow counts before unknown, which means that it speaks of it and is not understood, and
// unknown before allow.
func (s *Statement) say(a Answer, categories ...Category) {
	if s.Says == nil {
		s.Says = make(map[Category]Answer, len(categories))
	}
	for _, c := range categories {
		if before := s.Says[c]; before == "" || before == Allow || a == Disallow {
			s.Says[c] = a
		}
	}
}

// unclearly records that s may refuse some uses and is not understood; none: all that its
// protocol speaks of.
func (s *Statement) unclearly(fault string, about ...Category) {
	if len(about) == 0 {
		about = concerned[s.Protocol]
	}
	s.Fault = fault
	s.say(Unknown, about...)
}

// about returns s as far as it is about some categories.
func (s Statement) about(categories []Category) Statement {
	s.Says = maps.Clone(s.Says)
	maps.DeleteFunc(s.Says, func(c Category, _ Answer) bool { return !slices.Contains(categories, c) })
	return s
}

// unclears returns the categories about which s may refuse and is not understood.
func (s *Statement) unclears() (all []Category) {
	for _, c := range Categories() {
		if s.unclear(c) {
			all = append(all, c)
		}
	}
	return all
}

// words returns what a statement says, in the order of the categories.
func (s *Statement) words() []string {
	var all []string
	for _, c := range slices.Sorted(maps.Keys(s.Says)) {
		all = append(all, string(c)+" "+string(s.Says[c]))
	}
	return all
}

// String describes what the statement says, for people: "train-ai disallow", "nothing".
func (s *Statement) String() string {
	return cmp.Or(strings.Join(s.words(), ", "), "nothing")
}

// unfetched reports whether s declares a licence that was not fetched.
func (s *Statement) unfetched() bool { return s.Note == notFetched }

// unread reports whether s declares a licence that cannot be read.
func (s *Statement) unread() bool {
	return s.Protocol == RSL && s.Fault != "" && s.Fault != faultWords
}

// unclear reports whether s may refuse a use and is not understood. A fault in another part of
// it, about other uses, is none here. In records of earlier heeds a statement with a fault says
// nothing where it was not understood.
func (s *Statement) unclear(c Category) bool {
	answer, speaks := s.Says[c]
	switch {
	case s.Fault == "" || answer == Disallow:
		return false
	case s.Protocol == RSL:
		return slices.ContainsFunc(usages, func(u usage) bool { return u.category == c })
	case s.Protocol == RobotsTerms:
		return true
	case speaks:
		return answer == Unknown
	}
	return len(s.Says) == 0 && slices.Contains(concerned[s.Protocol], c)
}

// concerned are the categories that a protocol speaks of, without those that are not listed.
var concerned = map[Protocol][]Category{ContentSignal: {Search, AIInput, TrainAI}, ContentUsage: collective, TDMRepP: {TDM, TrainAI}}

// answers returns what s says about a category under a profile. Terms of no standing, noai and
// noimageai, refuse training under strict alone: no operator of a crawler documents that it
// follows them, and they have no definition.
func (s *Statement) answers(c Category, profile rules.Profile) (a Answer, speaks bool) {
	if profile == rules.Strict && c == TrainAI && s.Protocol == RobotsTerms && !strings.HasPrefix(s.Note, besidePage) &&
		(slices.Contains(s.Terms, "noai") || slices.Contains(s.Terms, "noimageai")) {
		return Disallow, true
	}
	a, speaks = s.Says[c]
	return a, speaks
}
