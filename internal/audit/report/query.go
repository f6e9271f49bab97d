package report

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Record is one audit.db to read. Whoever opened DB closes it.
type Record struct {
	Name string // what to call it, such as its path
	DB   *sql.DB

	tx *sql.Tx // when all is to be read as it was at one moment; nil: as it is
}

// query runs a query on the record.
func (r Record) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	var rows *sql.Rows
	var err error
	if r.tx != nil {
		rows, err = r.tx.QueryContext(ctx, query, args...)
	} else {
		rows, err = r.DB.QueryContext(ctx, query, args...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as a record: %w", r.Name, err)
	}
	return rows, nil
}

// frozen returns the records as they are at this moment, whatever a heed writes
// to them until release is called.
func frozen(ctx context.Context, records []Record) (still []Record, release func(), err error) {
	release = func() {
		for _, r := range still {
			_ = r.tx.Rollback() // nothing was written
		}
	}
	for _, r := range records {
		if r.tx, err = r.DB.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
			release()
			return nil, nil, fmt.Errorf("%s cannot be read as a record: %w", r.Name, err)
		}
		still = append(still, r)
	}
	return still, release, nil
}

// Query says which decisions a report is about. The zero Query means all.
type Query struct {
	From, To time.Time // from From on, and before To; zero: no limit
	// Client names who asked: an address as the record has it, the name of a
	// [[client]], a proxy user or a product token. Empty: everybody.
	Client string
	// Host is a host, or "*.example.org" for all below it. Empty: all.
	Host string
	// Conduct adds what each client did of its own accord; it takes longer.
	Conduct bool
	// Progress is told how many of all decisions have been read; nil: nobody
	// asks. It is called from one goroutine, every few thousand decisions.
	Progress func(done, all int64)
}

// window returns the limits of time in microseconds.
func (q *Query) window() (from, to int64) {
	from, to = -1<<63, 1<<63-1
	if !q.From.IsZero() {
		from = q.From.UnixMicro()
	}
	if !q.To.IsZero() {
		to = q.To.UnixMicro()
	}
	return from, to
}

// fitsHost reports whether decisions about host count.
func (q *Query) fitsHost(host string) bool {
	if below, ok := strings.CutPrefix(q.Host, "*"); ok {
		return strings.HasSuffix(host, strings.ToLower(below))
	}
	return q.Host == "" || strings.EqualFold(q.Host, host)
}

// fitsClient reports whether decisions for the asker count.
func (q *Query) fitsClient(a *asker) bool {
	if q.Client == "" || q.Client == a.client || q.Client == a.user || q.Client == a.agent.Client {
		return true
	}
	for _, token := range a.agent.Tokens {
		if strings.EqualFold(q.Client, token) {
			return true
		}
	}
	return false
}

// Words says the query in a sentence's part: empty for all of the record.
func (q *Query) Words() string {
	var parts []string
	add := func(format string, value any) { parts = append(parts, fmt.Sprintf(format, value)) }
	if !q.From.IsZero() {
		add("from %s", stamp(q.From))
	}
	if !q.To.IsZero() {
		add("before %s", stamp(q.To))
	}
	if q.Client != "" {
		add("client %s", q.Client)
	}
	if q.Host != "" {
		add("host %s", q.Host)
	}
	return strings.Join(parts, ", ")
}

// stamp writes a time for people and programs alike: RFC 3339, UTC.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
