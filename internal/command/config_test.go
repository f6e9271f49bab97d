package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"heed/internal/config"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/fixture"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestConfigCheckFindsWhatStartingWould(t *testing.T) {
	dir := t.TempDir()
	fixture.CA(t, filepath.Join(dir, "mine"))
	fixture.CA(t, filepath.Join(dir, "other"))
	check := func(text string) said {
		t.Helper()
		return heed(t, "", "config", "check", "--config", testkit.Write(t, filepath.Join(dir, "proxy.toml"), text))
	}
	fails := func(text, want string) {
		t.Helper()
		s := check(text)
		must.True(t, s.status == console.ExitUsage && strings.Contains(s.errors, want), "%q: %+v, want %q", text, s, want)
	}
	well := "[https]\nca_cert = \"mine/ca.pem\"\nca_key = \"mine/ca-key.pem\"\n[upstream]\nca_file = \"other/ca.pem\"\n"
	check(well).is(t, 0, filepath.Join(dir, "proxy.toml")+": well\n", "")
	fails("lisen = 1", "did you mean \"listen\"?")
	fails("[https]\nca_cert = \"none.pem\"\nca_key = \"none.key\"", "none.key is missing")
	fails("[https]\nca_cert = \"mine/ca.pem\"\nca_key = \"other/ca-key.pem\"", "does not belong to the certificate")
	fails("[upstream]\nca_file = \"none.pem\"", "upstream.ca_file: the CA file cannot be read")
	fails("[upstream]\nca_file = \"mine/ca-key.pem\"", "upstream.ca_file: the CA file "+filepath.Join(dir, "mine", "ca-key.pem")+" holds no certificate")
	must.OK(t, os.Chmod(filepath.Join(dir, "mine", "ca-key.pem"), 0o644))
	fails(well, "chmod 600")
}

// All errors of a file are printed together. Warnings do not keep heed from starting.
func TestConfigCheckPrintsAllErrorsTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.toml")
	check := func(text string) said {
		return heed(t, "", "config", "check", "--config", testkit.Write(t, path, text))
	}
	s := check(`listen = ["127.0.0.1:3128", "0.0.0.0:3128"]
[upstream]
ca_file = "none.pem"
[fleet]
ca_file = "nothing.pem"
[[host]]
match = ["a.test"]
robots_file = "agreed.txt"
reason = "a letter"
[[host]]
match = ["b.test"]
robots_file = "other.txt"
reason = "a letter"
`)
	for _, want := range []string{"0.0.0.0:3128 can be reached from other machines", "upstream.ca_file: ", "fleet.ca_file: ", "agreed.txt", "other.txt"} {
		must.True(t, s.status == console.ExitUsage && strings.Count(s.errors, want) == 1, "%+v, want %q once", s, want)
	}
	s = check(`[[client]]
name = "second"
listener = "127.0.0.1:3129"
[[host]]
match = ["a.test"]
allow = ["/feed"]
reason = "a letter"
expires = 2001-01-01
`)
	if s.status != 0 || !strings.Contains(s.errors, "was last in force on 2001-01-01") || !strings.Contains(s.errors, `client "second" never matches: heed does not listen on 127.0.0.1:3129`) {
		t.Errorf("what needs attention: %+v", s)
	}
}

// Every setting is shown, with a value that is false or empty as well; of an entry, those
// that have a value without being written.
func TestConfigShow_ShowsEverySetting(t *testing.T) {
	file := testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), "[[host]]\nmatch = [\"a.test\"]\ncrawl = false\nreason = \"an API\"\n[[host]]\nmatch = [\"b.test\"]\nvia = false\n")
	s := heed(t, "", "config", "show", "--config", file)
	want := map[string][]string{}
	keys(reflect.TypeFor[config.Config](), "", want)
	for table, names := range want {
		for _, name := range names {
			if !strings.HasPrefix(table, "[[") && !strings.Contains(s.out, "\n"+name+" = ") && !strings.Contains(s.out, "."+name+"]\n") {
				t.Errorf("%s %s is not shown", table, name)
			}
		}
	}
	for text, times := range map[string]int{"crawl = false\n": 1, "via = false\n": 1, "never_allow = false\n": 2, "pprof = false\n": 1} {
		must.Equal(t, strings.Count(s.out, text), times, "%q is not shown %d times:\n%s", text, times, s.out)
	}
}

// --changed shows what differs from the defaults, in a form that gives the same settings.
func TestConfigShow_ShowsWhatWasChanged(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"": "# nothing differs from the defaults\n",
		"profile = \"standard\"\n[pacing]\nmax_wait = \"30000ms\"\n[upstream]\nvia = true\n":              "# nothing differs from the defaults\n",
		"drain = \"90s\"\n[audit]\nenabled = false\nredact = []\n[https]\nmode = \"intercept\"\n":         "drain = '1m30s'\n\n[audit]\nenabled = false\nredact = []\n",
		"[limits]\nrequests = 7\n[upstream]\nvia = false\nresolve = { \"a.test:443\" = \"127.0.0.1:1\" }": "[limits]\nrequests = 7\n\n[upstream]\nvia = false\n\n[upstream.resolve]\n'a.test:443' = '127.0.0.1:1'\n",
		"[[host]]\nmatch = [\"a.test\"]\nold_tls = true\nreason = \"old\"\nnever_allow = false\n":         "[[host]]\nmatch = ['a.test']\nold_tls = true\nreason = 'old'\n",
		"[[client]]\nname = \"a\"\nuser_agent = \"a/*\"\n":                                                "[[client]]\nname = 'a'\nuser_agent = 'a/*'\n",
	} {
		file := testkit.Write(t, filepath.Join(dir, "proxy.toml"), text)
		s := heed(t, "", "config", "show", "--changed", "--config", file)
		_, shown, _ := strings.Cut(s.out, "\n# hash ")
		_, shown, _ = strings.Cut(shown, "\n")
		must.True(t, s.status == 0 && shown == want, "%q: %+v\nwant %q", text, s, want)
		again, err := config.Load(testkit.Write(t, filepath.Join(dir, "shown.toml"), s.out), testkit.BuiltIn(t))
		must.True(t, err == nil && strings.Contains(s.out, "# hash "+again.Hash()+"\n"),
			"%q is not read back: %v", s.out, err)
	}
	s := heed(t, "", "config", "show", "--changed", "--json", "--no-config", "--listen", "127.0.0.2:3128")
	must.Contain(t, s.out, `"settings":{"listen":"127.0.0.2:3128"}`, "%+v", s)
}

// What heed shows can be used as settings again, and means the same.
func TestShownSettingsAreSettings(t *testing.T) {
	c := fixture.Agreed(t)
	var out bytes.Buffer
	must.OK(t, (&ConfigShowCmd{FileFlags: config.FileFlags{Config: c.File}}).Run(&console.App{Stdout: &out, Defaults: testkit.BuiltIn(t)}))
	again, err := config.Load(testkit.Write(t, filepath.Join(t.TempDir(), "again.toml"), out.String()), testkit.BuiltIn(t))
	must.Need(t, err == nil, "%v\n%s", err, out.String())
	must.True(t, again.Hash() == c.Hash() && strings.Contains(out.String(), "# from "+c.File+"\n# hash "+c.Hash()+"\n"),
		"other settings:\n%s", out.String())
}

func TestAListOfHostsThatPinIsUsedWhenAskedFor(t *testing.T) {
	https := func(text, host string) acl.HTTPS {
		t.Helper()
		r := must.Get(fixture.Settings(t, text).Rules(time.Now))(t)
		return r.For(nil, rules.Origin{Scheme: "https", Host: host, Port: 443}, time.Now()).HTTPS()
	}
	const asked = "[https]\npinned = \"host-only\"\n"
	for _, c := range []struct {
		text, host string
		want       acl.HTTPS
	}{
		{"", "courier.push.apple.com", acl.Intercept},
		{asked, "courier.push.apple.com", acl.HostOnly},
		{asked, "mtalk.google.com", acl.HostOnly},
		{asked, "www.example.org", acl.Intercept},
		{asked + "[[host]]\nmatch = [\"mtalk.google.com\"]\nhttps = \"refuse\"\n", "mtalk.google.com", acl.NoHTTPS},
	} {
		must.Equal(t, https(c.text, c.host), c.want, "with %q, https to %s", c.text, c.host)
	}
	if said := strings.Join(fixture.Settings(t, asked).Unjudged(), "\n"); !strings.Contains(said, "hosts that are known to pin certificates (heed config pinned) is judged by its host alone") {
		t.Errorf("at the start heed says %q", said)
	}
	var out bytes.Buffer
	if err := (ConfigPinnedCmd{}).Run(&console.App{Stdout: &out}); err != nil || !strings.Contains(out.String(), "\n*.push.apple.com\n") {
		t.Errorf("heed config pinned prints %q, %v", out.String(), err)
	}
}

func TestConfigShowPrintsNoPasswords(t *testing.T) {
	file := testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), `
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
	for _, c := range []ConfigShowCmd{{JSON: true}, {}} {
		out.Reset()
		c.FileFlags = config.FileFlags{Config: file}
		must.OK(t, c.Run(&console.App{Stdout: &out, Defaults: testkit.BuiltIn(t)}))
		must.True(t, !strings.Contains(out.String(), "hunter2") && json.Valid(out.Bytes()) == c.JSON,
			"a password is shown, or it is no JSON:\n%s", out.String())
	}
	for _, text := range []string{"socks5://...@proxy.example", "file:" + filepath.Join(filepath.Dir(file), "secret"), "env:STORE"} {
		must.Contain(t, out.String(), text)
	}
}

// A mistake of a sign is reported once: the keys are read without the rest of it.
func TestConfigCheck_ReportsAMistakeOfSignOnce(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "news.key")
	if s := heed(t, "", "identity", "new", key); s.status != 0 {
		t.Fatal(s.errors)
	}
	file := testkit.Write(t, filepath.Join(dir, "proxy.toml"), "[[client]]\nname = \"news\"\nfrom = [\"127.0.0.1\"]\nsign = { key = \"file:"+key+"\" }\n")
	s := heed(t, "", "config", "check", "--config", file)
	if s.status != console.ExitUsage || strings.Count(s.errors, file+":4: ") != 1 || !strings.Contains(s.errors, ":4: client.sign.agent: ") {
		t.Errorf("status %d, stderr %q", s.status, s.errors)
	}
}
