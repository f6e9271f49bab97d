package replay

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"heed/internal/terms"
	"heed/rules"
)

// rechecking is one run of Recheck.
type rechecking struct {
	*Recheck
	library *library
	tx      *sql.Tx
	now     map[rules.Origin]*rules.Policy
	hosts   map[rules.Origin]*SiteNow
	result  *Rechecked
}

// all judges all entries that count.
func (s *rechecking) all(ctx context.Context) error {
	var first, last sql.NullInt64
	if err := s.tx.QueryRowContext(ctx, "SELECT (SELECT min(seq) FROM entry), (SELECT max(seq) FROM entry)").Scan(&first, &last); err != nil {
		return err
	}
	for from := first.Int64; first.Valid && from <= last.Int64; from += chunk {
		entries, err := readEntries(ctx, s.tx, "AND "+byRules, from, from+chunk-1)
		if err != nil {
			return err
		}
		for i := range entries {
			if err := s.one(ctx, &entries[i].entry); err != nil {
				return err
			}
		}
		s.tell(min(from+chunk, last.Int64)-first.Int64, last.Int64-first.Int64)
	}
	return nil
}

// one judges an entry.
func (s *rechecking) one(ctx context.Context, e *entry) error {
	a, err := s.library.gather(ctx, s.tx, e, e.ground, false)
	if err != nil {
		return err
	}
	p := s.now[a.origin]
	if p == nil || !a.byRules() {
		return nil // of another host than is asked about
	}
	s.result.Allowed++
	host := s.host(a.origin, p)
	host.Allowed++
	switch {
	case p.Source().State == rules.Unreachable:
		s.result.Unknown++
		return nil
	case a.redacted:
		s.result.Redacted++
		return nil
	}
	if err := a.ask(s.library); err != nil {
		s.result.Incomplete++
		return nil
	}
	if o, ok := a.opinion(p); ok && o.Verdict != rules.Allow {
		s.result.Refused++
		host.refused(a, &o)
	}
	return nil
}

// host returns what is told of a site.
func (s *rechecking) host(o rules.Origin, p *rules.Policy) *SiteNow {
	if h := s.hosts[o]; h != nil {
		return h
	}
	h := &SiteNow{Site: o.String(), urls: map[string]int{}}
	source := p.Source()
	if source.State == rules.Unreachable {
		h.Error = "its robots.txt cannot be had"
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
func (h *SiteNow) refused(a *again, o *terms.Opinion) {
	h.Refused++
	i := slices.IndexFunc(h.Rules, func(r RuleNow) bool { return r.Rule == o.Rule && r.Line == o.Line && r.Group == o.Group })
	if i < 0 {
		i = len(h.Rules)
		h.Rules = append(h.Rules, RuleNow{Group: o.Group, Rule: o.Rule, Line: o.Line})
	}
	h.Rules[i].Count++
	address := a.url()
	at, known := h.urls[address]
	if !known {
		if len(h.URLs) == maxURLs {
			return
		}
		at = len(h.URLs)
		h.urls[address] = at
		h.URLs = append(h.URLs, Refetched{URL: address, Agent: a.asker.userAgent})
	}
	h.URLs[at].Count++
}

// finish lists the sites that there is something to say of.
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
