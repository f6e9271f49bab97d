package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

func settings(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Load(write(t, filepath.Join(t.TempDir(), "proxy.toml"), text), builtIn(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHeed_AListOfHostsThatPinIsUsedWhenAskedFor(t *testing.T) {
	https := func(text, host string) terms.HTTPS {
		t.Helper()
		book, err := settings(t, text).book(time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return book.For(nil, rules.Origin{Scheme: "https", Host: host, Port: 443}, time.Now()).HTTPS()
	}
	const asked = "[https]\npinned = \"host-only\"\n"
	for _, c := range []struct {
		text, host string
		want       terms.HTTPS
	}{
		{"", "courier.push.apple.com", terms.Intercept},
		{asked, "courier.push.apple.com", terms.HostOnly},
		{asked, "mtalk.google.com", terms.HostOnly},
		{asked, "www.example.org", terms.Intercept},
		{asked + "[[host]]\nmatch = [\"mtalk.google.com\"]\nhttps = \"refuse\"\n", "mtalk.google.com", terms.NoHTTPS},
	} {
		if got := https(c.text, c.host); got != c.want {
			t.Errorf("with %q, https to %s is %v, want %v", c.text, c.host, got, c.want)
		}
	}
	if said := strings.Join(settings(t, asked).unjudged(), "\n"); !strings.Contains(said, "hosts that are known to pin certificates (heed config pinned) is judged by its host alone") {
		t.Errorf("at the start heed says %q", said)
	}
	var out bytes.Buffer
	if err := (ConfigPinnedCmd{}).Run(&App{Stdout: &out}); err != nil || !strings.Contains(out.String(), "\n*.push.apple.com\n") {
		t.Errorf("heed config pinned prints %q, %v", out.String(), err)
	}
}

func TestHeed_ConfigShowTellsNoPasswords(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "proxy.toml"), `
[upstream]
proxy = "http://user:hunter2@proxy.example:3128"
[fleet]
url = "env:STORE"
[[host]]
match = ["a.test"]
upstream = "socks5://user:hunter2@proxy.example"
[[host]]
match = ["b.test"]
upstream = "file:secret"
`)
	var out bytes.Buffer
	if err := (&ConfigShowCmd{Config: file}).Run(&App{Stdout: &out, Defaults: builtIn(t)}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("a password is shown:\n%s", out.String())
	}
	for _, text := range []string{"socks5://...@proxy.example", "file:" + filepath.Join(filepath.Dir(file), "secret"), "env:STORE"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%s is not shown:\n%s", text, out.String())
		}
	}
}

func TestHeed_ThePasswordOfTheFleetsStoreMayStandElsewhere(t *testing.T) {
	c := settings(t, "[fleet]\nurl = \"env:STORE\"\n")
	if got, err := fleetURL(c, []string{"STORE=redis://heed:hunter2@store.test"}); got != "redis://heed:hunter2@store.test" || err != nil {
		t.Errorf("the store is at %q, %v", got, err)
	}
	if _, err := fleetURL(c, []string{"STORE=http://heed:hunter2@store.test"}); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "fleet.url: ") {
		t.Errorf("a URL that is no store's: %v", err)
	}
}

// What stands at a reference and is no URL of a proxy is never told.
func TestHeed_AReferenceToWhatIsNoProxyTellsNothingOfIt(t *testing.T) {
	for _, secret := range []string{"hunter2", "ftp://user:hunter2@proxy.example", "http://user:hunter2@proxy.example/path", "file:hunter2", "env", "http://user:hunter2%zz@proxy.example"} {
		_, err := revealedUpstream("env:P", []string{"P=" + secret})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", secret, err)
		}
	}
}

// Policies found on one way say nothing of sites that are reached another way.
func TestHeed_HostsWithAWayOfTheirOwnMakeAnotherWay(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []string{
		"",
		"upstream = \"direct\"",
		"upstream = \"http://p.example:1\"",
		"upstream_tls = \"unverified\"\nreason = \"a test\"",
		"upstream_tls = \"sha256:" + strings.Repeat("0", 64) + "\"\nreason = \"a test\"",
	} {
		ways, err := newEgresses(settings(t, "[[host]]\nmatch = [\"a.test\"]\nmode = \"observe\"\n"+c+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		id, err := ways.identity(way{})
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[id]; twice {
			t.Errorf("%q and %q are one way", c, other)
		}
		seen[id] = c
	}
	plain, err := newEgresses(settings(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := plain.identity(way{}); err != nil || seen[id] != "" {
		t.Errorf("settings of hosts that say nothing of their way make another one, %v", err)
	}
}
