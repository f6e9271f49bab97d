package replay

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"heed/internal/audit/store"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/rules"
)

// Recheck judges past requests by the current policies of their sites.
type Recheck struct {
	ParseRules func(text string) (*acl.Rules, error) // as in Options
	Host       string                                // as in Filter; empty: all
	// Policy returns a site's current policy for a client with a User-Agent; empty:
	// heed's own. It is never nil. Width bounds the calls at a time.
	Policy func(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy
	Width  int
	// Progress, if not nil, is called with the work done and all of it.
	Progress func(done, all int64)
}

// Rechecked is the result of a Recheck.
type Rechecked struct {
	File  string `json:"file"` // the record
	Sites int    `json:"sites"`
	// Allowed counts the requests that were allowed by rules or because there
	// were none; Refused counts those of them that would be refused now.
	Allowed int64 `json:"allowed"`
	Refused int64 `json:"would_be_refused"`
	// Unknown counts requests that cannot be judged because the robots.txt cannot
	// be fetched now, Redacted those whose verdict may depend on a redacted value, and
	// Incomplete those with other data missing from the record.
	Unknown    int64 `json:"site_cannot_be_asked"`
	Redacted   int64 `json:"redacted"`
	Incomplete int64 `json:"incomplete"`
	// Hosts are the sites with requests that would be refused, most first, and
	// those whose robots.txt cannot be fetched.
	Hosts []SiteNow `json:"hosts"`
}

// SiteNow is a site with past requests that would be refused now, or whose
// robots.txt cannot be fetched.
type SiteNow struct {
	Site    string `json:"site"`
	Allowed int64  `json:"allowed"`
	Refused int64  `json:"would_be_refused"`
	// Error is why its robots.txt cannot be fetched; empty when it can.
	Error  string      `json:"error,omitempty"`
	SHA256 string      `json:"robots_sha256,omitempty"` // of the file as it is now
	Rules  []RuleNow   `json:"rules,omitempty"`         // that would refuse, most requests first
	URLs   []Refetched `json:"urls,omitempty"`          // that would be refused, in the order of their first request, at most maxURLs

	urls map[string]int // indexes of URLs
}

// RuleNow is a rule that would refuse.
type RuleNow struct {
	Group string `json:"group"`
	Rule  string `json:"rule"`
	Line  int    `json:"line"`
	Count int64  `json:"count"`
}

// Refetched is a URL that would be refused now.
type Refetched struct {
	URL   string `json:"url"`
	Agent string `json:"user_agent"` // of the first request
	Count int64  `json:"count"`
}

// maxURLs bounds SiteNow.URLs.
const maxURLs = 1000

// Run judges all allowed requests of a record by the current policies of their
// sites, and by the recorded names, settings and exceptions.
func (r *Recheck) Run(ctx context.Context, record *store.Record) (*Rechecked, error) {
	reader, err := record.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	filter := &store.Filter{Host: r.Host, AllowedByRules: true}
	sites, err := reader.RequestedSites(filter)
	if err != nil {
		return nil, err
	}
	s := &rechecking{library: &library{parseRules: r.ParseRules}, reader: reader, policy: r.Policy, now: r.fetch(ctx, sites), hosts: map[rules.Origin]*SiteNow{}, result: &Rechecked{File: record.Path, Sites: len(sites), Hosts: []SiteNow{}}}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	f, err := reader.File()
	if err != nil {
		return nil, err
	}
	err = reader.Entries(filter, func(e *store.Entry) error {
		if e.Seq%chunk == 0 {
			r.progress(e.Seq-f.FirstSeq, f.LastSeq-f.FirstSeq)
		}
		return s.judge(ctx, e)
	})
	if err != nil {
		return nil, err
	}
	return s.finish(), nil
}

// fetch returns the current policies of sites, at most Width at a time.
func (r *Recheck) fetch(ctx context.Context, sites []rules.Origin) map[rules.Origin]*rules.Policy {
	now := make(map[rules.Origin]*rules.Policy, len(sites))
	var mu sync.Mutex
	var fetches sync.WaitGroup
	slots := make(chan struct{}, max(1, r.Width))
	for _, o := range sites {
		slots <- struct{}{}
		fetches.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			p := r.Policy(ctx, o, "")
			mu.Lock()
			defer mu.Unlock()
			now[o] = p
			r.progress(int64(len(now)), int64(len(sites)))
		})
	}
	fetches.Wait()
	return now
}

func (r *Recheck) progress(done, all int64) {
	if r.Progress != nil {
		r.Progress(done, all)
	}
}

// rechecking is one run of Recheck.
type rechecking struct {
	library *library
	reader  *store.Reader
	policy  func(context.Context, rules.Origin, string) *rules.Policy
	now     map[rules.Origin]*rules.Policy // that heed itself got
	hosts   map[rules.Origin]*SiteNow
	result  *Rechecked
}

// judge judges an entry.
func (s *rechecking) judge(ctx context.Context, e *store.Entry) error {
	a, err := s.library.load(s.reader, e, false)
	if err != nil {
		return err
	}
	p := s.now[a.origin]
	if p == nil || !a.replayable() {
		return nil // of a host that was not selected
	}
	s.result.Allowed++
	if err := a.prepare(s.library); err != nil {
		s.host(a.origin, p).Allowed++
		s.result.Incomplete++
		return nil
	}
	if shown := a.query.Names.Shown; shown != "" {
		p = s.policy(ctx, a.origin, shown) // the site may answer it differently
	}
	host := s.host(a.origin, p)
	host.Allowed++
	if p.Source().State == rules.Unreachable {
		s.result.Unknown++
		return nil
	}
	switch v, ok := a.evaluate(p); {
	case a.doubt:
		s.result.Redacted++
	case ok && v.Verdict != rules.Allow:
		s.result.Refused++
		host.refused(a, &v.Result)
	}
	return nil
}

// host returns the SiteNow of a site, which it adds when necessary.
func (s *rechecking) host(o rules.Origin, p *rules.Policy) *SiteNow {
	if h := s.hosts[o]; h != nil {
		return h
	}
	h := &SiteNow{Site: o.String(), urls: map[string]int{}}
	source := p.Source()
	if source.State == rules.Unreachable {
		h.Error = "its robots.txt cannot be fetched"
		if source.Err != nil {
			h.Error = source.Err.Error()
		}
	}
	if source.Snapshot != nil && source.Snapshot.Zlib != nil {
		h.SHA256 = source.Snapshot.SHA256.String()
	}
	s.hosts[o] = h
	return h
}

// refused counts a request that would be refused.
func (h *SiteNow) refused(a *assessment, o *judge.Result) {
	h.Refused++
	i := slices.IndexFunc(h.Rules, func(r RuleNow) bool { return r.Rule == o.Rule && r.Line == o.Line && r.Group == o.Group })
	if i < 0 {
		i = len(h.Rules)
		h.Rules = append(h.Rules, RuleNow{Group: o.Group, Rule: o.Rule, Line: o.Line})
	}
	h.Rules[i].Count++
	address := urlOf(a.origin, a.Target)
	at, known := h.urls[address]
	if !known {
		if len(h.URLs) == maxURLs {
			return
		}
		at = len(h.URLs)
		h.urls[address] = at
		h.URLs = append(h.URLs, Refetched{URL: address, Agent: a.client.UserAgent})
	}
	h.URLs[at].Count++
}

// finish sets Hosts, and returns the result.
func (s *rechecking) finish() *Rechecked {
	for _, h := range s.hosts {
		if h.Refused == 0 && h.Error == "" {
			continue
		}
		slices.SortStableFunc(h.Rules, func(a, b RuleNow) int { return cmp.Compare(b.Count, a.Count) })
		s.result.Hosts = append(s.result.Hosts, *h)
	}
	slices.SortFunc(s.result.Hosts, func(a, b SiteNow) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Site, b.Site))
	})
	return s.result
}
