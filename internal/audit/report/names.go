package report

import (
	"cmp"
	"errors"
	"math"
	"strings"

	"heed/internal/audit/store"
	"heed/internal/audit/uses"
	"heed/internal/base/memo"
	"heed/rules"
)

// Agent is who asked, as it was judged.
type Agent struct {
	Client string   `json:"client_name,omitempty"` // the [[client]] that applied
	Tokens []string `json:"tokens"`                // the product tokens judged
}

// String returns the agent's name: that of the operator's settings, else the
// product tokens it was judged under.
func (a Agent) String() string { return store.AgentName(a.Client, a.Tokens) }

// client is a client of one record.
type client struct {
	*store.Client
	tokens string // with commas between
	agent  int    // its number among the report's agents
	asked  int64  // requests counted
}

// site is a site of one record.
type site struct {
	origin   int // its number among the report's origins
	selected bool
}

// basis is a basis of one record.
type basis struct {
	way    int   // its number among the report's ways
	policy int64 // 0: none

	verdict, reason string
	signals         string // what the site states, as JSON
	used            bool   // the rules of the site allow it, so that its use counts
	bySignal        bool   // a statement on the use decided
}

// names are the small tables of one record, by id.
type names struct {
	clients  map[int64]*client
	sites    map[int64]site
	bases    map[int64]basis
	policies map[int64]*store.Policy
}

// numbered gives each key a number, in the order of appearance.
type numbered[K comparable] struct {
	keys []K
	of   map[K]int
}

func (n *numbered[K]) number(k K) int {
	i, ok := n.of[k]
	if !ok {
		i = len(n.keys)
		memo.Set(&n.of, k, i)
		n.keys = append(n.keys, k)
	}
	return i
}

// agentKey identifies an Agent, or the address or user that replaces it (Query.By).
type agentKey struct{ client, tokens, by string }

func (k agentKey) agent() Agent {
	return Agent{k.client, strings.FieldsFunc(k.tokens, func(c rune) bool { return c == ',' })}
}

// String returns the name of the agent, the address or the user.
func (k agentKey) String() string { return cmp.Or(k.by, k.agent().String()) }

// key returns the key that q counts c under.
func (q *Query) key(c *store.Client, tokens string) agentKey {
	switch q.By {
	case ByAddress:
		return agentKey{by: cmp.Or(c.Address, "(no address)")}
	case ByUser:
		return agentKey{by: cmp.Or(c.User, "(no user)")}
	}
	return agentKey{client: c.Configured(), tokens: tokens}
}

// names reads the small tables of a record and numbers what they hold.
func (b *builder) names(r *store.Reader) (*names, error) {
	n := &names{map[int64]*client{}, map[int64]site{}, map[int64]basis{}, map[int64]*store.Policy{}}
	filter := &b.query.Filter
	n.sites[0] = site{b.origins.number(rules.Origin{}), b.query.Host == ""}
	err := errors.Join(
		r.Clients(filter, func(c *store.Client) {
			tokens := strings.Join(c.Tokens, ",")
			n.clients[c.ID] = &client{c, tokens, b.agents.number(b.query.key(c, tokens)), 0}
		}),
		r.Sites(filter, func(id int64, o rules.Origin, selected bool) {
			n.sites[id] = site{b.origins.number(o), selected}
		}),
		r.Bases(0, math.MaxInt64, func(x *store.Basis) {
			bySignal := uses.BySignal(x.Reason)
			n.bases[x.ID] = basis{
				b.ways.number(Way{x.Judged, x.Verdict.Verdict, x.Reason, x.Group, x.Rule, int64(x.Line), x.Settled}), x.Policy,
				x.Verdict.Verdict, x.Reason, x.Signals, x.Judged == "path" && x.Policy != 0 && (bySignal || x.Verdict.Verdict == allow), bySignal,
			}
		}),
		r.Policies(func(p *store.Policy) { n.policies[p.ID] = p }),
	)
	for i := len(b.kinds); i < len(b.ways.keys); i++ {
		b.kinds = append(b.kinds, b.ways.keys[i].kind())
	}
	return n, err
}

// siteName returns the origin as an address without its default port.
func siteName(o rules.Origin) string {
	if o.Host == "" {
		return "(no site)"
	}
	return o.String()
}
