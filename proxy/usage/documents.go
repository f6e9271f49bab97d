package usage

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"heed/internal/judge/signal"
	"heed/proxy/upstream"
	"heed/rules"
)

// Documents gets the documents in which sites state how their pages may be used.
type Documents interface {
	// TDMRep returns the TDMRep file of an origin; nil when it has none.
	TDMRep(ctx context.Context, o rules.Origin, permit Permit) *signal.TDMRep
	// Licence returns the licence at an absolute URL.
	Licence(ctx context.Context, by, address string, permit Permit) signal.Licence
	// Robots returns the policy of an origin, never nil. It and Licence have separate
	// results for each site that the document is fetched for, by.
	Robots(ctx context.Context, by string, o rules.Origin, profile rules.Profile) *rules.Policy
}

// Permit returns an error for a URL that a redirect leads to and that may not be requested.
type Permit = func(context.Context, *url.URL) error

// Bounds of the documents of one verdict.
const (
	maxLicences   = 8 // that are fetched
	documentsTime = 10 * time.Second
)

// The errors of licences that are not requested.
var (
	errAddress    = errors.New("its address is not an http or https URL")
	errTooMany    = errors.New("too many licences are declared")
	errDisallowed = errors.New("the robots.txt where it is does not let this agent fetch it")
)

// tdmRep returns the site's TDMRep file if the agents may fetch it.
func (q *Request) tdmRep(ctx context.Context) *signal.TDMRep {
	if !q.mayFetch(q.Target, q.Policy, signal.TDMRepPath) {
		return nil
	}
	return q.Documents.TDMRep(ctx, q.Origin, q.permit)
}

// Licences returns the documents at addresses, those that robots.txt lets the agents fetch.
func (q *Request) Licences(ctx context.Context, addresses []string) map[string]signal.Licence {
	if len(addresses) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, documentsTime)
	defer cancel()
	all := map[string]signal.Licence{}
	for i, address := range addresses {
		if q.left() {
			break
		}
		if i < maxLicences {
			all[address] = q.licence(ctx, address)
		} else {
			all[address] = signal.Licence{Err: errTooMany}
		}
	}
	return all
}

// licence returns the document at an address. One that robots.txt does not let the agents
// fetch cannot be read.
func (q *Request) licence(ctx context.Context, address string) signal.Licence {
	u, err := url.Parse(address)
	if err != nil {
		return signal.Licence{Err: errAddress}
	}
	ctx = upstream.NamedBy(ctx, q.Origin)
	if err := q.permitWithin(ctx, q.Target, u); err != nil {
		return signal.Licence{Err: err}
	}
	return q.Documents.Licence(ctx, q.onBehalf(u.Hostname()), address, q.permit)
}

// onBehalf returns the site on whose behalf a document of a host is fetched, where that
// makes a difference: what it may not have heed fetch, another site may.
func (q *Request) onBehalf(host string) string {
	if host == q.Origin.Host {
		return ""
	}
	return q.Origin.Host
}

// permit is permitWithin for a URL that a redirect leads to, perhaps when q has ended.
func (q *Request) permit(ctx context.Context, u *url.URL) error {
	return q.permitWithin(ctx, rules.NewTarget(""), u)
}

// permitWithin returns an error for a URL that the robots.txt of its site does not let the
// agents fetch. It takes steps from budget.
func (q *Request) permitWithin(ctx context.Context, budget *rules.Target, u *url.URL) error {
	o, err := rules.OriginOf(u)
	if err != nil {
		return errAddress
	}
	policy := q.Policy
	if o != q.Origin {
		policy = q.Documents.Robots(upstream.NamedBy(ctx, q.Origin), q.onBehalf(o.Host), o, q.Policy.Profile())
	}
	if !q.mayFetch(budget, policy, u.RequestURI()) {
		return errDisallowed
	}
	return nil
}

// mayFetch reports whether p lets all agents fetch a target. It takes steps from budget.
func (q *Request) mayFetch(budget *rules.Target, p *rules.Policy, target string) bool {
	return !slices.ContainsFunc(q.Agents, func(agent *rules.Agent) bool {
		return p.DecideOther(agent, budget, rules.NewTarget(target)).Verdict != rules.Allow
	})
}
