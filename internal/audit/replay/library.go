package replay

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"heed/internal/terms"
	"heed/rules"
)

// Bounds of what a library remembers.
const (
	maxNames       = 1 << 18 // of each table
	maxGrounds     = 1 << 18
	groundsAtOnce  = 512
	maxPolicyBytes = 256 << 20
	maxAgents      = 1 << 16
)

// asker is a row of the record: who asked, and as whom it was judged.
type asker struct {
	client, user, name, mode string
	userAgent, sent          string
	tokens                   []string
}

// ground is a row of the record: a verdict, and all that it rests on.
type ground struct {
	judged  string
	verdict Verdict

	policy, configuration int64 // 0: none
	engine                int
}

// library has the names and grounds of a record at hand. It is safe for
// concurrent use.
type library struct {
	parse func(rules.Profile, rules.Source, []byte) *rules.Policy
	books func(text string) (*terms.Book, error)

	mu       sync.RWMutex
	askers   map[int64]*asker
	sites    map[int64]rules.Origin
	grounds  map[int64]*ground
	settings map[int64]settings
	policies map[int64]*policy
	bytes    int // of policies
	agents   map[string]*rules.Agent
	variants map[variantKey]*rules.Policy // nil where there is none

	variantBytes int
}

// variantKey names a policy as it would have been: that of a row, or of an
// origin.
type variantKey struct {
	policy int64
	origin rules.Origin
	as     string
}

// variant returns a policy as it would have been, which make makes; nil: there
// is none.
func (l *library) variant(policy int64, o rules.Origin, as string, make func() (*rules.Policy, error)) (*rules.Policy, error) {
	key := variantKey{policy, o, as}
	l.mu.RLock()
	p, ok := l.variants[key]
	l.mu.RUnlock()
	if ok {
		return p, nil
	}
	p, err := make()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p != nil {
		l.variantBytes += p.Size()
	}
	if l.variantBytes > maxPolicyBytes {
		clear(l.variants)
		l.variantBytes = 0
	}
	l.variants[key] = p
	return p, nil
}

func newLibrary(books func(string) (*terms.Book, error)) *library {
	return &library{
		parse: rules.NewAs, books: books,
		askers: map[int64]*asker{}, sites: map[int64]rules.Origin{}, grounds: map[int64]*ground{},
		settings: map[int64]settings{}, policies: map[int64]*policy{}, agents: map[string]*rules.Agent{},
		variants: map[variantKey]*rules.Policy{},
	}
}

// reader reads a record as it was at one moment.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// missing says that a row is not there which another refers to.
func missing(table string, id int64, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("the record has no %s %d, which it refers to; see `heed audit verify`", table, id)
	}
	return err
}

// known returns what from has of id, or what load makes of it.
func known[T any](l *library, from map[int64]T, id int64, load func() (T, error)) (T, error) {
	l.mu.RLock()
	v, ok := from[id]
	l.mu.RUnlock()
	if ok {
		return v, nil
	}
	v, err := load()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(from) >= maxNames {
			clear(from) // starting over is cheaper than keeping an order
		}
		from[id] = v
	}
	return v, err
}

func (l *library) asker(ctx context.Context, r reader, id int64) (*asker, error) {
	return known(l, l.askers, id, func() (*asker, error) {
		a := &asker{}
		var user, name, userAgent, sent sql.NullString
		var tokens string
		err := r.QueryRowContext(ctx, "SELECT client, user, client_name, mode, user_agent, tokens, sent FROM asker WHERE id = ?", id).
			Scan(&a.client, &user, &name, &a.mode, &userAgent, &tokens, &sent)
		if err != nil {
			return nil, missing("asker", id, err)
		}
		a.user, a.name, a.userAgent, a.sent = user.String, name.String, userAgent.String, sent.String
		return a, json.Unmarshal([]byte(tokens), &a.tokens)
	})
}

func (l *library) site(ctx context.Context, r reader, id int64) (rules.Origin, error) {
	if id == 0 {
		return rules.Origin{}, nil
	}
	return known(l, l.sites, id, func() (o rules.Origin, err error) {
		err = r.QueryRowContext(ctx, "SELECT scheme, host, port FROM site WHERE id = ?", id).Scan(&o.Scheme, &o.Host, &o.Port)
		return o, missing("site", id, err)
	})
}

// settings are those of a row; the zero settings are none.
type settings struct {
	*terms.Book
	err error // why they cannot be read
}

// book returns the settings of a row.
func (l *library) book(ctx context.Context, r reader, id int64) (settings, error) {
	if id == 0 {
		return settings{}, nil
	}
	return known(l, l.settings, id, func() (s settings, err error) {
		var text string
		if err := r.QueryRowContext(ctx, "SELECT text FROM configuration WHERE id = ?", id).Scan(&text); err != nil {
			return s, missing("configuration", id, err)
		}
		s.Book, s.err = l.books(text)
		return s, nil
	})
}

// agent returns whom a User-Agent string names.
func (l *library) agent(userAgent string) *rules.Agent {
	l.mu.RLock()
	a := l.agents[userAgent]
	l.mu.RUnlock()
	if a != nil {
		return a
	}
	a = rules.Identify(userAgent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.agents) >= maxAgents {
		clear(l.agents)
	}
	l.agents[userAgent] = a
	return a
}

// ground returns the row of that number. Those behind it come along: they are
// asked for next.
func (l *library) ground(ctx context.Context, r reader, id int64) (*ground, error) {
	l.mu.RLock()
	g := l.grounds[id]
	l.mu.RUnlock()
	if g != nil {
		return g, nil
	}
	rows, err := r.QueryContext(ctx, groundQuery, id, id+groundsAtOnce)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.grounds) > maxGrounds {
		clear(l.grounds)
	}
	for rows.Next() {
		at, g, err := scanGround(rows)
		if err != nil {
			return nil, err
		}
		l.grounds[at] = g
	}
	if g := l.grounds[id]; g != nil {
		return g, rows.Err()
	}
	return nil, cmp.Or(rows.Err(), missing("ground", id, sql.ErrNoRows))
}

const groundQuery = `SELECT id, judged, verdict, reason, token, group_name, rule, line, variant, unseen, settled, policy, configuration, engine
FROM ground WHERE id >= ? AND id < ?`

func scanGround(rows *sql.Rows) (id int64, g *ground, err error) {
	g = &ground{}
	v := &g.verdict
	var token, group, rule, variant, settled sql.NullString
	var line, policy, configuration sql.NullInt64
	err = rows.Scan(&id, &g.judged, &v.Verdict, &v.Reason, &token, &group, &rule, &line, &variant, &v.Unseen, &settled, &policy, &configuration, &g.engine)
	v.Token, v.Group, v.Rule, v.Variant, v.Settled = token.String, group.String, rule.String, variant.String, settled.String
	v.Line, g.policy, g.configuration = int(line.Int64), policy.Int64, configuration.Int64
	return id, g, err
}
