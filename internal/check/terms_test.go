package check

import (
	"strings"
	"testing"
	"time"

	"heed/internal/check/why"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/passport"
	"heed/rules"
)

// The explanation of a verdict for a client of the settings has the settings in force for it.
func TestHeed_TheExplanationHasTheSettingsOfTheClient(t *testing.T) {
	t.Parallel()
	key := must.Get(passport.NewKey(time.Time{}))(t)
	signer := must.Get(passport.NewSigner(key, "https://bots.example/news.json"))(t)
	hosts := func(name string, h acl.Host) acl.Host {
		p := must.Get(acl.ParseHostPattern(name))(t)
		h.Match = []acl.HostPattern{p}
		return h
	}
	tunnel, form := acl.Tunnel, passport.String
	j := NewJudge(time.Now, &acl.Rules{
		Clients: []acl.Client{
			{Name: "news", Agent: rules.Declare("NewsBot"), SendFrom: "news@bots.example", Mode: new(acl.Observe), Terms: acl.Terms{Purpose: acl.Purposes{"search"}}, Signer: signer},
			{Name: "sent", Agent: rules.Declare("SentBot"), SendUserAgent: "SentBot/2"},
		},
		Hosts: []acl.Host{
			hosts("never.test", acl.Host{NeverAllow: true, Licence: &acl.Licence{Reference: "contract 4711"}}),
			hosts("old.test", acl.Host{SignForm: &form, SignHTTP: true}), hosts("shy.test", acl.Host{HTTPS: &tunnel}),
		},
	})
	j.Explain = true
	signed := "signed: as https://bots.example/news.json with the key " + key.Thumbprint
	for _, c := range []struct{ client, url, want string }{
		{"news", "https://a.test/", "judged as NewsBot"},
		{"news", "https://a.test/", "and as what its own User-Agent names, since the site does not see that name"},
		{"news", "https://a.test/", "sends From: news@bots.example"},
		{"news", "https://a.test/", "mode observe"},
		{"news", "https://a.test/", "purpose search: what the site does not allow for it is refused; see --purpose"},
		{"news", "https://a.test/", signed},
		{"news", "http://old.test/", signed + ", in the older form (sign_form)"},
		{"news", "http://a.test/", "signed: no, requests over http are signed only with sign_http"},
		{"news", "https://shy.test/", "signed: no, https to this host is not intercepted"},
		{"news", "https://never.test/", `licence contract 4711: what the licences of the site ask for counts as met`},
		{"news", "https://never.test/", "no exception may allow what the rules refuse (never_allow)"},
		{"sent", "https://a.test/", "sends User-Agent: SentBot/2"},
	} {
		j.Client = c.client
		a := must.Get(j.Ask(t.Context(), "Lab/1", c.url, policyWith(rules.Source{State: rules.Available}, "")))(t)
		var lines []string
		for _, s := range why.Judgement(a, nil) {
			if s.Label == "Settings" {
				lines = s.Lines
			}
		}
		must.Contain(t, strings.Join(lines, "\n")+"\n", c.want+"\n", "%s at %s lacks %q: %q", c.client, c.url, c.want, lines)
	}
}
