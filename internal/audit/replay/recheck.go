package replay

import (
	"context"
	"database/sql"
	"sync"

	"heed/internal/terms"
	"heed/rules"
)

// Recheck says how past requests are judged by today's policies.
type Recheck struct {
	Books func(text string) (*terms.Book, error) // as in Options
	Host  string                                 // as in Filter; empty: all
	// Policy returns what a site's robots.txt says now; it is never nil. Width is
	// how many sites are asked at a time.
	Policy func(context.Context, rules.Origin) *rules.Policy
	Width  int
	// Progress is told how much of all has been done; nil: nobody is.
	Progress func(done, all int64)
}

// Rechecked is what came of it.
type Rechecked struct {
	Sites int `json:"sites"`
	// Allowed is how many requests had been allowed by rules, or for want of
	// them; Refused is how many of them would be refused now.
	Allowed int64 `json:"allowed"`
	Refused int64 `json:"would_be_refused"`
	// Unknown is how many of them cannot be judged, since the site's robots.txt
	// cannot be had now; Redacted, since parts of their targets are not kept;
	// Incomplete, since other things are not in the record.
	Unknown    int64 `json:"site_cannot_be_asked"`
	Redacted   int64 `json:"redacted"`
	Incomplete int64 `json:"incomplete"`
	// Hosts are the sites with requests that would be refused, the most first,
	// and those that cannot be asked.
	Hosts []SiteNow `json:"hosts"`
}

// SiteNow is a site of which past requests would be refused now, or that cannot
// be asked.
type SiteNow struct {
	Site    string `json:"site"`
	Allowed int64  `json:"allowed"`
	Refused int64  `json:"would_be_refused"`
	// Error is why its robots.txt cannot be had now; empty when it can.
	Error  string      `json:"error,omitempty"`
	SHA256 string      `json:"robots_sha256,omitempty"` // of the file as it is now
	Rules  []RuleNow   `json:"rules,omitempty"`         // that would refuse, the most first
	URLs   []Refetched `json:"urls,omitempty"`          // that would be refused, in the order of their first request, at most maxURLs

	urls map[string]int // places in URLs
}

// RuleNow is a rule that would refuse.
type RuleNow struct {
	Group string `json:"group"`
	Rule  string `json:"rule"`
	Line  int    `json:"line"`
	Count int64  `json:"count"`
}

// Refetched is an address that would be refused now.
type Refetched struct {
	URL   string `json:"url"`
	Agent string `json:"user_agent"` // of the first request
	Count int64  `json:"count"`
}

// maxURLs is how many addresses of a site are told.
const maxURLs = 1000

// Run judges all past requests that were allowed again by what their sites say
// now. Names, settings and exceptions are those of their time.
func (r *Recheck) Run(ctx context.Context, db *sql.DB) (*Rechecked, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	l := newLibrary(r.Books)
	sites, err := r.sites(ctx, tx, l)
	if err != nil {
		return nil, err
	}
	s := &rechecking{Recheck: r, library: l, tx: tx, now: r.ask(ctx, sites), hosts: map[rules.Origin]*SiteNow{}, result: &Rechecked{Sites: len(sites), Hosts: []SiteNow{}}}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.all(ctx); err != nil {
		return nil, err
	}
	return s.finish(), nil
}

// byRules fits entries that rules allowed, or the want of them.
const byRules = `e.ground IN (SELECT id FROM ground WHERE verdict = 'allow' AND policy IS NOT NULL AND judged = 'path')`

// sites returns the sites of past requests.
func (r *Recheck) sites(ctx context.Context, tx *sql.Tx, l *library) ([]rules.Origin, error) {
	f := Filter{Host: r.Host}
	where, values := f.where()
	rows, err := tx.QueryContext(ctx, "SELECT DISTINCT s.scheme, s.host, s.port FROM site s WHERE s.id IN (SELECT e.site FROM entry e WHERE "+byRules+" AND "+where+")", values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []rules.Origin
	for rows.Next() {
		var o rules.Origin
		if err := rows.Scan(&o.Scheme, &o.Host, &o.Port); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}

// ask asks all sites, a bounded number at a time.
func (r *Recheck) ask(ctx context.Context, sites []rules.Origin) map[rules.Origin]*rules.Policy {
	now := make(map[rules.Origin]*rules.Policy, len(sites))
	var mu sync.Mutex
	var asking sync.WaitGroup
	room := make(chan struct{}, max(1, r.Width))
	for _, o := range sites {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			if ctx.Err() != nil {
				return
			}
			p := r.Policy(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			now[o] = p
			r.tell(int64(len(now)), int64(len(sites)))
		})
	}
	asking.Wait()
	return now
}

func (r *Recheck) tell(done, all int64) {
	if r.Progress != nil {
		r.Progress(done, all)
	}
}
