package replay

import (
	"context"
	"errors"
	"testing"

	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A year later some sites have closed, some cannot be asked, and the others say
// what they said.
func TestHeed_PastRequestsAreJudgedByTodaysRules(t *testing.T) {
	t.Parallel()
	c := newCrawl(t).entries(1500)
	record := c.closed()
	all := int64(0)
	for _, d := range listed(t, record, store.Filter{Verdict: "allow"}) {
		if d.Judged == "path" && d.Reason != "robots-txt" && d.Reason != "not-a-crawl" {
			all++
		}
	}
	today := func(_ context.Context, o rules.Origin, _ string) *rules.Policy {
		switch o.Host {
		case "s7.test":
			return rules.New(rules.Source{Origin: o, State: rules.Available}, []byte("User-agent: *\nDisallow: /\n"))
		case "s8.test":
			return rules.New(rules.Source{Origin: o, Err: errors.New("it is gone")}, nil)
		}
		return rules.New(rules.Source{Origin: o, State: rules.Unavailable}, nil)
	}
	check := Recheck{ParseRules: c.options().ParseRules, Policy: today, Width: 4}
	r, err := check.Run(t.Context(), record)
	must.OK(t, err)
	must.True(t, r.Allowed != 0 && r.Allowed <= all && r.Refused != 0 && r.Unknown != 0 && r.Incomplete == 0,
		"%+v; %d in all", r, all)
	for _, h := range r.Hosts {
		closed, gone := h.Refused > 0 && len(h.URLs) > 0 && h.Rules[0].Line == 2, h.Error == "it is gone"
		must.True(t, closed || gone, "%+v", h)
	}
	check.Host = "s9.test"
	r, err = check.Run(t.Context(), record)
	must.True(t, err == nil && r.Refused == 0 && len(r.Hosts) == 0 && r.Allowed != 0, "of another site: %+v, %v", r, err)
}
