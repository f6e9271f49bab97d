// Package licence reads licence documents of Really Simple Licensing (RSL 1.0) and
// reports on which terms a page may be used. It is pure: it fetches nothing.
//
// A document lists contents, by path or URL; each content has licences, and each licence
// is an offer: what it permits and prohibits, and what it asks for. Parse reads a
// document, Document.Terms finds the most specific content for a page and evaluates its
// licences for one usage.
//
// Where the documents leave room:
//
//   - Tokens are separated by white space or commas. Those of the first version of RSL count
//     as the ones that are in their place today.
//   - An unknown token in a list of permits has no effect, but a list with only unknown ones
//     permits nothing. One in a list of prohibits may be a reservation: it is a fault, and so
//     is an element that is nearly named permits or prohibits. What is clearly a prohibition is
//     read, whatever its case.
//   - Whatever heed cannot do or verify is a demand that is not met: a payment, a licence
//     server, a report, a restriction to certain users or countries. Several demands of
//     one licence must all be met.
//   - A payment without type that has an amount is a price.
//   - A document with a document type declaration is not read: nothing is expanded.
package licence

import (
	"strings"
	"time"

	"heed/rules"
)

// MaxBytes is the length of the longest document that is read.
const MaxBytes = 1 << 20

// The lifetimes of a document in a cache.
const (
	DefaultAge = 24 * time.Hour      // without max-age
	MaxAge     = 30 * 24 * time.Hour // the longest
)

// Usage is a use that a licence speaks of (RSL §3.4.1.1).
type Usage string

// The usages that a page can be judged for.
const (
	Search  Usage = "search"
	AIInput Usage = "ai-input"
	AITrain Usage = "ai-train"
	AIIndex Usage = "ai-index"
)

// words are the words of licences and what they mean: those of RSL 1.0 (§3.4.1.1), and those
// of the first version of 2025, as deployed licences and documents of that time have them.
var words = map[string]string{
	"search": "search", "ai-input": "ai-input", "ai-train": "ai-train", "ai-index": "ai-index", "ai-all": "ai-all", "all": "all",
	"train-ai": "ai-train", "train-genai": "ai-train", "ai-use": "ai-input", "ai-summarize": "ai-input",
}

// Slip is a part of a document that is not written as RSL 1.0 has it.
type Slip struct {
	Line    int      // from 1
	Kind    SlipKind //
	Text    string   // the word or the element, hostile until escaped
	Instead string   // what is meant; empty: it is not known
}

// SlipKind is the kind of a Slip.
type SlipKind uint8

// The kinds.
const (
	EarlierWord       SlipKind = iota // of the first version of RSL
	UnknownPermission                 // a word in permits that has no effect
	UnknownProhibited                 // a word in prohibits that is not understood, or there is none
	OddElement                        // an element that is nearly named permits or prohibits
)

// maxSlips is the number of slips of a document that are kept.
const maxSlips = 100

// Slips returns the slips of the document in their order, at most 100.
func (d *Document) Slips() []Slip { return d.slips }

// Verdict is what a document says about a usage.
type Verdict uint8

// The verdicts. The zero value is Unknown.
const (
	Unknown  Verdict = iota // nothing
	Allow                   // a licence permits it
	Disallow                // it is prohibited, or missing in the list of what is permitted
)

// Terms is the answer of a document about one usage of one page. The zero value is the
// answer of a document that does not speak of the page.
type Terms struct {
	Verdict Verdict
	// Unmet is what must be done first and heed does not do, such as `payment type="use"`;
	// empty when nothing must be.
	Unmet string
	// Text is the deciding licence as the site wrote it, white space joined, at most
	// safetext.MaxExcerpt octets; empty when there is none. It is hostile until escaped.
	Text string
	Line int // where that licence begins, from 1; 0 when there is none
	// Only is the usages that the licence is limited to, when it refuses the usage for that
	// reason: it permits some, and this is not among them. Unknown ones are left out.
	Only []string
	// Fault is set when the licence may prohibit the usage in words that are not understood.
	// Verdict is what the others say.
	Fault bool
}

// Document is a licence document. It is immutable and safe for concurrent use.
type Document struct {
	age      time.Duration
	contents []content
	paths    *rules.Paths // of the contents
	tooMany  bool         // there are more contents and licences than maxElements
	slips    []Slip
}

// content is a part of a site and its licences.
type content struct {
	origin   rules.Origin // of a url that is absolute; zero otherwise
	server   string
	line     int
	licences []licence
	text     string // of its start tag
}

// licence is one offer.
type licence struct {
	permits   []string // of usages
	prohibits []string // likewise
	closed    bool     // there is a list of permitted usages
	unclear   bool     // a word or an element may be a prohibition and is not understood
	demands   string   // what it asks for and heed does not do
	text      string
	line      int
}

// Age returns how long a copy of the document may be used.
func (d *Document) Age() time.Duration { return d.age }

// TooMany reports whether the document has too many contents and licences to be judged.
func (d *Document) TooMany() bool { return d.tooMany }

// Part is the contents of a document that govern a page, in one reading of its target. Of
// those that match, the ones of the most specific pattern do (RSL §4.9).
type Part struct {
	Variant  string // of the target, as in rules.Decision
	document *Document
	contents []int
}

// Parts returns the parts of the document that govern the page at origin and target; each
// must allow a use.
func (d *Document) Parts(origin rules.Origin, target *rules.Target, profile rules.Profile) (all []Part) {
	here := func(i int) bool { return d.contents[i].origin == rules.Origin{} || d.contents[i].origin == origin }
	for _, s := range d.paths.Select(target, profile, rules.Longest, here) {
		all = append(all, Part{s.Variant, d, s.Of})
	}
	return all
}

// stepsPerTerm is what it costs to evaluate a licence for a usage, in steps of a
// rules.Target.
const stepsPerTerm = 256

// Terms returns what the part says about a usage. Of the licences of its contents the one
// that allows most counts: each is an offer, and their order means nothing (RSL §3.1.1).
// target has the budget; what is over it is left out.
func (p Part) Terms(target *rules.Target, usage Usage) Terms {
	best, found := Terms{}, false
	for _, i := range p.contents {
		c := &p.document.contents[i]
		if !target.Spend(stepsPerTerm * (1 + len(c.licences))) {
			break
		}
		for _, t := range c.terms(usage) {
			if !found || rank(t) > rank(best) || rank(t) == rank(best) && best.Fault && !t.Fault {
				best, found = t, true
			}
		}
	}
	return best
}

// terms returns the terms of each licence. A content without licences that names a
// server has the terms of that server.
func (c *content) terms(usage Usage) []Terms {
	var all []Terms
	for i := range c.licences {
		t := c.licences[i].terms(usage)
		if c.server != "" && t.Verdict != Disallow {
			t.Unmet = strings.TrimSuffix("a licence from "+c.server+", "+t.Unmet, ", ")
		}
		all = append(all, t)
	}
	if len(all) == 0 && c.server != "" {
		all = append(all, Terms{Unmet: "a licence from " + c.server, Text: c.text, Line: c.line})
	}
	return all
}

// rank orders the terms of several licences: a use that any of them permits is allowed,
// one without demands first.
func rank(t Terms) int {
	switch {
	case t.Verdict == Disallow:
		return 0
	case t.Unmet != "" && t.Verdict == Unknown:
		return 1
	case t.Unmet != "":
		return 2
	case t.Verdict == Unknown:
		return 3
	}
	return 4
}

// terms returns the terms of one licence (RSL §3.5). A term that names the usage, or all AI
// usages, counts more than "all"; of terms that count the same the prohibition wins. A list of
// permitted usages is closed; without one the licence permits nothing by itself.
func (l *licence) terms(usage Usage) Terms {
	t := Terms{Text: l.text, Line: l.line}
	permitted, prohibited := weight(l.permits, usage), weight(l.prohibits, usage)
	switch {
	case prohibited > 0 && prohibited >= permitted:
		t.Verdict = Disallow
	case permitted > 0:
		t.Verdict = Allow
	case l.closed:
		t.Verdict, t.Only = Disallow, l.permits
	}
	if t.Verdict != Disallow {
		t.Unmet, t.Fault = l.demands, l.unclear
	}
	return t
}

// weight returns how much the tokens say about a usage: 0 nothing, 1 by "all", 2 by its
// name or that of all AI usages.
func weight(tokens []string, usage Usage) int {
	w := 0
	for _, t := range tokens {
		switch {
		case t == string(usage), t == "ai-all" && usage != Search:
			return 2
		case t == "all":
			w = 1
		}
	}
	return w
}
