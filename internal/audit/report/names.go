package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Agent is who asked, as it was judged.
type Agent struct {
	Client string   `json:"client_name,omitempty"` // the [[client]] that fits
	Tokens []string `json:"tokens"`                // the product tokens judged
}

// String is the agent's name: that of the operator's settings, else the names
// it was judged under.
func (a Agent) String() string {
	return cmp.Or(a.Client, strings.Join(a.Tokens, " "), "(no name)")
}

// asker is a row of that table.
type asker struct {
	client, user string
	userAgent    string
	agent        Agent
	tokens       string // the agent's, with blanks between
	skip         bool   // its decisions do not count
	number       int    // of the agent among the report's
}

// way is how a decision came about: a row of ground, without its policy.
type way struct {
	judged, verdict, reason string
	group, rule, settled    string
	line                    int64
}

// ground is a row of that table.
type ground struct {
	number int   // of the way among the report's
	policy int64 // 0: none
}

// site is a row of that table.
type site struct {
	number int // of the origin among the report's
	skip   bool
}

// names are the small tables of one record, by id.
type names struct {
	askers   map[int64]*asker
	sites    map[int64]site
	grounds  map[int64]ground
	policies map[int64]*policy
}

// policy is a row of that table.
type policy struct {
	site     int64
	snapshot int64 // 0: none
	state    string
	stale    bool
	own      bool
	err      string
}

// numbered gives each key a number, in the order of appearance.
type numbered[K comparable] struct {
	keys []K
	of   map[K]int
}

func (n *numbered[K]) number(k K) int {
	i, ok := n.of[k]
	if !ok {
		if n.of == nil {
			n.of = map[K]int{}
		}
		i = len(n.keys)
		n.of[k] = i
		n.keys = append(n.keys, k)
	}
	return i
}

// names reads the small tables of r and numbers what they hold.
func (b *builder) names(r Record) (*names, error) {
	n := &names{map[int64]*asker{}, map[int64]site{}, map[int64]ground{}, map[int64]*policy{}}
	for _, read := range []func(Record, *names) error{b.askers, b.sites, b.grounds, readPolicies} {
		if err := read(r, n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (b *builder) askers(r Record, n *names) error {
	return each(r, "SELECT id, client, coalesce(user, ''), coalesce(client_name, ''), coalesce(user_agent, ''), tokens FROM asker", func(scan scanner) error {
		var id int64
		var a asker
		var tokens string
		if err := scan(&id, &a.client, &a.user, &a.agent.Client, &a.userAgent, &tokens); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(tokens), &a.agent.Tokens); err != nil {
			return fmt.Errorf("asker %d: its tokens are no JSON array", id)
		}
		a.tokens = strings.Join(a.agent.Tokens, " ")
		a.skip = !b.query.fitsClient(&a)
		a.number = b.agents.number(agentKey{a.agent.Client, a.tokens})
		n.askers[id] = &a
		return nil
	})
}

func (b *builder) sites(r Record, n *names) error {
	n.sites[0] = site{number: b.origins.number(noSite), skip: b.query.Host != ""}
	return each(r, "SELECT id, scheme, host, port FROM site", func(scan scanner) error {
		var id, port int64
		var scheme, host string
		if err := scan(&id, &scheme, &host, &port); err != nil {
			return err
		}
		n.sites[id] = site{number: b.origins.number(origin{scheme, host, int(port)}), skip: !b.query.fitsHost(host)}
		return nil
	})
}

func (b *builder) grounds(r Record, n *names) error {
	return each(r, `SELECT id, judged, verdict, reason, coalesce(group_name, ''), coalesce(rule, ''), coalesce(line, 0), coalesce(settled, ''), coalesce(policy, 0) FROM ground`, func(scan scanner) error {
		var id int64
		var g ground
		var w way
		if err := scan(&id, &w.judged, &w.verdict, &w.reason, &w.group, &w.rule, &w.line, &w.settled, &g.policy); err != nil {
			return err
		}
		g.number = b.ways.number(w)
		n.grounds[id] = g
		return nil
	})
}

func readPolicies(r Record, n *names) error {
	return each(r, "SELECT id, site, coalesce(snapshot, 0), state, stale, own, coalesce(error, '') FROM policy", func(scan scanner) error {
		var id int64
		p := &policy{}
		if err := scan(&id, &p.site, &p.snapshot, &p.state, &p.stale, &p.own, &p.err); err != nil {
			return err
		}
		n.policies[id] = p
		return nil
	})
}

// agentKey tells agents apart.
type agentKey struct{ client, tokens string }

func (k agentKey) agent() Agent { return Agent{k.client, strings.Fields(k.tokens)} }

// scanner reads the columns of a row, as sql.Rows.Scan does.
type scanner = func(...any) error

// each calls row for every row of the query's result.
func each(r Record, query string, row func(scanner) error, args ...any) error {
	rows, err := r.query(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s cannot be read to its end: %w", r.Name, err)
	}
	return nil
}
