package config

import (
	"path/filepath"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// Nothing secret reaches the record: no password, no file of passwords or keys.
func TestHeed_TheRecordedSettingsHoldNoSecrets(t *testing.T) {
	dir := t.TempDir()
	c, err := Load(testkit.Write(t, filepath.Join(dir, "proxy.toml"), `
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
`), testkit.BuiltIn(t))
	must.OK(t, err)
	text := string(console.MustJSON(c.recordedSettings()))
	for _, secret := range []string{"s3cret", "scraper", "htpasswd", ".key", dir} {
		must.Lack(t, text, secret)
	}
	must.Get(RecordedRules(text))(t)
	_, err = RecordedRules("{")
	must.True(t, err != nil, "half a text is taken for settings")
}
