package command

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

const agreed = `
[[client]]
name = "news"
from = ["192.0.2.0/24", "2001:db8::7"]
user_agent = "Mozilla/5.0 *"
agent = ["NewsBot", "NewsBot-Images"]
send_from = "bots@example.org"
no_user_agent = "refuse"

[[client]]
name = "people"
from = ["198.51.100.0/24"]
mode = "exempt"

[[host]]
match = ["*.Example.COM", "example.com"]
allow = ["/api/"]
refuse = ["/api/admin"]
clients = ["news"]
reason = "written permission 2026-14"
expires = 2027-01-31

[[host]]
match = ["registry.test"]
crawl = false
reason = "package registry"

[[host]]
match = ["mirror.test"]
mode = "observe"
robots_file = "agreed.txt"
reason = "sent by mail"
`

func agreedConfig(t *testing.T) *Config {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agreed.txt"), "User-agent: *\nDisallow: /drafts/\n")
	c, err := Load(write(t, filepath.Join(dir, "proxy.toml"), agreed), builtIn(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHeed_WhatWasAgreedStandsInTheSettings(t *testing.T) {
	b, err := agreedConfig(t).book(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2027, 1, 31, 23, 59, 59, 0, time.UTC)
	news := b.ClientOf(terms.Who{Addr: netip.MustParseAddr("192.0.2.9"), UserAgent: "Mozilla/5.0 (X11)"})
	if news == nil || news.Name != "news" || len(news.Agent.Tokens) != 2 || !news.RefuseUnnamed {
		t.Fatalf("%+v", news)
	}
	at := func(host string, now time.Time) terms.Terms {
		o, err := rules.ParseOrigin("https", host)
		if err != nil {
			t.Fatal(err)
		}
		return b.For(news, o, now)
	}
	if e, rule := at("www.example.com", now).Override("/api/x", true, now); e == nil || rule != "Allow: /api/" {
		t.Errorf("on its last day: %v %q", e, rule)
	}
	if e, rule := at("example.com", now).Override("/api/admin", true, now); e == nil || !e.Refuse {
		t.Errorf("refused: %v %q", e, rule)
	}
	later := now.Add(time.Second)
	if e, _ := at("example.com", later).Override("/api/x", true, later); e != nil {
		t.Error("after its last day it still holds")
	}
	if got := at("registry.test", now).Site.Service; got != "package registry" {
		t.Errorf("service: %q", got)
	}
	mirror := at("mirror.test", now)
	if d := mirror.Site.Robots.Decide(news.Agent, "/drafts/1"); mirror.Mode != terms.Observe || d.Verdict != rules.Refuse || d.Line != 2 {
		t.Errorf("%v, %+v", mirror.Mode, d)
	}
	if b.Hash != agreedConfig(t).Hash() && b.Hash == "" {
		t.Error("the settings have no hash")
	}
}

func TestHeed_TheOperatorIsToldWhatIsNotEnforced(t *testing.T) {
	got := strings.Join(agreedConfig(t).notices(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)), "\n")
	for _, want := range []string{
		`client "news" is judged as NewsBot, NewsBot-Images, which the site does not see`,
		`client "people" is EXEMPT`,
		"the exception for *.Example.COM, example.com has ended on 2027-02-01",
		"mirror.test is only observed",
		"registry.test is called and not crawled",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not told:\n%s", want, got)
		}
	}
}

// What heed shows can be used as settings again, and means the same.
func TestHeed_ShownSettingsAreSettings(t *testing.T) {
	c := agreedConfig(t)
	var out bytes.Buffer
	if err := (&ConfigShowCmd{Config: c.File}).Run(&App{Stdout: &out, Defaults: builtIn(t)}); err != nil {
		t.Fatal(err)
	}
	again, err := Load(write(t, filepath.Join(filepath.Dir(c.File), "again.toml"), out.String()), builtIn(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if again.Hash() != c.Hash() {
		t.Errorf("other settings:\n%s", out.String())
	}
}
