package replay

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/acl"
	"heed/internal/audit/store"
	"heed/internal/signal"
	"heed/rules"
)

// Options are the options of Judge.
type Options struct {
	// ParseRules parses recorded settings, without the files they name; never nil.
	ParseRules func(text string) (*acl.Rules, error)
	// If is a set of hypothetical changes; nil: none, decisions are only compared
	// with the record.
	If *If
	// Purposes are those that all clients are taken to have stated, in Result.Uses; nil:
	// their own, which decisions are compared by.
	Purposes []signal.Purpose
	// Progress, if not nil, is called with the number of entries judged and of all
	// entries, from several goroutines.
	Progress func(done, all int64)
}

// Result counts the entries of a record by Class.
type Result struct {
	Entries int64 `json:"entries"`
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
	s := &scan{Options: o, record: record, library: &library{parseRules: o.ParseRules}, result: newResult()}
	if o.If != nil {
		s.result.If = &Changes{Sites: []SiteChange{}, Examples: []Example{}, bySite: map[rules.Origin]*SiteChange{}}
	}
	if o.Purposes != nil {
		s.result.Uses = newUses(o.Purposes)
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	s.result.finish()
	return s.result, nil
}

func newResult() *Result {
	return &Result{Engine: rules.Engine, Engines: map[int]int64{}, Why: []Why{}, Examples: []Example{}, why: map[Why]int64{}}
}

// chunk is the number of entries that a worker takes at a time.
const chunk = 8192

// scan is one run of Judge.
type scan struct {
	Options
	record  *store.Record
	library *library
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
		if n.Exempt {
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
	return s.work(ctx)
}

// work runs one worker per processor until all chunks are judged.
func (s *scan) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			if err := s.worker(ctx); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
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
	var then *assessment
	if s.If != nil {
		if then, err = s.If.judge(s.library, a); err != nil {
			return err
		}
	}
	var use *usedAs
	if s.Purposes != nil && !late {
		if use, err = s.library.judgeUse(r, a, s.Purposes, s.If); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.count(a)
	if s.Purposes != nil && !late {
		s.result.Uses.count(use)
	}
	if then != nil {
		s.result.If.count(a, then)
	}
	return nil
}
