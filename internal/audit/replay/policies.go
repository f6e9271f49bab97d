package replay

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"

	"heed/internal/audit/store"
	"heed/rules"
)

// Policies are those of an earlier run, to judge another one by: of each site
// the last answer in the record that says what its rules are, or that there are
// none; where there was never one, the site is unreachable as it was then. A site
// that is not in the record is unreachable, too: nothing is asked for, so that
// two runs differ by nothing but themselves. It is safe for concurrent use.
type Policies struct {
	name    string
	db      *sql.DB
	library *library
	profile rules.Profile
	sites   map[rules.Origin]told // by its site

	mu    sync.Mutex
	known map[int64]*rules.Policy
	bytes int
}

// told are the policies of a site by the User-Agent that it was asked under;
// empty for heed's own.
type told map[string]answered

// answered is a policy of the record, and whether it says what the rules are.
type answered struct {
	policy int64
	says   bool
}

// OpenPolicies opens the record at path. Files are read under profile, whatever
// they were read under then.
func OpenPolicies(path string, profile rules.Profile) (*Policies, error) {
	db, err := store.View(path)
	if err != nil {
		return nil, err
	}
	p := &Policies{
		name: filepath.Base(path), db: db, library: newLibrary(nil), profile: profile,
		sites: map[rules.Origin]told{}, known: map[int64]*rules.Policy{},
	}
	if err := p.find(); err != nil {
		db.Close()
		return nil, fmt.Errorf("the policies in %s cannot be read: %w", path, err)
	}
	return p, nil
}

// Close closes the record.
func (p *Policies) Close() error { return p.db.Close() }

// Len returns how many sites the record has something of.
func (p *Policies) Len() int { return len(p.sites) }

// find notes which policy counts for whom.
func (p *Policies) find() error {
	rows, err := p.db.Query(`SELECT s.scheme, s.host, s.port, p.id, p.state != 'unreachable', coalesce(n.asked_as, '')
FROM policy p JOIN site s ON s.id = p.site LEFT JOIN snapshot n ON n.id = p.snapshot WHERE p.own = 0 ORDER BY p.id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var o rules.Origin
		var a answered
		var as string
		if err := rows.Scan(&o.Scheme, &o.Host, &o.Port, &a.policy, &a.says, &as); err != nil {
			return err
		}
		site := p.sites[o]
		if site == nil {
			site = told{}
			p.sites[o] = site
		}
		if a.says || !site[as].says {
			site[as] = a
		}
	}
	return rows.Err()
}

// Policy returns what o's robots.txt said; it is never nil.
func (p *Policies) Policy(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	site := p.sites[o]
	a, ok := site[userAgent]
	if !ok {
		a, ok = site[""]
	}
	if !ok {
		return p.without(o, &notRecorded{p.name, nil})
	}
	p.mu.Lock()
	known := p.known[a.policy]
	p.mu.Unlock()
	if known != nil {
		return known
	}
	made, err := p.library.policy(ctx, p.db, a.policy)
	if err == nil {
		err = made.err
	}
	if err != nil {
		return p.without(o, &notRecorded{p.name, err})
	}
	return p.keep(a.policy, made.under(p.profile))
}

// keep remembers a policy.
func (p *Policies) keep(id int64, made *rules.Policy) *rules.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes += made.Size(); p.bytes > maxPolicyBytes {
		clear(p.known)
		p.bytes = made.Size()
	}
	p.known[id] = made
	return made
}

// without is the policy of a site that there is nothing to judge by.
func (p *Policies) without(o rules.Origin, err error) *rules.Policy {
	return rules.NewAs(p.profile, rules.Source{Origin: o, State: rules.Unreachable, Err: err}, nil)
}

// notRecorded says that a record has no robots.txt of a site.
type notRecorded struct {
	name string
	err  error // why it cannot be read; nil: there is none
}

// Error says which record, and why.
func (e *notRecorded) Error() string {
	if e.err != nil {
		return fmt.Sprintf("the robots.txt in the record %s cannot be used: %v", e.name, e.err)
	}
	return "the record " + e.name + " has no robots.txt of this site, and only that record is judged by"
}

// Told returns what may be told to anybody: words that go on after "robots.txt".
func (e *notRecorded) Told() string {
	return "is not in the record of an earlier run, by which alone this run is judged"
}

// Unwrap returns what is behind it.
func (e *notRecorded) Unwrap() error { return e.err }
