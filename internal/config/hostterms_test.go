package config

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestHeed_TheSettingsContainWhatWasAgreed(t *testing.T) {
	b := must.Get(agreedConfig(t).Rules(time.Now))(t)
	now := time.Date(2027, 1, 31, 23, 59, 59, 0, time.UTC)
	news := b.ClientOf(acl.ClientInfo{Addr: netip.MustParseAddr("192.0.2.9"), UserAgent: "Mozilla/5.0 (X11)"})
	must.Need(t, news != nil && news.Name == "news" && len(news.Agent.Tokens) == 2 && news.RefuseUnnamed, "%+v", news)
	at := func(host string, now time.Time) acl.Effective {
		o := must.Get(rules.ParseOrigin("https", host))(t)
		return b.For(news, o, now)
	}
	e, rule := exceptionTo(at("www.example.com", now), "/api/x", now)
	must.True(t, e != nil && rule == "Allow: /api/", "on its last day: %v %q", e, rule)
	e, rule = exceptionTo(at("example.com", now), "/api/admin", now)
	must.True(t, e != nil && e.Refuse, "refused: %v %q", e, rule)
	later := now.Add(time.Second)
	e, _ = exceptionTo(at("example.com", later), "/api/x", later)
	must.True(t, e == nil, "after its last day it still holds")
	must.Equal(t, at("registry.test", now).Site.Service, "package registry", "service")
	mirror := at("mirror.test", now)
	d := mirror.Site.Robots.Decide(news.Agent, rules.NewTarget("/drafts/1"))
	must.True(t, mirror.Mode == acl.Observe && d.Verdict == rules.Refuse && d.Line == 2, "%v, %+v", mirror.Mode, d)
	must.True(t, b.Hash == agreedConfig(t).Hash() || b.Hash != "", "the settings have no hash")
}

func TestHeed_WhatIsNotEnforcedIsPrintedForTheOperator(t *testing.T) {
	got := strings.Join(agreedConfig(t).Notices(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)), "\n")
	for _, want := range []string{
		`client "news" is judged as NewsBot, NewsBot-Images, which the site does not see`,
		`client "people" is EXEMPT`,
		"the exception for *.Example.COM, example.com was last in force on 2027-01-31",
		"mirror.test is only observed",
		"registry.test is a service and not crawled",
	} {
		must.Contain(t, got, want, "%q is not told", want)
	}
}

// An observed client that any client can claim to be is reported; one that is recognised
// by more, and one where nothing is intercepted, are not.
func TestHeed_AnObservedClientByNameAloneIsReported(t *testing.T) {
	for text, want := range map[string]bool{
		"user_agent = \"Shop/*\"":                             true,
		"user_agent = \"Shop/*\"\nfrom = [\"192.0.2.7\"]":     false,
		"user_agent = \"Shop/*\"\nlistener = \"127.0.0.1:1\"": false,
		"from = [\"192.0.2.7\"]":                              false,
	} {
		c := settings(t, "[[client]]\nname = \"shop\"\nmode = \"observe\"\n"+text+"\n")
		notices := strings.Join(c.Notices(time.Now()), "\n")
		must.Equal(t, strings.Contains(notices, `client "shop" is recognised by its user_agent alone`), want, "%s:\n%s", text, notices)
	}
}

// agreedConfig returns the settings of testdata/agreed.toml.
func agreedConfig(t *testing.T) *Config {
	t.Helper()
	return must.Get(Load("testdata/agreed.toml", testkit.BuiltIn(t)))(t)
}

// exceptionTo returns the exception for a target that the rules of the site refuse.
func exceptionTo(t acl.Effective, target string, at time.Time) (*acl.Exception, string) {
	return (&judge.Query{Effective: t, Target: rules.NewTarget(target), Now: at}).Exception(true)
}
