package report

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"heed/internal/audit/store"
)

// readers opens a Reader for each record; release closes them.
func readers(ctx context.Context, records []*store.Record) (all []*store.Reader, release func(), err error) {
	release = func() {
		for _, r := range all {
			r.Close()
		}
	}
	for _, record := range records {
		r, err := record.Read(ctx)
		if err != nil {
			release()
			return nil, nil, err
		}
		all = append(all, r)
	}
	return all, release, nil
}

// Query says which decisions a report is about. The zero Query means all.
type Query struct {
	store.Filter // by time, client and host
	// By is ByAgent, ByAddress or ByUser; empty: ByAgent.
	By string
	// Conduct adds the behaviour of each client; it takes longer.
	Conduct bool
	// Use makes WriteCSV write the chapter by purpose.
	Use bool
	// Progress, if not nil, is called with the number of decisions read and of all,
	// from one goroutine, every few thousand decisions.
	Progress func(done, all int64)
}

// What requests are counted by, beside their sites.
const (
	ByAgent   = "agent"   // the judged name
	ByAddress = "address" // as recorded
	ByUser    = "user"    // that authenticated to the proxy
)

func (q *Query) by() string { return cmp.Or(q.By, ByAgent) }

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
