package acl

import (
	"fmt"
	"slices"
	"strings"

	"heed/internal/judge/signal"
	"heed/rules"
)

// Obeyed are names that a client obeys besides its own, of purposes rather than of robots: a
// request must also be allowed by the groups that name one of them. It is immutable; nil has
// none.
type Obeyed struct {
	Names  []string       // as the settings have them, the client's own first
	agents []*rules.Agent // each by rules.PolicyToken
}

// List returns the names; nil for none.
func (o *Obeyed) List() []string {
	if o == nil {
		return nil
	}
	return o.Names
}

// PurposeTokens are the names that clients with a purpose obey besides their own.
type PurposeTokens map[signal.Purpose][]string

// MaxAlsoObey bounds a list of names: each one is looked up for each request.
const MaxAlsoObey = 16

// CheckAlsoObey returns an error unless names are a list of product tokens that is not too
// long and has each one once.
func CheckAlsoObey(names []string) error {
	if len(names) > MaxAlsoObey {
		return fmt.Errorf("there are %d names, and up to %d are obeyed; leave some out", len(names), MaxAlsoObey)
	}
	for i, name := range names {
		if err := rules.CheckToken(name); err != nil {
			return err
		}
		if slices.ContainsFunc(names[:i], func(o string) bool { return strings.EqualFold(o, name) }) {
			return fmt.Errorf("%q is listed twice; remove one of them", name)
		}
	}
	return nil
}

// maxObeyed bounds the clients whose Obeyed a Rules remembers.
const maxObeyed = 4096

// obeys returns what a client with some terms obeys besides its own names: their list and
// those of each purpose together, since no list removes what another wants obeyed. c may be
// nil.
func (r *Rules) obeys(c *Client, t *Terms) *Obeyed {
	if len(t.AlsoObey) == 0 && len(r.AlsoObey) == 0 {
		return nil
	}
	o, _ := r.obeyed.Load(c, maxObeyed, func() (*Obeyed, error) { // there is no error
		lists := [][]string{t.AlsoObey}
		for _, p := range t.Purpose {
			lists = append(lists, r.AlsoObey[p])
		}
		return joined(lists), nil
	})
	return o
}

// joined returns the names of all lists, each once; nil for none.
func joined(lists [][]string) *Obeyed {
	o := &Obeyed{}
	for _, name := range slices.Concat(lists...) {
		if !slices.ContainsFunc(o.Names, func(known string) bool { return strings.EqualFold(known, name) }) {
			o.Names, o.agents = append(o.Names, name), append(o.agents, rules.PolicyToken(name))
		}
	}
	if o.Names == nil {
		return nil
	}
	return o
}
