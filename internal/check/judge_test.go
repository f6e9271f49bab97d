package check

import (
	"context"
	"net"
	"testing"
	"time"

	"heed/internal/check/why"
	"heed/internal/judge/acl"
	"heed/internal/pace"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// policyWith returns the policy of source and body for every origin.
func policyWith(source rules.Source, body string) policyOf {
	return func(_ context.Context, o rules.Origin, _ string) (*rules.Policy, string, string) {
		source.Origin = o
		return rules.New(source, []byte(body)), o.RobotsURL(), why.BySite
	}
}

// An address of heed's own is a loop, as for the proxy: whether the URL shows it, a name leads
// there, or an exception allows it.
func TestHeed_AnAddressOfHeedsOwnIsALoop(t *testing.T) {
	t.Parallel()
	self := &acl.Addrs{}
	self.Add(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3128})
	allow := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/"}, Reason: "letter 7"}))(t)
	own := policyWith(rules.Source{State: rules.Unreachable, NoConnection: true, Err: acl.ErrSelf}, "")
	for url, policy := range map[string]policyOf{
		"http://127.0.0.1:3128/":    policyWith(rules.Source{State: rules.Available}, ""),
		"http://localhost:3128/%00": policyWith(rules.Source{State: rules.Available}, ""),
		"http://heed.test:3128/":    own,
		"http://heed.test:8080/":    own,
	} {
		for _, exceptions := range [][]*acl.Exception{nil, {allow}} {
			j := &Judge{Now: time.Now, Self: self, Rules: &acl.Rules{Hosts: []acl.Host{{Exceptions: exceptions}}}}
			a, err := j.Ask(t.Context(), "TestBot/1", url, policy)
			must.True(t, err == nil && !a.Allowed && a.Reason == rules.ReasonLoop && a.Detail != "",
				"%s with %d exceptions: %+v, %v", url, len(exceptions), a, err)
		}
	}
}

// A client without a User-Agent is judged by the files that are held for clients with names
// as well, as by the proxy.
func TestHeed_WithoutAUserAgentTheFilesForAllNamesCount(t *testing.T) {
	t.Parallel()
	held := rules.New(rules.Source{State: rules.Available, RetriedAs: "Welcome/1"}, []byte("User-agent: *\nDisallow: /a\n"))
	j := &Judge{Now: time.Now, Rules: &acl.Rules{}, Held: func(rules.Origin) []*rules.Policy { return []*rules.Policy{held} }}
	own := policyWith(rules.Source{State: rules.Available}, "User-agent: *\nAllow: /\n")
	for agent, allowed := range map[string]bool{"": false, "TestBot/1": true} {
		a, err := j.Ask(t.Context(), agent, "http://site.test/a", own)
		must.True(t, err == nil && a.Allowed == allowed && (allowed || a.Line == 2), "%q: %+v, %v", agent, a, err)
	}
}

// Where Visit-time is obeyed, a judgement has the lines and the share of the day that they
// leave; and it has the longest wait of the client.
func TestHeed_ADelayHasWhatElseBoundsRequests(t *testing.T) {
	t.Parallel()
	text := "User-agent: *\nCrawl-delay: 4\nVisit-time: 0600-0900\nVisit-time: 2200-0100\nVisit-time: 0700-0800\nDisallow: /x\n\nUser-agent: other\nVisit-time: 0000-2300\n"
	wait := 5 * time.Second
	for _, c := range []struct {
		mode   acl.Mode
		obey   bool
		client *acl.Client
		visits int
		open   float64
		wait   float64
		unkept bool
	}{
		{acl.Enforce, false, &acl.Client{}, 0, 0, 30, false},
		{acl.Enforce, true, &acl.Client{MaxWait: &wait}, 3, 0.25, 5, false},
		{acl.Observe, true, &acl.Client{}, 3, 0.25, 30, true},
	} {
		j := &Judge{Now: time.Now, Delays: true, Rules: &acl.Rules{Mode: c.mode, Clients: []acl.Client{*c.client}}}
		j.Pacing = pace.Settings{MaxDelay: time.Hour, MaxWait: 30 * time.Second, ObeyVisits: c.obey}
		a := must.Get(j.Ask(t.Context(), "TestBot", "http://h.test/", policyWith(rules.Source{State: rules.Available}, text)))(t)
		if d := a.Delay; len(d.Visits) != c.visits || d.Open != c.open || d.MaxWait != c.wait || d.Unkept != c.unkept || d.Seconds != 4 {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// The delay and the hours of a client that is declared under one name and shows another are
// those of both, as they are for the proxy.
func TestHeed_ADelayIsThatOfEachName(t *testing.T) {
	t.Parallel()
	text := "User-agent: NewsBot\nCrawl-delay: 2\nVisit-time: 0000-1200\nDisallow: /x\n\nUser-agent: Lab\nCrawl-delay: 3\nVisit-time: 0600-1800\nDisallow: /x\n"
	j := &Judge{Now: time.Now, Delays: true, Rules: &acl.Rules{Clients: []acl.Client{{Agent: rules.Declare("NewsBot")}}}}
	j.Pacing = pace.Settings{MaxDelay: time.Hour, ObeyVisits: true}
	a := must.Get(j.Ask(t.Context(), "Lab/1", "http://h.test/", policyWith(rules.Source{State: rules.Available}, text)))(t)
	d := a.Delay
	must.True(t, d.Seconds == 3 && d.Group == "lab" && len(d.Visits) == 2 && d.Open == 0.25, "%+v", d)
}

// Of the judgements on the pages of a site, only the first has what is the same for all.
func TestHeed_PagesOfASiteAreJudgedTogether(t *testing.T) {
	t.Parallel()
	j := &Judge{Now: time.Now, Rules: &acl.Rules{}, Delays: true, Sitemaps: true}
	policy := policyWith(rules.Source{State: rules.Available, Status: 200}, "User-agent: *\nDisallow: /a\nSitemap: http://h.test/map.xml\n")
	all, err := j.AskAll(t.Context(), "TestBot", []string{"http://h.test/b", "http://h.test/a", "http://h.test/c"}, true, policy)
	must.Need(t, err == nil && len(all) == 3, "%v %v", all, err)
	if a := all[0]; !a.Allowed || a.URL != "http://h.test/b" || a.Delay == nil || len(a.Sitemaps) != 1 || a.State != "available" {
		t.Errorf("%+v", a)
	}
	a := all[1]
	must.True(t, !a.Allowed && a.Line == 2 && a.URL+a.Robots+a.State == "" && a.Delay == nil && a.Sitemaps == nil, "%+v", a)
	_, err = j.AskAll(t.Context(), "TestBot", []string{"http://h.test/b", "h.test"}, true, policy)
	must.True(t, err != nil, "what is no URL was judged")
}
