package check

import (
	"context"

	"heed/cache"
	"heed/internal/base/memo"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/rules"
)

// AskAll is Ask for several URLs of one site, in their order. Only the first Judgement has what
// is the same for all of them: see control.Client.Check. Without ofSite, none has the delay and
// the sitemaps.
func (j *Judge) AskAll(ctx context.Context, userAgent string, addresses []string, ofSite bool, policy policyOf) ([]*control.Judgement, error) {
	all := make([]*control.Judgement, len(addresses))
	for i, address := range addresses {
		a, err := j.ask(ctx, userAgent, address, ofSite && i == 0, policy)
		if err != nil {
			return nil, err
		}
		if all[i] = a; i > 0 {
			a.URL, a.Agent, a.Robots, a.By, a.Age, a.State, a.Profile = "", "", "", "", 0, "", ""
		}
	}
	return all, nil
}

// Site judges the URLs of one site, for one client after the other. A robots.txt that was
// needed is kept for as long as the Site is: the site is asked once. It is for one goroutine.
type Site struct {
	of   *Sites
	kept map[keptKey]kept
}

type keptKey struct {
	origin    rules.Origin
	userAgent string
}

// kept is what a policyOf returned.
type kept struct {
	policy     *rules.Policy
	robots, by string
}

// Check judges URLs of the site, all of one origin, as control.Client.Check does. With first,
// the first Judgement has the delay and the sitemaps.
func (s *Site) Check(ctx context.Context, agent string, urls []string, first bool) ([]*control.Judgement, error) {
	m := s.of
	if m.client != nil {
		q := &control.CheckRequest{
			Agent: agent, Profile: m.check.Profile, Client: m.check.Client,
			Flags: m.judge.Rules.Flags, Explain: m.judge.Explain, Delay: first && m.judge.Delays, Sitemaps: first && m.judge.Sitemaps,
		}
		for _, url := range urls {
			q.URLs = append(q.URLs, []byte(url))
		}
		return m.client.Check(ctx, q)
	}
	return m.judge.AskAll(ctx, agent, urls, first, s.policy)
}

// policy is the policyOf of s.
func (s *Site) policy(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string, string) {
	k := keptKey{o, userAgent}
	had, known := s.kept[k]
	if !known {
		had.policy, had.robots, had.by = s.of.policy(ctx, o, userAgent)
		if ctx.Err() != nil {
			return had.policy, had.robots, had.by // it was not fetched to the end
		}
		memo.Set(&s.kept, k, had)
	}
	return had.policy, had.robots, had.by
}

// Sites judges the URLs of many sites, by the running heed, with its settings and stored files,
// or in this process, as `heed check` does. It is safe for concurrent use.
type Sites struct {
	// Fetcher has the method Document, and Robots returns the rules of an origin for a
	// document that the site by names there; nil without fetches.
	Fetcher *cache.Cache
	Robots  func(ctx context.Context, by string, o rules.Origin) *rules.Policy

	check  *CheckCmd
	client *control.Client // of the running heed; nil: this process judges
	judge  *Judge          // what judgements contain, and without client all that they rest on
	policy policyOf
}

// Site begins the judging of a site's URLs.
func (m *Sites) Site() *Site { return &Site{of: m} }

// newSites returns what judges as the flags say, without the settings of a file.
func (c *CheckCmd) newSites(a *console.App) (*Sites, error) {
	flags, err := c.Flags()
	if err == nil {
		err = flags.Validate()
	}
	j := NewJudge(a.Now, (*acl.Rules)(nil).ForRun(flags))
	j.Client = c.Client
	return &Sites{check: c, judge: j}, err
}

// OpenSites returns what judges as the flags of c say: Config, NoConfig, Client, Profile,
// Local, Fresh and Purpose. The others are not used. With fetches, this process will fetch
// documents.
func (c *CheckCmd) OpenSites(a *console.App, fetches bool) (*Sites, error) {
	m, err := c.newSites(a)
	if err != nil {
		return nil, err
	}
	m.judge.Delays, m.judge.Sitemaps = true, true
	if m.client, err = c.running(a); err != nil || m.client != nil && !fetches {
		return m, err
	}
	m.policy, err = c.prepare(a, m.judge, m)
	return m, err
}

// running returns a client for the heed that judges; nil when this process does.
func (c *CheckCmd) running(a *console.App) (*control.Client, error) {
	if c.Robots != "" || c.Chosen(a) || c.Local || c.Fresh || len(c.Purpose) > 0 {
		return nil, nil
	}
	return heedHere(context.Background(), a)
}
