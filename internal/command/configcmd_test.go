package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestHeed_ConfigCheckFindsWhatStartingWould(t *testing.T) {
	dir := t.TempDir()
	testCA(t, filepath.Join(dir, "mine"))
	testCA(t, filepath.Join(dir, "other"))
	check := func(text string) said {
		t.Helper()
		return heed(t, "", "config", "check", "--config", write(t, filepath.Join(dir, "proxy.toml"), text))
	}
	fails := func(text, want string) {
		t.Helper()
		if s := check(text); s.status != exitUsage || !strings.Contains(s.errors, want) {
			t.Errorf("%q: %+v, want %q", text, s, want)
		}
	}
	well := "[https]\nca_cert = \"mine/ca.pem\"\nca_key = \"mine/ca-key.pem\"\n[upstream]\nca_file = \"other/ca.pem\"\n"
	check(well).is(t, 0, filepath.Join(dir, "proxy.toml")+": well\n", "")
	fails("lisen = 1", "did you mean \"listen\"?")
	fails("[https]\nca_cert = \"none.pem\"\nca_key = \"none.key\"", "none.key is missing")
	fails("[https]\nca_cert = \"mine/ca.pem\"\nca_key = \"other/ca-key.pem\"", "does not belong to the certificate")
	fails("[upstream]\nca_file = \"none.pem\"", "upstream.ca_file: the CA file cannot be read")
	fails("[upstream]\nca_file = \"mine/ca-key.pem\"", "upstream.ca_file: the CA file "+filepath.Join(dir, "mine", "ca-key.pem")+" holds no certificate")
	if err := os.Chmod(filepath.Join(dir, "mine", "ca-key.pem"), 0o644); err != nil {
		t.Fatal(err)
	}
	fails(well, "chmod 600")
}

// All that is wrong is said at once, and what only needs attention keeps nobody
// from starting.
func TestHeed_ConfigCheckSaysAllAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.toml")
	check := func(text string) said { return heed(t, "", "config", "check", "--config", write(t, path, text)) }
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
		if s.status != exitUsage || strings.Count(s.errors, want) != 1 {
			t.Errorf("%+v, want %q once", s, want)
		}
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
	if s.status != 0 || !strings.Contains(s.errors, "has ended on 2001-01-02") || !strings.Contains(s.errors, `client "second" is whoever connects to 127.0.0.1:3129, where heed does not listen`) {
		t.Errorf("what needs attention: %+v", s)
	}
}

// What show prints is a file that gives the same settings.
func TestHeed_ConfigShowCanBeReadBack(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "proxy.toml"), "drain = \"90s\"\nname = \"edge\"\n[upstream]\nproxy = \"http://corp.test:3128\"\nresolve = { \"A.test:443\" = \"127.0.0.1:1\" }\n")
	s := heed(t, "", "config", "show", "--config", file)
	shown, err := Load(write(t, filepath.Join(dir, "shown.toml"), s.out), builtIn(t))
	if s.status != 0 || err != nil {
		t.Fatalf("%+v, %v", s, err)
	}
	want, err := Load(file, builtIn(t))
	if err != nil {
		t.Fatal(err)
	}
	shown.File = want.File
	if !reflect.DeepEqual(shown, want) {
		t.Errorf("shown %+v\nwant  %+v", shown, want)
	}
	if !strings.Contains(s.out, "# from "+file+"\n# hash "+want.Hash()+"\n") || !strings.Contains(s.out, "1m30s") {
		t.Errorf("shown:\n%s", s.out)
	}
}

func TestHeed_ConfigShowKeepsPasswords(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "p.toml"), "[upstream]\nproxy = \"http://me:pa5sw0rd@corp.test:3128\"")
	for _, form := range [][]string{nil, {"--json"}} {
		s := heed(t, "", append([]string{"config", "show", "--config", file}, form...)...)
		if s.status != 0 || strings.Contains(s.out, "pa5sw0rd") || !strings.Contains(s.out, "corp.test:3128") {
			t.Errorf("%+v", s)
		}
		if form != nil && !json.Valid([]byte(s.out)) {
			t.Errorf("no JSON: %s", s.out)
		}
	}
}
