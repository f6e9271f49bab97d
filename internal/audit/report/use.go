package report

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"heed/internal/audit/store"
	"heed/internal/audit/uses"
	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/internal/judge/signal"
	"heed/internal/output/table"
)

// Use is what sites state about the use of their pages, and what they answered: the
// chapter by purpose.
type Use struct {
	Purposes []PurposePart `json:"purposes"`
	// Refusals are the statements by which requests were refused or pages withheld, or
	// would have been, the most first.
	Refusals []UseRefusal `json:"refusals"`
	Answers  []SiteAnswer `json:"site_answers"` // the most first

	cube []useCount
}

// PurposePart counts the requests of clients with one purpose, of those that the
// robots.txt of the site allows. One with several purposes counts under each.
type PurposePart struct {
	Purpose    string        `json:"purpose"`  // notStated: none was stated, and the site stated something
	Requests   int64         `json:"requests"` // the sum of the counts of each category
	Refused    int64         `json:"refused"`  // for this purpose, also those that were only observed
	Categories []CategoryUse `json:"categories"`
}

// CategoryUse counts the requests of a purpose by what sites state about one category.
type CategoryUse struct {
	Category signal.Category `json:"category"`
	Allowed  int64           `json:"allowed"`
	Refused  int64           `json:"refused"` // a licence that asks for something first refuses
	Unknown  int64           `json:"unknown"` // nothing was stated, or not all was read
}

// UseRefusal is how often one statement of a site refused a purpose.
type UseRefusal struct {
	Site     string          `json:"site"`
	Purpose  signal.Purpose  `json:"purpose"`
	Category signal.Category `json:"category"`
	Reason   string          `json:"reason"`
	Verdict  string          `json:"verdict"` // refuse, or would-refuse
	Source   signal.Source   `json:"source,omitempty"`
	Text     string          `json:"text,omitempty"`
	Line     int             `json:"line,omitempty"` // of robots.txt, a licence or a TDMRep file
	Detail   string          `json:"detail"`
	Count    int64           `json:"count"`
	First    time.Time       `json:"first"`
	Last     time.Time       `json:"last"`
}

// SiteAnswer is how often a site refused requests in one way.
type SiteAnswer struct {
	Site   string `json:"site"`
	Answer string `json:"site_answer"`
	Count  int64  `json:"count"`
}

// notStated is the purpose of clients without one.
const notStated = "(not stated)"

// useRow is a cell of the cube of which the counts by purpose are sums.
type useRow struct {
	purpose  string
	origin   int
	category signal.Category
	answer   uses.Answer
	source   signal.Source
	text     string
	line     int
}

// useCount is the number of requests of a cell.
type useCount struct {
	useRow
	site string
	n    int64
}

// answered is a site and the kind of its answer.
type answered struct {
	origin int
	answer string
}

// maxStatements bounds the statements of one site that are counted separately; further
// ones are counted without their text.
const maxStatements = 200

// usage counts by purpose.
type usage struct {
	reader   uses.Reader
	cube     map[useRow]int64
	purposes map[string]*PurposePart
	refusals map[UseRefusal]*UseRefusal // count and times, by those without
	answers  map[answered]int64
	texts    map[int]map[string]bool // by origin
}

func newUsage() usage {
	return usage{
		cube: map[useRow]int64{}, purposes: map[string]*PurposePart{}, refusals: map[UseRefusal]*UseRefusal{},
		answers: map[answered]int64{}, texts: map[int]map[string]bool{},
	}
}

// count counts a request of c to a site that was decided as x says.
func (u *usage) count(q *store.Request, c *client, s site, x *basis, siteName func(int) string) {
	if q.SiteAnswer != "" {
		u.answers[answered{s.origin, q.SiteAnswer}]++
	}
	if !x.used || x.signals == "" && q.Signals == "" && len(c.Purposes) == 0 {
		return
	}
	v, _ := u.reader.Both(x.signals, q.Signals) // what cannot be read is unknown; heed audit verify reports damage
	if v == nil && len(c.Purposes) == 0 {
		return
	}
	names := c.Purposes
	if len(names) == 0 {
		names = []string{notStated}
	}
	for _, name := range names {
		p := u.purposes[name]
		if p == nil {
			p = &PurposePart{Purpose: name}
			for _, c := range signal.Categories() {
				p.Categories = append(p.Categories, CategoryUse{Category: c})
			}
			u.purposes[name] = p
		}
		p.Requests++
		if _, refused := v.Refuses(signal.Purpose(name)); refused && x.bySignal {
			p.Refused++
		}
		u.categories(p, s.origin, v)
	}
	if x.bySignal {
		u.refused(q, c, x, v, siteName(s.origin), s.origin)
	}
}

// categories counts what a site states for a client with a purpose.
func (u *usage) categories(p *PurposePart, origin int, v *signal.Verdict) {
	for i, other := range signal.Purposes() {
		c := &p.Categories[i] // in the same order
		row := useRow{purpose: p.Purpose, origin: origin, category: c.Category, answer: uses.Unknown}
		var statement *signal.Statement
		if r, refused := v.Refuses(other); refused {
			c.Refused++
			row.answer, statement = uses.Refused, r.Statement
		} else if v.Of(c.Category) == signal.Allow {
			c.Allowed++
			row.answer = uses.Allowed
			if by := v.Results[c.Category].By; len(by) > 0 && by[0] >= 0 && by[0] < len(v.Statements) {
				statement = &v.Statements[by[0]]
			}
		} else {
			c.Unknown++
		}
		row.source, row.text, row.line = u.place(origin, statement)
		u.cube[row]++
	}
}

// place returns what identifies a statement of a site; the pages of a site make the same
// one on different lines.
func (u *usage) place(origin int, s *signal.Statement) (source signal.Source, text string, line int) {
	if s == nil {
		return "", "", 0
	}
	texts := u.texts[origin]
	if texts == nil {
		texts = map[string]bool{}
		u.texts[origin] = texts
	}
	if !texts[s.Text] && len(texts) >= maxStatements {
		return s.Source, "", 0
	}
	texts[s.Text] = true
	if s.Source == signal.SourceHeader || s.Source == signal.SourceMeta {
		return s.Source, s.Text, 0
	}
	return s.Source, s.Text, s.Line
}

// refused counts a request that a statement refused.
func (u *usage) refused(q *store.Request, c *client, x *basis, v *signal.Verdict, site string, origin int) {
	key := UseRefusal{Site: site, Reason: x.reason, Verdict: x.verdict}
	stated, err := uses.Purposes(c.Purposes)
	if r, refused := v.Refuses(stated...); refused && err == nil {
		key.Purpose, key.Category, key.Detail = r.Purpose, r.Category, r.Detail
		key.Source, key.Text, key.Line = u.place(origin, r.Statement)
	}
	r := memo.At(u.refusals, key)
	r.Count++
	extend(&r.First, &r.Last, moment(q.Time))
}

// finish returns the chapter; nil when there is nothing in it.
func (u *usage) finish(siteName func(int) string) *Use {
	if len(u.purposes) == 0 && len(u.answers) == 0 {
		return nil
	}
	use := &Use{Purposes: []PurposePart{}, Refusals: []UseRefusal{}, Answers: []SiteAnswer{}}
	for row, n := range u.cube {
		use.cube = append(use.cube, useCount{row, siteName(row.origin), n})
	}
	for _, p := range u.purposes {
		use.Purposes = append(use.Purposes, *p)
	}
	for r, n := range u.refusals {
		r.Count, r.First, r.Last = n.Count, n.First, n.Last
		use.Refusals = append(use.Refusals, r)
	}
	for a, n := range u.answers {
		use.Answers = append(use.Answers, SiteAnswer{siteName(a.origin), a.answer, n})
	}
	use.order()
	slices.SortFunc(use.cube, func(a, b useCount) int {
		return cmp.Or(cmp.Compare(a.purpose, b.purpose), cmp.Compare(a.site, b.site), cmp.Compare(a.category, b.category),
			cmp.Compare(a.answer, b.answer), cmp.Compare(a.source, b.source), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	})
	return use
}

// order puts the lists in order.
func (u *Use) order() {
	byMost(u.Purposes, func(p *PurposePart) (int64, string) { return p.Requests, p.Purpose })
	byMost(u.Refusals, func(r *UseRefusal) (int64, string) {
		return r.Count, r.Site + "\x00" + string(r.Purpose) + "\x00" + r.Verdict + "\x00" + r.Text
	})
	byMost(u.Answers, func(a *SiteAnswer) (int64, string) { return a.Count, a.Site + "\x00" + a.Answer })
}

// Why returns the statement that refused, with its place; the texts in it are escaped.
func (r *UseRefusal) Why() string {
	words := words(r.Reason)
	if r.Detail != "" {
		words += ": " + safetext.Visible(r.Detail)
	}
	if r.Text == "" {
		return words
	}
	place := useSources[r.Source]
	if r.Line > 0 {
		place += " line " + strconv.Itoa(r.Line)
	}
	return words + "; " + place + ": " + safetext.Visible(r.Text)
}

// useSources name the places of statements.
var useSources = map[signal.Source]string{
	signal.SourceRobots: "robots.txt", signal.SourceTDMRep: "TDMRep file", signal.SourceLicence: "licence",
	signal.SourceHeader: "header", signal.SourceMeta: "head of the page",
}

// Known are the categories of which sites state something, or that the purpose is.
func (p *PurposePart) Known() []CategoryUse {
	return slices.DeleteFunc(slices.Clone(p.Categories), func(c CategoryUse) bool {
		return c.Allowed+c.Refused == 0 && c.Category != signal.Purpose(p.Purpose).Category()
	})
}

// useColumns are the columns of WriteCSV when the chapter by purpose is asked for. A row of
// the kind "use" counts requests with one purpose and what the site states about one
// category; one of the kind "site-answer" counts refusals of the site.
var useColumns = []string{"kind", "purpose", "site", "category", "answer", "source", "text", "line", "requests"}

// csv writes the chapter, which may be nil.
func (u *Use) csv(w *table.Writer) {
	if u == nil {
		return
	}
	for _, row := range u.cube {
		line := any(nil)
		if row.line > 0 {
			line = int64(row.line)
		}
		_ = w.Row("use", row.purpose, row.site, row.category, row.answer, row.source, row.text, line, row.n)
	}
	for _, a := range u.Answers {
		_ = w.Row("site-answer", nil, a.Site, nil, a.Answer, nil, nil, nil, a.Count)
	}
}
