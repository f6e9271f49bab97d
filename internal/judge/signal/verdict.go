package signal

import (
	"slices"
	"strings"

	"heed/internal/judge/signal/page"
	"heed/rules"
)

// Verdict is what a site states about the use of one page by one agent. As JSON it is
// stored with the record of a request, and can be asked for other purposes later. It must
// not be changed.
type Verdict struct {
	Profile string `json:"profile"`
	// Crawl is set when robots.txt allows the request; without it there is no usage
	// verdict, and all else is empty.
	Crawl bool `json:"crawl"`
	// Results are the answers by category; a category that is missing is unknown.
	Results    map[Category]Result `json:"results,omitempty"`
	Statements []Statement         `json:"statements,omitempty"` // in the order of their sources
	// Dropped is the number of statements that were read and are not kept: they decided
	// nothing, and there were too many.
	Dropped int `json:"dropped,omitzero"`
	// TooComplex is set when not all was judged: a document has too many statements, or
	// comparing their paths would take too long.
	TooComplex bool `json:"too_complex,omitzero"`
	// Page is "whole" when the head of the page was read, a page.Why when it was not, or
	// not to its end, and empty when it was not looked at.
	Page string `json:"page,omitempty"`
	// Reference is the operator's reference to a contract, by which demands of licences are
	// met.
	Reference string `json:"reference,omitempty"`
}

// Result is the answer about one category.
type Result struct {
	Answer Answer `json:"answer"`
	// By are the statements that gave the answer, as indexes of Statements.
	By []int `json:"by,omitempty"`
	// Unmet are the licences that ask for something first, as indexes of Statements.
	Unmet      []int      `json:"unmet,omitempty"`
	Precedence Precedence `json:"precedence,omitempty"`
}

// Refusal is why a page is refused for a purpose.
type Refusal struct {
	Purpose  Purpose
	Category Category
	Reason   rules.Reason // rules.ReasonSignal, rules.ReasonLicence or rules.ReasonTooComplex
	// Statement is the one that decided; nil when not all could be judged, or when a page or a
	// licence that could not be read did, under the profile strict.
	Statement *Statement
	Detail    string // in words, without text of the site except the demand of a licence
}

// Decision returns the decision that r makes about a request that the rules allow by the
// decision given: the statement is in place of a rule.
func (r *Refusal) Decision(allowed rules.Decision) rules.Decision {
	d := rules.Decision{Reason: r.Reason, Group: allowed.Group, Token: allowed.Token, Piece: allowed.Piece, Role: allowed.Role}
	if s := r.Statement; s != nil {
		d.Rule, d.Line, d.Variant = s.Text, s.Line, s.Variant
	}
	return d
}

// Of returns the answer about a category. A nil Verdict knows nothing.
func (v *Verdict) Of(c Category) Answer {
	if v == nil || v.Results[c].Answer == "" {
		return Unknown
	}
	return v.Results[c].Answer
}

// Refuses returns whether the page is refused for any of the purposes, and why: all must
// be allowed. What is too complex to judge is refused. What is unknown is not, except that under the profile strict a
// licence or the head of a page that could not be read is. A nil Verdict refuses nothing.
func (v *Verdict) Refuses(purposes ...Purpose) (r Refusal, refused bool) {
	if v == nil || !v.Crawl {
		return Refusal{}, false
	}
	for _, step := range []func(Purpose) (Refusal, bool){v.disallows, v.demands, v.unjudged, v.unread} {
		for _, p := range purposes {
			if r, refused = step(p); refused {
				r.Purpose, r.Category = p, p.Category()
				return r, true
			}
		}
	}
	return Refusal{}, false
}

// ByTDMRepFile reports whether a page is refused by the site's TDMRep file alone, which the
// page itself may override (TDMRep §5).
func (v *Verdict) ByTDMRepFile(purposes ...Purpose) bool {
	if _, refused := v.Refuses(purposes...); !refused {
		return false
	}
	without := *v
	without.Statements = slices.DeleteFunc(slices.Clone(v.Statements), func(s Statement) bool { return s.Source == SourceTDMRep })
	without.resolve()
	_, refused := without.Refuses(purposes...)
	return !refused
}

// disallows reports whether a statement refuses a purpose.
func (v *Verdict) disallows(p Purpose) (Refusal, bool) {
	result := v.Results[p.Category()]
	if result.Answer != Disallow {
		return Refusal{}, false
	}
	r := Refusal{Reason: rules.ReasonSignal, Statement: v.statement(result.By), Detail: string(p.Category()) + " is disallowed"}
	return r, true
}

// demands reports whether a licence asks for something before it allows a purpose.
func (v *Verdict) demands(p Purpose) (Refusal, bool) {
	s := v.statement(v.Results[p.Category()].Unmet)
	if s == nil || v.Reference != "" {
		return Refusal{}, false
	}
	return Refusal{Reason: rules.ReasonLicence, Statement: s, Detail: "the licence asks for " + s.Demand}, true
}

// unjudged reports whether not all was judged that may refuse.
func (v *Verdict) unjudged(Purpose) (Refusal, bool) {
	return Refusal{Reason: rules.ReasonTooComplex, Detail: "what the site states about the use of its pages is too complex to judge this by"}, v.TooComplex
}

// unread reports whether the profile refuses what could not be read.
func (v *Verdict) unread(p Purpose) (Refusal, bool) {
	if v.Profile != rules.Strict.String() {
		return Refusal{}, false
	}
	for i := range v.Statements {
		s := &v.Statements[i]
		switch {
		case !s.unclear(p.Category()), s.Source == SourceTDMRep && v.overridesFile(p.Category()):
		case s.Protocol != RSL:
			return Refusal{Reason: rules.ReasonSignal, Statement: s, Detail: "what the site states cannot be read: " + s.Fault}, true
		case v.Reference != "":
		case s.unread():
			return Refusal{Reason: rules.ReasonLicence, Statement: s, Detail: "the licence that the site declares cannot be read"}, true
		default:
			return Refusal{Reason: rules.ReasonLicence, Statement: s, Detail: "the site's licence cannot be read: " + s.Fault}, true
		}
	}
	if slices.Contains(incomplete, page.Why(v.Page)) {
		return Refusal{Reason: rules.ReasonSignal, Detail: "the head of the page could not be read to its end (" + v.Page + ")"}, true
	}
	return Refusal{}, false
}

// overridesFile reports whether the header or the page states what counts in place of the site's
// TDMRep file.
func (v *Verdict) overridesFile(c Category) bool {
	return slices.ContainsFunc(v.Statements, func(s Statement) bool {
		return s.Protocol == TDMRepP && s.Source != SourceTDMRep && (s.Says[c] == Allow || s.Says[c] == Disallow)
	})
}

// Unclear reports whether a statement of v may refuse a purpose and is not understood.
func (v *Verdict) Unclear(p Purpose) bool {
	c := p.Category()
	return v != nil && slices.ContainsFunc(v.Statements, func(s Statement) bool {
		return s.unclear(c) && s.Protocol != RobotsTerms && (s.Source != SourceTDMRep || !v.overridesFile(c))
	})
}

// incomplete are the reasons for which a page that has a head was not read.
var incomplete = []page.Why{page.Coding, page.Partial, page.TooLong, page.Unfinished, page.NoMarkup, page.Entities, page.Fault}

// Incomplete reports whether the page has a head that was not read to its end.
func (v *Verdict) Incomplete() bool { return v != nil && slices.Contains(incomplete, page.Why(v.Page)) }

// notFetched is the Note of a statement that declares a licence which was not fetched.
const notFetched = "the licence was not fetched"

// LacksLicence reports whether a licence that the site declares is not in Input.Licences:
// no purpose of the client needed it. It holds for a Verdict from a record as well.
func (v *Verdict) LacksLicence() bool {
	return v != nil && slices.ContainsFunc(v.Statements, func(s Statement) bool { return s.unfetched() })
}

// statement returns the first of the statements; nil when there is none.
func (v *Verdict) statement(indexes []int) *Statement {
	if len(indexes) == 0 || indexes[0] < 0 || indexes[0] >= len(v.Statements) { // a record may be damaged
		return nil
	}
	return &v.Statements[indexes[0]]
}

// Bounds of what a Verdict keeps.
const (
	maxStatements = 60
	maxBy         = 4 // statements that gave one answer
)

// compact drops statements that decided nothing when there are too many.
func (v *Verdict) compact() {
	keep := make(map[int]bool)
	for c, r := range v.Results {
		r.By, r.Unmet = r.By[:min(len(r.By), maxBy)], r.Unmet[:min(len(r.Unmet), maxBy)]
		v.Results[c] = r
		for _, i := range slices.Concat(r.By, r.Unmet) {
			keep[i] = true
		}
	}
	if len(v.Statements) <= maxStatements {
		return
	}
	for _, open := range []func(*Statement) bool{(*Statement).unread, (*Statement).unfetched} {
		if i := slices.IndexFunc(v.Statements, func(s Statement) bool { return open(&s) }); i >= 0 {
			keep[i] = true
		}
	}
	for _, c := range Categories() { // under the profile strict one of these decides
		if i := slices.IndexFunc(v.Statements, func(s Statement) bool { return s.unclear(c) }); i >= 0 {
			keep[i] = true
		}
	}
	room := maxStatements - len(keep)
	at := make(map[int]int)
	var kept []Statement
	for i, s := range v.Statements {
		switch {
		case keep[i]:
		case room > 0 && (len(s.Says) > 0 || s.Fault != ""):
			room--
		default:
			v.Dropped++
			continue
		}
		at[i] = len(kept)
		kept = append(kept, s)
	}
	v.Statements = kept
	for c, r := range v.Results {
		r.By, r.Unmet = moved(r.By, at), moved(r.Unmet, at)
		v.Results[c] = r
	}
}

// moved returns at[i] for each i in indexes: their positions after others were removed.
func moved(indexes []int, at map[int]int) []int {
	var all []int
	for _, i := range indexes {
		all = append(all, at[i])
	}
	return all
}

// Annotation returns the value of the Robots-Verdict field, a dictionary (RFC 9651): what
// is known, with the source of the deciding statement, such as
// "crawl=allow, train-ai=disallow;src=robots". A category that a licence asks something
// for has the parameter demand.
func (v *Verdict) Annotation() string {
	if v == nil {
		return ""
	}
	if !v.Crawl {
		return "crawl=disallow"
	}
	var b strings.Builder
	b.WriteString("crawl=allow")
	for _, c := range Categories() {
		r, known := v.Results[c]
		if !known {
			continue
		}
		b.WriteString(", " + string(c) + "=" + string(r.Answer))
		if s := v.statement(slices.Concat(r.By, r.Unmet)); s != nil {
			b.WriteString(";src=" + string(s.Source))
		}
		if len(r.Unmet) > 0 && r.Answer != Disallow && v.Reference == "" {
			b.WriteString(";demand")
		}
	}
	if v.Incomplete() {
		b.WriteString(", page=" + v.Page)
	}
	return b.String()
}

// AnnotationField is the name of the field whose value Annotation returns. A field of this
// name that a site sends is not heed's.
const AnnotationField = "Robots-Verdict"
