package signal

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/internal/judge/signal/page"
	"heed/rules"
)

// Input is what Judge needs to know about one request. Members that are zero are sources
// without statements.
type Input struct {
	URL     string // of the page, for the place of its statements
	Origin  rules.Origin
	Target  *rules.Target // the path and query as they are sent
	Agent   *rules.Agent
	Profile rules.Profile
	Now     time.Time
	// Crawl is set when robots.txt allows the request. A page that may not be crawled has no
	// usage verdict.
	Crawl  bool
	Robots *Robots
	TDMRep *TDMRep
	// Licences are the documents that were fetched, by their URLs. One that is missing was
	// not needed.
	Licences map[string]Licence
	// Reference is the operator's reference to a contract with the site; what licences ask
	// for counts as met then. Often empty.
	Reference string
	Header    http.Header // of the answer; nil before there is one
	Status    int         // of the answer; 0: any with which a page is sent or confirmed
	Page      *page.Head  // nil when it was not looked at
}

// Judge makes the verdict about one page for one agent.
func Judge(in Input) *Verdict {
	v := &Verdict{Profile: in.Profile.String(), Crawl: in.Crawl, Reference: in.Reference}
	if !in.Crawl {
		return v
	}
	if in.Page != nil {
		v.Page = cmp.Or(string(in.Page.Why), "whole")
	}
	j := &judge{in: in}
	j.collect()
	v.Statements = j.all
	in.Target.Spend(stepsPerStatement * len(j.all))
	v.TooComplex = j.tooMany || in.Target.TooComplex()
	v.resolve()
	return v
}

// stepsPerStatement is what it costs to resolve a statement, in steps of a rules.Target.
const stepsPerStatement = 512

// Declared returns the URLs of the licences that the sources of in declare for the page,
// for Input.Licences.
func Declared(in Input) []string {
	in.Licences = nil
	j := &judge{in: in}
	j.collect()
	return j.declares
}

// collect adds the statements of all sources.
func (j *judge) collect() {
	in := j.in
	j.tooMany = in.Robots != nil && in.Robots.tooMany || in.TDMRep != nil && in.TDMRep.tooMany
	for _, s := range in.Robots.statements(in.Target, in.Profile) {
		if s.Protocol == RSL {
			j.declared(s, s.licence)
		} else {
			j.add(s)
		}
	}
	for _, s := range in.TDMRep.statements(in.Target, in.Profile) {
		j.add(s)
	}
	switch {
	case in.Header == nil:
	case in.Status == 0 || in.Status/100 == 2 || in.Status == http.StatusNotModified:
		j.header(in.Header)
	default:
		j.aside(in.Header)
	}
	if in.Page != nil {
		j.head(in.Page)
	}
}

// Combine returns the verdict of the statements of both, such as the verdict about a
// request and the one about its answer. Either may be nil.
func Combine(request, answer *Verdict) *Verdict {
	switch {
	case request == nil:
		return answer
	case answer == nil, !request.Crawl:
		return request
	}
	v := *request
	v.Page, v.TooComplex = cmp.Or(answer.Page, request.Page), request.TooComplex || answer.TooComplex
	v.Reference = cmp.Or(request.Reference, answer.Reference)
	v.Statements = slices.Concat(request.Statements, answer.Statements)
	v.Dropped += answer.Dropped
	v.resolve()
	return &v
}

// Under returns the verdict that the statements of v lead to under a profile. A nil Verdict
// remains one.
func (v *Verdict) Under(p rules.Profile) *Verdict {
	if v == nil || v.Profile == p.String() {
		return v
	}
	u := *v
	u.Profile = p.String()
	u.resolve()
	return &u
}

// Obeyed returns the verdict to which the statements of a record lead today: the fields
// Content-Signal that earlier heeds recorded only count. It is v if there are none.
func (v *Verdict) Obeyed() *Verdict {
	if v == nil || !slices.ContainsFunc(v.Statements, func(s Statement) bool { return s.Note == unobeyed }) {
		return v
	}
	u := *v
	u.Statements = slices.Clone(v.Statements)
	for i := range u.Statements {
		if s := &u.Statements[i]; s.Note == unobeyed {
			value := strings.TrimPrefix(s.Text, s.Name+": ")
			if len(s.Text) > safetext.MaxExcerpt-utf8.UTFMax { // perhaps cut off within a member
				value = value[:max(0, strings.LastIndexByte(value, ','))]
			}
			s.Note = ""
			s.readContentSignal(value, true)
		}
	}
	u.resolve()
	return &u
}

// unobeyed is the Note of a Content-Signal field in the records of heeds that did not obey it.
const unobeyed = "recorded only: it is defined for robots.txt"

// judge collects the statements of one verdict.
type judge struct {
	in  Input
	all []Statement

	tooMany  bool     // a document has more statements than it may
	declares []string // the licences that are declared
}

// aside adds the statements of the header of an answer without the page, such as a redirect
// or an error: they say nothing of the page.
func (j *judge) aside(h http.Header) {
	from, declares := len(j.all), len(j.declares)
	j.header(h)
	j.declares = j.declares[:declares]
	for i := from; i < len(j.all); i++ {
		s := &j.all[i]
		s.Says, s.Demand, s.Fault, s.Note = nil, "", "", besidePage+strconv.Itoa(j.in.Status)+" comes without the page"
	}
}

// besidePage begins the Note of a statement that came without the page.
const besidePage = "recorded only: status "

func (j *judge) add(s Statement) { j.all = append(j.all, s) }

// Precedence is the rule by which one answer was made of several. The list is closed and
// its identifiers are stable.
type Precedence string

// The rules of precedence.
const (
	Agreed         Precedence = "agreed"          // all statements say the same, or there is one
	DisallowWins   Precedence = "disallow-wins"   // any disallow wins over allow
	LaterSource    Precedence = "later-source"    // TDMRep: the header overrides the file, the page both
	AllWins        Precedence = "all-wins"        // the reading of 1997: ALL wins over other terms
	PermissiveWins Precedence = "permissive-wins" // the reading of 1997: INDEX wins over NOINDEX
)

// resolve makes the results from the statements, and drops those that decided nothing when there
// are too many.
func (v *Verdict) resolve() {
	v.Results = nil
	profile, _ := rules.ParseProfile(v.Profile) // of an unknown one the standard
	for _, c := range Categories() {
		var result Result
		for _, p := range protocols {
			r := v.within(p, c, profile)
			unmet := append(result.Unmet, r.Unmet...)
			switch {
			case r.Answer == "":
			case result.Answer == "":
				result = r
			case result.Answer == r.Answer:
				result.By = append(result.By, r.By...)
				if result.Precedence == Agreed {
					result.Precedence = r.Precedence
				}
			case r.Answer == Disallow:
				result.Answer, result.By, result.Precedence = Disallow, r.By, DisallowWins
			default:
				result.Precedence = DisallowWins
			}
			result.Unmet = unmet
		}
		if result.Answer == "" && len(result.Unmet) > 0 {
			result.Answer = Unknown
		}
		if result.Answer != "" {
			memo.Set(&v.Results, c, result)
		}
	}
	v.compact()
}

// within resolves the statements of one protocol about a category. Without any the
// answer is empty.
func (v *Verdict) within(p Protocol, c Category, profile rules.Profile) Result {
	var r Result
	says := map[Answer][]int{}
	latest := Source("")
	for i := range v.Statements {
		s := &v.Statements[i]
		answer, speaks := s.answers(c, profile)
		if s.Protocol != p || !speaks || answer == Unknown && s.Demand == "" {
			continue
		}
		if s.Demand != "" && answer != Disallow {
			r.Unmet = append(r.Unmet, i)
		}
		if p == TDMRepP && s.Source != latest {
			if len(says) > 0 {
				r.Precedence = LaterSource
			}
			says, latest = map[Answer][]int{}, s.Source
		}
		says[answer] = append(says[answer], i)
	}
	switch {
	case len(says[Disallow]) > 0:
		r.Answer, r.By = Disallow, says[Disallow]
		if p == RobotsTerms && c == Search && profile == rules.REP1994 {
			v.read1997(&r, says)
		} else if len(says[Allow]) > 0 {
			r.Precedence = DisallowWins
		}
	case len(says[Allow]) > 0:
		r.Answer, r.By = Allow, says[Allow]
	}
	if r.Answer != "" && r.Precedence == "" {
		r.Precedence = Agreed
	}
	return r
}

// read1997 reads terms that do not let a page be indexed as in 1997.
func (v *Verdict) read1997(r *Result, says map[Answer][]int) {
	var terms []string
	var permissive []int
	for i := range v.Statements {
		s := &v.Statements[i]
		if s.Protocol != RobotsTerms {
			continue
		}
		if s.Expired { // a later term, which nothing of 1997 contradicts
			return
		}
		terms = append(terms, s.Terms...)
		if slices.Contains(s.Terms, "all") || slices.Contains(s.Terms, "index") {
			permissive = append(permissive, i)
		}
	}
	if index, _ := ReadTerms(rules.REP1994, terms); !index {
		return
	}
	r.Answer, r.By, r.Precedence = Allow, permissive, PermissiveWins
	if slices.Contains(terms, "all") {
		r.Precedence = AllWins
	}
}
