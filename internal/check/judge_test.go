package check

import (
	"context"
	"net"
	"testing"
	"time"

	"heed/internal/acl"
	"heed/proxy/upstream"
	"heed/rules"
)

// policyWith returns the policy of source and body for every origin.
func policyWith(source rules.Source, body string) policyOf {
	return func(_ context.Context, o rules.Origin, _ string) (*rules.Policy, string, string) {
		source.Origin = o
		return rules.New(source, []byte(body)), o.RobotsURL(), bySite
	}
}

// An address of heed's own is a loop, as for the proxy: whether the URL shows it, a name leads
// there, or an exception allows it.
func TestHeed_AnAddressOfHeedsOwnIsALoop(t *testing.T) {
	t.Parallel()
	self := &upstream.Addrs{}
	self.Add(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3128})
	allow, err := acl.NewException(acl.Exception{Patterns: []string{"/"}, Reason: "letter 7"})
	if err != nil {
		t.Fatal(err)
	}
	own := policyWith(rules.Source{State: rules.Unreachable, NoConnection: true, Err: upstream.ErrSelf}, "")
	for url, policy := range map[string]policyOf{
		"http://127.0.0.1:3128/":    policyWith(rules.Source{State: rules.Available}, ""),
		"http://localhost:3128/%00": policyWith(rules.Source{State: rules.Available}, ""),
		"http://heed.test:3128/":    own,
		"http://heed.test:8080/":    own,
	} {
		for _, exceptions := range [][]*acl.Exception{nil, {allow}} {
			j := &Judge{Now: time.Now, Self: self, Rules: &acl.Rules{Hosts: []acl.Host{{Exceptions: exceptions}}}}
			a, err := j.Ask(t.Context(), "TestBot/1", url, policy)
			if err != nil || a.Allowed || a.Reason != rules.ReasonLoop || a.Detail == "" {
				t.Errorf("%s with %d exceptions: %+v, %v", url, len(exceptions), a, err)
			}
		}
	}
}

// A client without a User-Agent is judged by the files that are held for clients with names
// as well, as by the proxy.
func TestHeed_WithoutAUserAgentTheFilesForAllNamesCount(t *testing.T) {
	t.Parallel()
	held := rules.New(rules.Source{State: rules.Available, RetriedAs: "Welcome/1"}, []byte("User-agent: *\nDisallow: /a\n"))
	j := &Judge{Now: time.Now, Held: func(rules.Origin) []*rules.Policy { return []*rules.Policy{held} }}
	own := policyWith(rules.Source{State: rules.Available}, "User-agent: *\nAllow: /\n")
	for agent, allowed := range map[string]bool{"": false, "TestBot/1": true} {
		a, err := j.Ask(t.Context(), agent, "http://site.test/a", own)
		if err != nil || a.Allowed != allowed || !allowed && a.Line != 2 {
			t.Errorf("%q: %+v, %v", agent, a, err)
		}
	}
}
