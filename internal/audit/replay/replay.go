package replay

import (
	"context"
	"database/sql"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// Options say how a record is judged again.
type Options struct {
	// Books makes the settings of the text that the record has of them, but for
	// files; never nil.
	Books func(text string) (*terms.Book, error)
	// If is what is taken to have been otherwise; nil: nothing, what was decided
	// is held against what the record has.
	If *If
	// Progress is told how many entries of all have been judged, from several
	// goroutines; nil: nobody is.
	Progress func(done, all int64)

	parse func(rules.Profile, rules.Source, []byte) *rules.Policy // nil: rules.NewAs
}

// Result is what came of judging a record again.
type Result struct {
	Entries int64 `json:"entries"`
	// Same is how many had the same verdict, reason, group, rule and line.
	Same int64 `json:"same"`
	// Late is how many verdicts that followed their requests were judged again
	// as well; they are counted in Same and the others.
	Late        int64 `json:"late_verdicts"`
	Different   int64 `json:"different"`
	OtherEngine int64 `json:"other_engine"`
	Redacted    int64 `json:"redacted"`
	Incomplete  int64 `json:"incomplete"`
	NotByRules  int64 `json:"not_by_rules"`
	// Exempt is how many requests of exempt clients are counted in the record,
	// of which nothing else is kept.
	Exempt int64 `json:"exempt"`

	// Engines is how many entries each engine decided, by its number; Engine is
	// this one's.
	Engine  int           `json:"engine"`
	Engines map[int]int64 `json:"engines"`
	// Why counts what was not judged again, by reason, and what differs by what
	// is to be said of it.
	Why []Why `json:"why"`
	// Examples are the first entries that differ, at most maxExamples; those of
	// another engine come after the others.
	Examples []Example `json:"examples"`

	// If is what would have been otherwise; nil: nothing was asked.
	If *Changes `json:"if,omitempty"`
}

// Why is how many entries are of a class for a reason.
type Why struct {
	Class  Class  `json:"class"`
	Reason string `json:"reason"`
	Why    string `json:"why,omitempty"`
	Count  int64  `json:"count"`
}

// maxExamples is how many entries a Result tells of by themselves.
const maxExamples = 20

// Example is an entry that comes out otherwise.
type Example struct {
	Seq      int64     `json:"seq"`
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	URL      string    `json:"url"`
	Agent    string    `json:"user_agent"`
	Recorded Verdict   `json:"recorded"`
	Now      Verdict   `json:"now"`
	Engine   int       `json:"engine"` // that decided
	Late     bool      `json:"late,omitempty"`
	What     string    `json:"what,omitempty"` // what the verdicts alone do not say
}

// Judge judges all entries of a record again.
func Judge(ctx context.Context, db *sql.DB, o Options) (*Result, error) {
	s := &scan{Options: o, db: db, library: newLibrary(o.Books), result: newResult()}
	if o.parse != nil {
		s.library.parse = o.parse
	}
	if o.If != nil {
		s.result.If = newChanges()
	}
	return s.run(ctx)
}

func newResult() *Result {
	return &Result{Engine: rules.Engine, Engines: map[int]int64{}, Why: []Why{}, Examples: []Example{}}
}

// chunk is how many entries are judged in one go.
const chunk = 8192

// scan is one run of Judge.
type scan struct {
	Options
	db      *sql.DB
	library *library
	last    int64
	next    atomic.Int64 // where the next chunk begins
	done    atomic.Int64
	all     int64

	mu     sync.Mutex
	result *Result
}

func (s *scan) run(ctx context.Context) (*Result, error) {
	var first sql.NullInt64
	var last, exempt sql.NullInt64
	err := s.db.QueryRowContext(ctx, `SELECT (SELECT min(seq) FROM entry), (SELECT max(seq) FROM entry), (SELECT sum(count) FROM exempt WHERE why IS NULL)`).
		Scan(&first, &last, &exempt)
	if err != nil {
		return nil, err
	}
	s.result.Exempt = exempt.Int64
	if first.Valid {
		s.last, s.all = last.Int64, last.Int64-first.Int64+1
		s.next.Store(first.Int64)
		err = s.work(ctx)
	}
	slices.SortFunc(s.result.Why, compareWhy)
	if s.result.If != nil {
		s.result.If.finish()
	}
	return s.result, err
}

// work has as many workers as there are processors judge chunk after chunk.
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

// worker judges chunks until there are no more, all as the record was when it
// began.
func (s *scan) worker(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for {
		from := s.next.Add(chunk) - chunk
		if from > s.last {
			return nil
		}
		part, err := s.chunk(ctx, tx, from, min(from+chunk-1, s.last))
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.result.add(part)
		s.mu.Unlock()
		if done := s.done.Add(chunk); s.Progress != nil {
			s.Progress(min(done, s.all), s.all)
		}
	}
}

const entryQuery = `SELECT e.seq, e.id, e.time, e.asker, e.site, e.ground, e.method, e.target, e.part, e.redacted, o.late
FROM entry e LEFT JOIN outcome o ON o.entry = e.seq WHERE e.seq BETWEEN ? AND ? `

// chunk judges the entries from one number to another.
func (s *scan) chunk(ctx context.Context, tx *sql.Tx, from, to int64) (*part, error) {
	// What entries refer to is read on the same connection: their rows are
	// gathered first.
	entries, err := readEntries(ctx, tx, "", from, to)
	if err != nil {
		return nil, err
	}
	p := newPart(s.If != nil)
	for i := range entries {
		e := &entries[i]
		if err := s.judge(ctx, tx, p, &e.entry, e.entry.ground, false); err != nil {
			return nil, err
		}
		if e.late.Valid {
			if err := s.judge(ctx, tx, p, &e.entry, e.late.Int64, true); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

func (s *scan) judge(ctx context.Context, tx *sql.Tx, p *part, e *entry, ground int64, late bool) error {
	a, err := s.library.gather(ctx, tx, e, ground, late)
	if err != nil {
		return err
	}
	a.judge(s.library)
	p.count(a)
	if s.If != nil {
		return s.If.judge(s.library, p.changes, a)
	}
	return nil
}

// entryRow is an entry, and the ground of the verdict that followed it.
type entryRow struct {
	entry
	late sql.NullInt64
}

// readEntries reads the entries from one number to another, of those that fit.
func readEntries(ctx context.Context, r reader, fit string, from, to int64) ([]entryRow, error) {
	rows, err := r.QueryContext(ctx, entryQuery+fit+" ORDER BY e.seq", from, to)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	entries := make([]entryRow, 0, to-from+1)
	for rows.Next() {
		var e entryRow
		var site sql.NullInt64
		var part sql.NullString
		if err := rows.Scan(&e.seq, &e.id, &e.time, &e.asker, &site, &e.entry.ground, &e.method, &e.target, &part, &e.redacted, &e.late); err != nil {
			return nil, err
		}
		e.site, e.part = site.Int64, part.String
		entries = append(entries, e)
	}
	return entries, rows.Err()
}
