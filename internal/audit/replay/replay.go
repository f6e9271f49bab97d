package replay

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"heed/internal/audit/store"
	"heed/internal/base/safetext"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/rules"
)

// Options are the options of Judge.
type Options struct {
	// ParseRules parses recorded settings, without the files they name; never nil.
	ParseRules func(text string) (*acl.Rules, error)
	// If is a set of hypothetical changes; nil: none, decisions are only compared
	// with the record.
	If *If
	// Profiles are judged by as well, each on its own: see Result.Profiles.
	Profiles []rules.Profile
	// Purposes are those that all clients are taken to have stated, in Result.Uses; nil:
	// their own, which decisions are compared by.
	Purposes []signal.Purpose
	// Progress, if not nil, is called with the number of entries judged and of all
	// entries, from several goroutines.
	Progress func(done, all int64)
}

// Result counts the entries of a record by Class.
type Result struct {
	File    string `json:"file"` // the record
	Entries int64  `json:"entries"`
	// Same counts the entries with the same verdict, reason, group, rule and line.
	Same int64 `json:"same"`
	// Late counts the late verdicts among the judged; they are counted in Same and
	// the following as well.
	Late        int64 `json:"late_verdicts"`
	Different   int64 `json:"different"`
	OtherEngine int64 `json:"other_engine"`
	Redacted    int64 `json:"redacted"`
	Incomplete  int64 `json:"incomplete"`
	NotByRules  int64 `json:"not_by_rules"`
	// Withheld counts the answers that were delivered and would be withheld now: they have a
	// Content-Signal field, which the heed that recorded them did not obey. The decisions on
	// their requests are counted above all the same.
	Withheld int64 `json:"would_be_withheld"`
	// Exempt is the recorded number of requests of exempt clients, of which nothing
	// else is recorded.
	Exempt int64 `json:"exempt"`

	// Engines counts the entries by the number of the engine that decided; Engine
	// is the number of this one.
	Engine  int           `json:"engine"`
	Engines map[int]int64 `json:"engines"`
	// Why counts the entries that are not Same, by class and reason.
	Why []Why `json:"why"`
	// Examples are the first entries that differ, at most maxExamples; those of
	// other engines are last.
	Examples []Example `json:"examples"`

	// If is the effect of Options.If; nil without it.
	If *Changes `json:"if,omitempty"`
	// Profiles are the effects of Options.Profiles, in their order.
	Profiles []*Changes `json:"-"`
	// Uses is what Options.Purposes lead to; nil without them.
	Uses *Uses `json:"uses,omitempty"`

	why map[Why]int64 // keys without counts
}

// Why counts the entries of a class with a recorded reason and an explanation.
type Why struct {
	Class  Class  `json:"class"`
	Reason string `json:"reason"`
	Why    string `json:"why,omitempty"`
	Count  int64  `json:"count"`
}

// maxExamples bounds Result.Examples and Changes.Examples.
const maxExamples = 20

// Example is an entry with a different verdict.
type Example struct {
	Seq      int64         `json:"seq"`
	ID       string        `json:"id"`
	Time     time.Time     `json:"time"`
	URL      string        `json:"url"`
	Agent    string        `json:"user_agent"`
	Recorded store.Verdict `json:"recorded"`
	Now      store.Verdict `json:"now"`
	Engine   int           `json:"engine"` // that decided
	Late     bool          `json:"late,omitempty"`
	What     string        `json:"what,omitempty"` // an explanation; empty: none

	order int64 // among the Examples
}

// Judge judges all entries of a record again, on all processors.
func Judge(ctx context.Context, record *store.Record, o Options) (*Result, error) {
	s := &scan{Options: o, record: record, library: &library{parseRules: o.ParseRules}, result: newResult(record.Path)}
	if o.If != nil {
		s.result.If = s.add(o.If)
	}
	for i := range o.Profiles {
		s.result.Profiles = append(s.result.Profiles, s.add(&If{Profile: &o.Profiles[i]}))
	}
	if o.Purposes != nil {
		s.result.Uses = newUses(o.Purposes)
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	for _, c := range s.changes {
		c.finish()
	}
	s.result.finish()
	return s.result, nil
}

// add adds f to what every entry is judged by.
func (s *scan) add(f *If) *Changes {
	c := &Changes{Sites: []SiteChange{}, Examples: []Example{}, bySite: map[rules.Origin]*SiteChange{}}
	s.ifs, s.changes = append(s.ifs, f), append(s.changes, c)
	return c
}

func newResult(file string) *Result {
	return &Result{File: file, Engine: rules.Engine, Engines: map[int]int64{}, Why: []Why{}, Examples: []Example{}, why: map[Why]int64{}}
}

// chunk is the number of entries that a worker takes at a time.
const chunk = 8192

// scan is one run of Judge.
type scan struct {
	Options
	record  *store.Record
	library *library
	ifs     []*If
	changes []*Changes // of ifs
	last    int64
	next    atomic.Int64 // the first entry of the next chunk
	done    atomic.Int64
	all     int64

	mu     sync.Mutex
	result *Result
}

func (s *scan) run(ctx context.Context) error {
	r, err := s.record.Read(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := r.File()
	err = errors.Join(err, r.Counted(&store.Filter{}, func(n *store.Counted) {
		if n.What == "exempt" {
			s.result.Exempt += n.Count
		}
	}))
	if err != nil {
		return err
	}
	s.last, s.all = f.LastSeq, f.LastSeq-f.FirstSeq+1
	if uint64(f.LastSeq-f.FirstSeq) >= uint64(f.Decisions+f.Elsewhere) { // with gaps, which would take as long as decisions
		return s.entries(r, f.FirstSeq, f.LastSeq)
	}
	s.next.Store(f.FirstSeq)
	workers, working := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() error { return s.worker(working) })
	}
	err = workers.Wait()
	return cmp.Or(context.Cause(ctx), err)
}

// worker judges chunks until there are no more, all in one snapshot of the
// record.
func (s *scan) worker(ctx context.Context) error {
	r, err := s.record.Read(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		from := s.next.Add(chunk) - chunk
		if from > s.last {
			return nil
		}
		if err := s.entries(r, from, min(from+chunk-1, s.last)); err != nil {
			return err
		}
		if done := s.done.Add(chunk); s.Progress != nil {
			s.Progress(min(done, s.all), s.all)
		}
	}
}

// entries judges the entries from first to last.
func (s *scan) entries(r *store.Reader, first, last int64) error {
	return r.Entries(&store.Filter{First: first, Last: last}, func(e *store.Entry) error {
		if err := s.judge(r, e, false); err != nil || e.Late == 0 {
			return err
		}
		return s.judge(r, e, true)
	})
}

// judge judges an entry, or its late verdict, and counts the result.
func (s *scan) judge(r *store.Reader, e *store.Entry, late bool) error {
	a, err := s.library.load(r, e, late)
	if err != nil {
		return err
	}
	if err := a.loadPolicy(s.library, r); err != nil {
		return err
	}
	a.judge(s.library)
	then, doubt := make([]*assessment, len(s.ifs)), a.doubt
	for i, f := range s.ifs {
		a.doubt = doubt // which judging by another may have set
		if then[i], err = f.judge(s.library, r, a); err != nil {
			return err
		}
	}
	withheld := !late && a.withheldNow(s.library)
	var use *usedAs
	if s.Purposes != nil && !late {
		if use, err = s.library.judgeUse(r, a, s.Purposes, s.If); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result.count(a); withheld {
		s.result.Withheld++
	}
	if s.Purposes != nil && !late {
		s.result.Uses.count(use)
	}
	for i, c := range s.changes {
		if then[i] != nil {
			c.count(a, then[i])
		}
	}
	return nil
}

// verdictOf returns o as it would be recorded.
func verdictOf(o *judge.Result) store.Verdict {
	return store.Verdict{
		Verdict: o.Verdict.String(), Reason: string(o.Reason), Group: o.Group, Rule: o.Rule, Line: o.Line,
		Token: o.Token, Variant: o.Variant, Unseen: o.Unseen, Settled: o.OperatorReason,
	}
}

// Class is the result of judging an entry again.
type Class string

// The classes.
const (
	Same        Class = "same"         // the same verdict, reason, group, rule and line
	Different   Class = "different"    // another verdict, by an engine of the same number
	OtherEngine Class = "other-engine" // another verdict, by an engine of another number
	Redacted    Class = "redacted"     // the verdict may depend on a redacted part of the target
	Incomplete  Class = "incomplete"   // other data that it rests on is not in the record
	NotByRules  Class = "not-by-rules" // it does not rest on rules or settings
)

// settingsReasons are the reasons of verdicts that rest on the settings alone.
var settingsReasons = map[rules.Reason]bool{
	rules.ReasonRobotsTxt: true, rules.ReasonNotACrawl: true, rules.ReasonNoAgent: true, rules.ReasonOverride: true,
}

// ruleReasons are the reasons of verdicts that rest on a policy and the settings.
var ruleReasons = map[rules.Reason]bool{
	rules.ReasonRule: true, rules.ReasonNoRule: true, rules.ReasonRobotsTxt: true, rules.ReasonRobotsUnavailable: true,
	rules.ReasonRobotsUnreachable: true, rules.ReasonTooComplex: true, rules.ReasonOriginUnreachable: true, rules.ReasonDestination: true,
	rules.ReasonHostOnly: true, rules.ReasonMalformed: true, rules.ReasonOverride: true, rules.ReasonSubresource: true,
}

// count counts an entry that was judged.
func (r *Result) count(a *assessment) {
	if a.late {
		r.Late++
	} else {
		r.Entries++
		r.Engines[a.basis.Engine]++
	}
	switch a.class {
	case Same:
		r.Same++
		return
	case Different:
		r.Different++
		r.Examples = a.addTo(r.Examples, 0)
	case OtherEngine:
		r.OtherEngine++
		r.Examples = a.addTo(r.Examples, 1<<62)
	case Redacted:
		r.Redacted++
	case Incomplete:
		r.Incomplete++
	case NotByRules:
		r.NotByRules++
	}
	r.countWhy(Why{Class: a.class, Reason: a.basis.Reason, Why: a.note})
}

// maxWhys bounds Result.Why. The reasons beyond it are counted under "others", for
// each class: a damaged record may have as many as entries.
const maxWhys = 200

// countWhy counts one more of w.
func (r *Result) countWhy(w Why) {
	if r.why[w] == 0 && len(r.why) >= maxWhys {
		w = Why{Class: w.Class, Reason: "others"}
	}
	r.why[w]++
}

// addTo adds the entry to examples, ordered by rank and then as in the record, of
// which the first maxExamples are kept.
func (a *assessment) addTo(examples []Example, rank int64) []Example {
	order := rank + 2*a.Seq
	if a.late {
		order++
	}
	i, _ := slices.BinarySearchFunc(examples, order, func(x Example, order int64) int { return cmp.Compare(x.order, order) })
	if i == maxExamples {
		return examples
	}
	examples = slices.Insert(examples, i, Example{
		Seq: a.Seq, ID: uuidText(a.ID), Time: a.time().UTC(), URL: urlOf(a.origin, a.Target), Agent: a.client.UserAgent,
		Recorded: a.basis.Verdict, Now: a.verdict, Engine: a.basis.Engine, Late: a.late, What: a.note, order: order,
	})
	return examples[:min(len(examples), maxExamples)]
}

// finish sets the lists that are made of counts.
func (r *Result) finish() {
	for w, n := range r.why {
		w.Count = n
		r.Why = append(r.Why, w)
	}
	slices.SortFunc(r.Why, func(a, b Why) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Why, b.Why))
	})
	if r.Uses != nil {
		r.Uses.finish()
	}
}

// urlOf returns the URL that was requested, with the target as safetext.Octets writes
// it; empty when the host is not known.
func urlOf(o rules.Origin, target string) string {
	if o.Host == "" {
		return ""
	}
	return o.String() + safetext.Octets(target)
}

// uuidText formats a UUID as text (RFC 9562 §4).
func uuidText(id []byte) string {
	if len(id) != 16 {
		return hex.EncodeToString(id)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
