package replay

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/rules"
)

// Decision is a decision as it was recorded.
type Decision struct {
	File       string    `json:"file"` // the record
	Seq        int64     `json:"seq"`
	ID         string    `json:"id"`
	Time       time.Time `json:"time"`
	Client     string    `json:"client"`
	Port       int       `json:"client_port,omitempty"`
	User       string    `json:"user,omitempty"`
	ClientName string    `json:"client_name,omitempty"`
	Mode       string    `json:"mode"`
	UserAgent  string    `json:"user_agent,omitempty"`
	Tokens     []string  `json:"tokens"`
	Declared   bool      `json:"declared,omitempty"`
	Sent       string    `json:"sent_user_agent,omitempty"`
	SignedKey  string    `json:"signed_key,omitempty"` // as in audit.Entry
	SignedBy   string    `json:"signed_by,omitempty"`  // likewise
	AlsoObey   []string  `json:"also_obey,omitempty"`  // names of purposes that it obeys besides
	Agent      string    `json:"agent"`                // the name in reports: store.AgentName
	Purposes   []string  `json:"purpose,omitempty"`    // that the client stated
	Method     string    `json:"method"`
	URL        string    `json:"url"`
	Redacted   bool      `json:"redacted,omitempty"`
	Judged     string    `json:"judged"`
	store.Verdict
	Detail  string  `json:"detail,omitempty"`
	Delay   float64 `json:"delay_s,omitempty"`  // crawl delay of the site or the settings
	Waited  float64 `json:"waited_s,omitempty"` // for the rules and for turns
	Turn    float64 `json:"turn_s,omitempty"`   // the part of Waited that was for turns; 0 also in records before layout 4
	Config  string  `json:"config,omitempty"`
	Heed    string  `json:"heed"`
	Engine  int     `json:"engine"`
	Revises string  `json:"revises,omitempty"` // the decision that this one replaces
	// Signals is what the site stated about the use of its pages, and PageSignals what the
	// answer did, as they are recorded; nil: nothing.
	Signals     json.RawMessage `json:"signals,omitempty"`
	PageSignals json.RawMessage `json:"page_signals,omitempty"`
	// Late is the verdict that followed the request: of one that was observed and did not
	// wait for it, or by what its page states; nil: none did.
	Late *store.Verdict `json:"late,omitempty"`
	// Outcome is the result of the exchange; nil when it is not recorded: the
	// exchange has not ended, or heed was killed before it did.
	Outcome *store.Outcome `json:"outcome,omitempty"`

	entry *store.Entry
}

// Withheld reports whether the page was not delivered, by what it states about its use.
func (d *Decision) Withheld() bool { return d.Late != nil && d.Late.Verdict == rules.Refuse.String() }

// List calls each with the decisions of several records that f selects, ordered by
// time, until each returns an error.
func List(ctx context.Context, records []*store.Record, f store.Filter, each func(*Decision) error) error {
	sources := make([]func() (*Decision, error), len(records))
	for i, record := range records {
		r, err := record.Read(ctx)
		if err != nil {
			return err
		}
		defer r.Close()
		next, stop, err := r.Pull(&f)
		if err != nil {
			return err
		}
		defer stop()
		l := &library{}
		sources[i] = func() (*Decision, error) {
			e, err := next()
			if e == nil {
				return nil, err
			}
			return l.decision(r, e)
		}
	}
	return audit.Merge(sources, func(a, b *Decision) bool { return a.Time.Before(b.Time) }, each)
}

// Gap is a time in which a record could not be written.
type Gap struct {
	File string    `json:"file"` // the record
	Gap  audit.Gap `json:"gap"`
}

// Gaps returns the gaps of several records in the window of f, each once, ordered by
// time; none when f selects clients, hosts or another verdict than refuse, since
// nothing else is known of the requests.
func Gaps(ctx context.Context, records []*store.Record, f store.Filter) (all []Gap, err error) {
	if f.Client != "" || f.Host != "" || f.Verdict != "" && f.Verdict != rules.Refuse.String() {
		return nil, nil
	}
	known := map[string]bool{}
	for _, record := range records {
		r, err := record.Read(ctx)
		if err != nil {
			return nil, err
		}
		err = r.Counted(&f, func(n *store.Counted) {
			if n.Gap != nil && !known[n.ID] {
				known[n.ID] = true
				all = append(all, Gap{record.Path, *n.Gap})
			}
		})
		r.Close()
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Gap) int { return a.Gap.From.Compare(b.Gap.From) })
	return all, nil
}

// decision returns e with the rows it refers to.
func (l *library) decision(r *store.Reader, e *store.Entry) (*Decision, error) {
	a, err := l.load(r, e, false)
	if err != nil {
		return nil, err
	}
	version, err := l.versions.Load(e.Run, maxNames, func() (string, error) { return r.Run(e.Run) })
	if err != nil {
		return nil, err
	}
	c, b := a.client, a.basis
	d := &Decision{
		File: r.Path(), Seq: e.Seq, ID: uuidText(e.ID), Time: time.UnixMicro(e.Time).UTC(),
		Client: c.Address, Port: e.Port, User: c.User, ClientName: c.Name, Mode: c.Mode,
		UserAgent: c.UserAgent, Tokens: c.Tokens, Declared: c.Declared, Sent: c.Sent, SignedKey: c.SignedKey, SignedBy: c.SignedBy,
		Agent:  store.AgentName(c.Configured(), c.Tokens),
		Method: e.Method, URL: urlOf(a.origin, e.Target), Redacted: e.Redacted, Judged: b.Judged, Verdict: b.Verdict, Detail: b.Detail,
		Delay: seconds(e.Delay), Waited: seconds(e.Waited), Turn: seconds(e.Turn), Config: a.settings.hash, Heed: version, Engine: b.Engine, Revises: uuidText(e.Revises),
		Outcome: e.Outcome, entry: e, Purposes: c.Purposes, AlsoObey: c.AlsoObey, Signals: jsonOf(b.Signals),
	}
	if e.Outcome != nil {
		d.PageSignals = jsonOf(e.Outcome.Signals)
	}
	if e.Late != 0 {
		late, err := l.basis(r, e.Late)
		if err != nil {
			return nil, err
		}
		d.Late = &late.Verdict
	}
	return d, nil
}

// Role returns the role of the name whose rules decided: without one, of the client's own
// names.
func (d *Decision) Role() rules.Role {
	same := func(name string) bool { return strings.EqualFold(name, d.Token) }
	switch own := d.Token == "" || slices.ContainsFunc(d.Tokens, same); {
	case own && d.Declared:
		return rules.Declared
	case !own && slices.ContainsFunc(d.AlsoObey, same):
		return rules.Obeyed
	}
	return rules.Seen
}

// jsonOf returns a recorded text as JSON; nil for one that is not.
func jsonOf(text string) json.RawMessage {
	if !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

func seconds(microseconds int64) float64 { return float64(microseconds) / 1e6 }

// ErrNone is returned when a record has no such decision.
var ErrNone = errors.New("no such decision is in the record")

// Search selects decisions for Latest, the last ones first.
type Search struct {
	store.Search
	Before int64 // only decisions with a smaller entry.seq; 0: all
	Limit  int   // of the decisions found; at least 1
	Most   int64 // of the decisions compared; at least leastSearched
}

// Found is the result of a Search.
type Found struct {
	Decisions []*Decision
	// Next is Search.Before of the search that continues this one; 0: there are no further
	// decisions.
	Next int64
	// Looked is the number of decisions that were compared, back to the one of Since.
	Looked int64
	Since  time.Time
	Cut    bool // Most decisions were compared before Limit were found
}

// leastSearched is the least number of decisions that a search compares, if there are as many.
const leastSearched = 10_000

// Latest searches a record from its end.
func Latest(ctx context.Context, record *store.Record, s Search) (*Found, error) {
	r, err := record.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	first, last, err := searched(r, &s)
	if err != nil || last < first {
		return &Found{}, err
	}
	f, l := &Found{}, &library{}
	s.First, s.Last = max(first, last-max(s.Most, leastSearched)+1), last
	err = r.Latest(&s.Search, s.Limit+1, func(e *store.Entry) error {
		if len(f.Decisions) == s.Limit {
			f.Next = e.Seq + 1
			return nil // it is the last one
		}
		d, err := l.decision(r, e)
		f.Decisions = append(f.Decisions, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.Cut = f.Next == 0 && s.First > first; f.Cut {
		f.Next = s.First
	}
	if f.Next > 0 {
		first = f.Next
	}
	f.Looked = last - first + 1
	f.Since, err = r.TimeFrom(first)
	return f, err
}

// searched returns the range of decisions that s may select.
func searched(r *store.Reader, s *Search) (first, last int64, err error) {
	if first, last, err = r.Range(); err != nil {
		return 0, 0, err
	}
	if !s.From.IsZero() {
		if first, err = r.SeqAt(s.From); err != nil {
			return 0, 0, err
		}
	}
	if !s.To.IsZero() {
		// A later decision may be recorded earlier; SeqAt accounts for that.
		to, err := r.SeqAt(s.To.Add(store.RecordedWithin))
		if err != nil {
			return 0, 0, err
		}
		last = min(last, to)
	}
	if s.Before > 0 {
		last = min(last, s.Before-1)
	}
	return first, last, nil
}
