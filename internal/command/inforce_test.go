package command

import (
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// agreedBy returns what a Book says, without what it would read from files.
func agreedBy(b *terms.Book) *terms.Book {
	plain := b.With(nil, nil)
	plain.Hash, plain.Text, plain.Users = "", "", nil
	for i := range plain.Hosts {
		plain.Hosts[i].Robots = nil
	}
	return plain
}

// A year later, the text in the record makes the same terms: of the settings,
// of what was granted while heed ran, and of what a run asked for.
func TestHeed_TheRecordedSettingsMakeTheSameTerms(t *testing.T) {
	settled, err := agreedConfig(t).book(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	host, err := terms.ParseHostPattern("shop.test")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	g := &grants{path: filepath.Join(t.TempDir(), grantsFile), log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}
	inForce := settled
	g.amend = func(add func(*terms.Book) *terms.Book) { inForce = add(settled) }
	if _, err := g.allow(grantedException{Host: host, Path: "/api/", Client: "news", Reason: "by phone", Since: now, Expires: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	granted := inForce
	if _, err := g.observe(terms.Break{Mode: terms.Observe, Since: now, Until: now.Add(time.Minute), Reason: "outage"}); err != nil {
		t.Fatal(err)
	}
	broken := inForce
	g.close()
	run := forRun(broken, terms.Run{
		Client: &terms.Client{Name: runName, Agent: rules.Declare("LabBot/2"), SendUserAgent: "LabBot/2.1"}, Observe: true,
		Services: []terms.HostPattern{host}, Reason: serviceOfRun,
	})
	hashes := map[string]bool{}
	for name, b := range map[string]*terms.Book{"settings": settled, "an exception granted": granted, "a break": broken, "a run": run} {
		again, err := bookInForce(b.Text)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, b.Text)
			continue
		}
		if got, want := agreedBy(again), agreedBy(b); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
		if hashes[b.Hash] || !strings.HasPrefix(b.Hash, settled.Hash) {
			t.Errorf("%s: the hash is %s", name, b.Hash)
		}
		hashes[b.Hash] = true
	}
}

// Nothing secret reaches the record: no password, no file of passwords or keys.
func TestHeed_TheRecordedSettingsHoldNoSecrets(t *testing.T) {
	dir := t.TempDir()
	c, err := Load(write(t, filepath.Join(dir, "proxy.toml"), `
[access]
users = "people.htpasswd"
[upstream]
proxy = "http://scraper:s3cret@proxy.test:8080"
[fleet]
url = "redis://heed:s3cret@store.test:6379"
[[host]]
match = ["one.test"]
upstream = "http://scraper:s3cret@other.test:8080"
client_cert = "one.pem"
client_key = "one.key"
`), builtIn(t))
	if err != nil {
		t.Fatal(err)
	}
	text := c.inForce().text()
	for _, secret := range []string{"s3cret", "scraper", "htpasswd", ".key", dir} {
		if strings.Contains(text, secret) {
			t.Errorf("%q stands in %s", secret, text)
		}
	}
	if _, err := bookInForce(text); err != nil {
		t.Error(err)
	}
	if _, err := bookInForce("{"); err == nil {
		t.Error("half a text is taken for settings")
	}
}
