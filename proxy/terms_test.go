package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// settle makes rules the terms of a rig.
func settle(c *Config, rules *acl.Rules) {
	c.Rules = rules
}

// everywhere is a pattern for all hosts.
func everywhere(t testing.TB) []acl.HostPattern {
	t.Helper()
	p := must.Get(acl.ParseHostPattern("*"))(t)
	return []acl.HostPattern{p}
}

// A bot that calls itself a browser is judged as what it is; since the site
// does not see that name, the browser's rules hold as well.
func TestHeed_APinnedNameOnlyAddsRefusals(t *testing.T) {
	pinned := func(name, send string) func(*Config) {
		return func(c *Config) {
			settle(c, &acl.Rules{Clients: []acl.Client{{Name: "shop", Agent: rules.Declare(name), SendUserAgent: send}}})
		}
	}
	for _, c := range []struct {
		name, pin, send, userAgent, path string
		status                           int
	}{
		{"the pinned name is refused", "BadBot", "", "Mozilla/5.0 Chrome/130", "/page", 403},
		{"the name the site sees is refused", "GoodBot", "", "BadBot/1.0", "/page", 403},
		{"the site sees the pinned name", "GoodBot", "GoodBot/1 (+https://bots.example/)", "BadBot/1.0", "/page", 200},
		{"the sent name is another one", "GoodBot", "BadBot/2", "curl/8", "/page", 403},
		{"all rules allow", "GoodBot", "", "curl/8", "/page", 200},
	} {
		r := newRig(t, hello, pinned(c.pin, c.send))
		for _, m := range allModes {
			must.Status(t, r.ask(m, question{path: c.path, header: []string{"User-Agent: " + c.userAgent}}).Response, c.status, "%s, %s", c.name, m)
		}
	}
}

func TestHeed_TheSiteSeesTheSettledIdentity(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Clients: []acl.Client{{Name: "shop", SendFrom: "bots@example.org"}}})
	})
	r.ask(plain, question{path: "/from", header: []string{"From: somebody@example.net"}})
	got := r.site.last(t, "/from").Header["From"]
	must.True(t, len(got) == 1 && got[0] == "bots@example.org", "the site saw %q", got)
	e := r.records.target(t, "/from")
	must.True(t, e.SentFrom == "bots@example.org" && e.ClientName == "shop", "the record has %q and %q", e.SentFrom, e.ClientName)
}

// In observe mode the client gets every answer, with a Proxy-Status when it would have
// been refused.
func TestHeed_ObserveRefusesNothingAndSaysSo(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{Mode: acl.Observe}) })
	for _, m := range allModes {
		path := "/private/" + string(m)
		got := r.ask(m, question{path: path, header: []string{"User-Agent: curl/8"}})
		must.True(t, got.StatusCode == 200 && strings.Contains(got.Header.Get("Proxy-Status"), "observed only"),
			"%s: %d, %q", m, got.StatusCode, got.Header.Get("Proxy-Status"))
		e := r.records.target(t, path)
		must.True(t, e.Decision.Verdict == rules.WouldRefuse && e.Decision.Line == 3 && e.Mode == "observe",
			"%s: the record has %+v in mode %q", m, e.Decision, e.Mode)
	}
	must.Equal(t, r.ask(plain, question{path: "/page"}).Header.Get("Proxy-Status"), "", "an allowed request has the Proxy-Status")
}

// An exception lets through what was agreed, for as long as it was agreed.
func TestHeed_AnExceptionStopsAtItsExpiry(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	allow := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/private/feed"}, Reason: "written permission 2026-14", Expires: now.Add(time.Hour)}))(t)
	r := newRig(t, hello, func(c *Config) {
		c.Now = func() time.Time { return now }
		settle(c, &acl.Rules{Hosts: []acl.Host{{Match: everywhere(t), Exceptions: []*acl.Exception{allow}}}})
	})
	ask := func(path string) (int, audit.Entry) {
		got := r.ask(plain, question{path: path})
		return got.StatusCode, r.records.target(t, path)
	}
	if status, e := ask("/private/feed/1"); status != 200 || e.Decision.Reason != rules.ReasonOverride || e.Settled != allow.Reason || e.Decision.Rule != "Allow: /private/feed" {
		t.Errorf("before its end: %d, %+v, %q", status, e.Decision, e.Settled)
	}
	if status, e := ask("/private/feed/%2e%2e/x"); status != 403 || e.Decision.Reason != rules.ReasonRule {
		t.Errorf("a spelling that may lead elsewhere: %d, %+v", status, e.Decision)
	}
	now = now.Add(time.Hour)
	status, e := ask("/private/feed/2")
	must.True(t, status == 403 && e.Settled == "", "after its end: %d, %q", status, e.Settled)
}

func TestHeed_TheOperatorRefusesMoreThanTheSite(t *testing.T) {
	refuse := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/page"}, Refuse: true, Reason: "asked for by mail"}))(t)
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Hosts: []acl.Host{{Match: everywhere(t), Exceptions: []*acl.Exception{refuse}}}})
	})
	for _, m := range allModes {
		got := r.ask(m, question{path: "/page/" + string(m)})
		if got.StatusCode != 403 || !strings.Contains(got.Header.Get("Proxy-Status"), "an exception of its operator") {
			t.Errorf("%s: %d, %q", m, got.StatusCode, got.Header.Get("Proxy-Status"))
		}
	}
}

// A host that programs call is not crawled: nothing is judged, and that is said.
func TestHeed_AServiceIsCalledAndNotCrawled(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Hosts: []acl.Host{{Match: everywhere(t), Service: "package registry"}}})
	})
	got := r.ask(mitmH1, question{path: "/private/x"})
	if e := r.records.target(t, "/private/x"); got.StatusCode != 200 || e.Judged != audit.NotJudged || e.Decision.Reason != rules.ReasonNotACrawl || e.Settled != "package registry" {
		t.Errorf("%d, %+v", got.StatusCode, e)
	}
	if got := r.site.reached(); strings.Contains(strings.Join(got, " "), "/robots.txt") {
		t.Errorf("the site was asked for its rules: %q", got)
	}
}

func TestHeed_AClientThatMustNameItself(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Clients: []acl.Client{{Name: "strict", RefuseUnnamed: true}}})
	})
	if got := r.ask(plain, question{path: "/page"}); got.StatusCode != http.StatusForbidden || !strings.Contains(got.Header.Get("Proxy-Status"), "names no User-Agent") {
		t.Errorf("unnamed: %d, %q", got.StatusCode, got.Header.Get("Proxy-Status"))
	}
	must.Status(t, r.ask(plain, question{path: "/page", header: []string{"User-Agent: curl/8"}}).Response, 200, "named")
}

// The rules of a file of the operator's count in place of the site's own.
func TestHeed_AnOwnRobotsTextForAHost(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Hosts: []acl.Host{{Match: everywhere(t), Robots: func(o rules.Origin) *rules.Policy {
			return rules.New(rules.Source{Origin: o, State: rules.Available}, []byte("User-agent: *\nDisallow: /page\n"))
		}}}})
	})
	must.Status(t, r.ask(plain, question{path: "/page"}).Response, 403, "refused by the file")
	must.Status(t, r.ask(plain, question{path: "/private"}).Response, 200, "refused by the site only")
}

// Of a tunnel no path is seen, so that only what is about the whole site counts;
// people's tunnels pass.
func TestHeed_WhatWasSettledHoldsForTunnels(t *testing.T) {
	whole := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/"}, Refuse: true, Reason: "asked by mail"}))(t)
	part := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/private"}, Refuse: true, Reason: "asked by mail"}))(t)
	for _, c := range []struct {
		name   string
		rules  *acl.Rules
		status int
		reason rules.Reason
	}{
		{"a tunnel is refused whole", &acl.Rules{HTTPS: acl.Tunnel, Hosts: []acl.Host{{Match: everywhere(t), Exceptions: []*acl.Exception{whole}}}}, 403, rules.ReasonOverride},
		{"a host is refused whole", &acl.Rules{HTTPS: acl.HostOnly, Hosts: []acl.Host{{Match: everywhere(t), Exceptions: []*acl.Exception{whole}}}}, 403, rules.ReasonOverride},
		{"a part is not seen", &acl.Rules{HTTPS: acl.Tunnel, Hosts: []acl.Host{{Match: everywhere(t), Exceptions: []*acl.Exception{part}}}}, 200, rules.ReasonTunnel},
		{"people", &acl.Rules{Mode: acl.Exempt}, 200, rules.ReasonExempt},
		{"people where https is refused", &acl.Rules{Mode: acl.Exempt, HTTPS: acl.NoHTTPS}, 403, rules.ReasonAccess},
	} {
		r := newRig(t, hello, func(config *Config) { settle(config, c.rules) })
		conn := testkit.Dial(t, r.addr)
		conn.Send("CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\n\r\n")
		head := conn.Head("CONNECT")
		conn.Close()
		e := r.records.await(t, c.name, func(e *audit.Entry) bool { return e.Method == "CONNECT" })
		must.True(t, head.StatusCode == c.status && e.Decision.Reason == c.reason,
			"%s: %d, %+v", c.name, head.StatusCode, e.Decision)
	}
}

// A client on the same cable is known by the address that networks are written
// in, whatever interface it came in by.
func TestHeed_AZoneIsNoPartOfAClientsAddress(t *testing.T) {
	at := addrOf(&net.TCPAddr{IP: net.ParseIP("fe80::7"), Port: 1, Zone: "eth0"})
	c := (&acl.Client{From: []netip.Prefix{netip.MustParsePrefix("fe80::/10")}})
	must.True(t, c.Matches(acl.ClientInfo{Addr: at}), "%v is not in fe80::/10", at)
}
