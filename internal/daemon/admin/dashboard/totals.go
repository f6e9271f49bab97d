package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"heed/internal/audit/store"
	"heed/internal/judge/reason"
	"heed/rules"
)

// totals are the requests of the last 24 hours, or of the later part of them.
type totals struct {
	Requests int64
	Since    time.Time // the beginning of what was counted
	Whole    bool      // all of the 24 hours were counted
	Sites    []counted
	Agents   []counted
	Rules    []counted
	Clients  []clientTotal
	More     int // clients that Clients leaves out
}

// counted is the number of requests that have something in common.
type counted struct {
	Name    string
	More    string // a second line; empty: none
	Classes reason.Counts
}

// Requests returns their number.
func (c *counted) Requests() int64 { return c.Classes.Sum() }

// clientTotal is the requests of all clients with one name: that of a [[client]], of a user, or
// an address. Its details are those of the one with the most requests.
type clientTotal struct {
	*store.Client
	Classes reason.Counts
	Last    time.Time
	Others  int64 // addresses with User-Agents of the same name, beside its own
}

// Requests returns their number.
func (c *clientTotal) Requests() int64 { return c.Classes.Sum() }

// Agent returns the names that the client is judged under.
func (c *clientTotal) Agent() string { return strings.Join(c.Tokens, ", ") }

// day returns the totals, at most totalsAge old.
func (d *record) day(ctx context.Context) (*totals, error) {
	if d.path == "" {
		return nil, errNoRecord
	}
	t := &d.totals
	t.Lock()
	defer t.Unlock()
	now := d.now()
	if t.latest != nil && now.Sub(t.made) < totalsAge {
		return t.latest, nil
	}
	t.latest = &totals{}
	err := d.read(ctx, func(r *store.Reader) error { return t.latest.read(r, now) })
	if err != nil {
		t.latest = nil
	}
	t.made = now
	return t.latest, err
}

// mostListed is how many sites, agents and rules the overview lists.
const mostListed = 8

// read counts the last 24 hours.
func (t *totals) read(r *store.Reader, now time.Time) (err error) {
	if t.Since, t.Whole, t.Requests, err = r.Recent(now.Add(-oneDay), totalsMost); err != nil {
		return err
	}
	var clients []*store.Ranked
	err = cmp.Or(
		r.Ranked(store.BySite, mostListed, func(n *store.Ranked) { t.Sites = append(t.Sites, counted{siteName(n), "", n.Classes}) }),
		r.Ranked(store.ByAgent, mostListed, func(n *store.Ranked) { t.Agents = append(t.Agents, counted{n.Agent, "", n.Classes}) }),
		r.Ranked(store.ByRule, mostListed, func(n *store.Ranked) { t.Rules = append(t.Rules, counted{decided(n), siteName(n), n.Classes}) }),
		r.Ranked(store.ByClient, clientsShown, func(n *store.Ranked) { clients = append(clients, n) }),
	)
	for _, n := range clients {
		if err == nil {
			c := clientTotal{Classes: n.Classes, Last: n.Last, Others: n.Others}
			c.Client, err = r.Client(n.Client)
			t.Clients, t.More = append(t.Clients, c), n.All-len(clients)
		}
	}
	return err
}

func siteName(n *store.Ranked) string {
	if n.Site.Host == "" {
		return "(no host)"
	}
	return n.Site.String()
}

// decided returns the rule that decided, else the reason in words.
func decided(n *store.Ranked) string {
	switch {
	case n.Line > 0 && n.Rule != "":
		return fmt.Sprintf("%s (line %d)", n.Rule, n.Line)
	case n.Rule != "":
		return n.Rule
	}
	return reason.Of(rules.Reason(n.Reason)).Words
}
