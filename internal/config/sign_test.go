package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/passport"
	"heed/rules"
)

// newKeyFile writes a key into dir and returns it.
func newKeyFile(t *testing.T, path string) *passport.Key {
	t.Helper()
	k := must.Get(passport.NewKey(time.Time{}))(t)
	must.OK(t, os.WriteFile(path, k.File(), 0o600))
	return k
}

func origin(t *testing.T, url string) rules.Origin {
	t.Helper()
	scheme, host, _ := strings.Cut(url, "://")
	return must.Get(rules.ParseOrigin(scheme, host))(t)
}

// Each client is signed by its own key, heed itself by another; hosts have the form, and
// whether http is signed.
func TestHeed_SignIsReadWithItsKeys(t *testing.T) {
	dir := t.TempDir()
	news, own := newKeyFile(t, filepath.Join(dir, "news.key")), newKeyFile(t, filepath.Join(dir, "heed.key"))
	file := testkit.Write(t, filepath.Join(dir, "proxy.toml"), `
[robots]
sign = { key = "file:`+filepath.Join(dir, "heed.key")+`", agent = "https://bots.example/heed.json" }
[[client]]
name = "news"
sign = { key = "file:news.key", agent = "https://bots.example/news.json" }
[[client]]
name = "other"
sign = {}
[[host]]
match = ["old.test"]
sign_form = "string"
[[host]]
match = ["*.test"]
sign_form = "dictionary"
sign_http = true
`)
	c := must.Get(Load(file, testkit.BuiltIn(t)))(t)
	r := must.Get(c.Rules(time.Now))(t)
	if s := r.Clients[0].Signer; s == nil || s.ID() != news.Thumbprint+" https://bots.example/news.json" || r.Clients[1].Signer != nil {
		t.Errorf("the clients are signed by %v and %v", r.Clients[0].Signer, r.Clients[1].Signer)
	}
	if s, err := c.RobotsSigner(); err != nil || s.ID() != own.Thumbprint+" https://bots.example/heed.json" {
		t.Errorf("heed is signed by %s, %v", s.ID(), err)
	}
	signing := c.SiteSigning()
	for url, want := range map[string]struct {
		form   passport.Form
		signed bool
	}{
		"https://old.test": {passport.String, true}, "http://old.test": {passport.String, true}, "http://a.test": {passport.Dictionary, true},
		"https://example.com": {passport.Dictionary, true}, "http://example.com": {passport.Dictionary, false},
	} {
		o := origin(t, url)
		form, signed := signing(o)
		must.True(t, form == want.form && signed == want.signed, "%s: form %d, signed %v", url, form, signed)
		form, signed = r.For(&r.Clients[0], o, time.Now()).Site.Signing(o)
		must.True(t, form == want.form && signed == want.signed, "%s of a client: form %d, signed %v", url, form, signed)
	}
	read := c.ReloadedFiles()
	must.True(t, len(read) == 2 && read[0].Key == "client.sign" && read[1].Key == "robots.sign", "a reload reads %v", read)
	for _, secret := range []string{"news.key", "bots.example"} {
		must.Lack(t, r.Text, secret, "the record has %s", secret)
	}
	if _, err := RecordedRules(r.Text); err != nil {
		t.Errorf("the record cannot be read: %v", err)
	}
	again, err := Load(testkit.Write(t, filepath.Join(dir, "again.toml"), c.Text()), testkit.BuiltIn(t))
	must.True(t, err == nil && again.Hash() == c.Hash(), "the settings that are shown are others: %v", err)
}

// A key that others can read, that is broken or that anyone has signs nothing: the settings
// are not used, and no error contains it.
func TestHeed_AKeyThatCannotBeTrustedIsAnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "news.key")
	newKeyFile(t, path)
	c, err := Load(testkit.Write(t, filepath.Join(dir, "proxy.toml"), `
[[client]]
name = "news"
sign = { key = "file:news.key", agent = "https://bots.example/news.json" }
`), testkit.BuiltIn(t))
	must.OK(t, err)
	good := must.Get(os.ReadFile(path))(t)
	check := func(name, want string) {
		t.Helper()
		_, err := c.Rules(time.Now)
		must.Fail(t, err, want, name)
		if all := c.FileMistakes(nil); len(all) != 1 || !strings.Contains(all[0].Text, want) || all[0].Line != 4 {
			t.Errorf("%s: the mistakes are %v", name, all)
		}
	}
	if _, err := c.Rules(time.Now); err != nil || len(c.FileMistakes(nil)) > 0 {
		t.Fatalf("%v, %v", err, c.FileMistakes(nil))
	}
	const example = `{"kty":"OKP","crv":"Ed25519","d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}`
	for name, text := range map[string]string{"is the example key": example, "contains no key": "hunter2", "several keys": string(good) + string(good), "more than 16384 octets": strings.Repeat(" ", passport.MaxKeyFile+1)} {
		testkit.Write(t, path, text)
		must.OK(t, os.Chmod(path, 0o600))
		check(name, name)
	}
	testkit.Write(t, path, string(good))
	if runtime.GOOS != "windows" {
		must.OK(t, os.Chmod(path, 0o644))
		check("everyone", "can be read by everyone")
	}
	must.OK(t, os.Remove(path))
	check("missing", "no such file")
}
