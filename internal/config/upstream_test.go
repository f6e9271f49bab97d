package config

import (
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func settings(t *testing.T, text string) *Config {
	t.Helper()
	return must.Get(Load(testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), text), testkit.BuiltIn(t)))(t)
}

func TestHeed_ThePasswordOfTheFleetsStoreMayStandElsewhere(t *testing.T) {
	c := settings(t, "[fleet]\nurl = \"env:STORE\"\n")
	got, err := FleetURL(c, []string{"STORE=redis://heed:hunter2@store.test"})
	must.True(t, got == "redis://heed:hunter2@store.test" && err == nil, "the store is at %q, %v", got, err)
	if _, err := FleetURL(c, []string{"STORE=http://heed:hunter2@store.test"}); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "fleet.url: ") {
		t.Errorf("a URL that is no store's: %v", err)
	}
}

// The error for a reference to a value that is no URL of a proxy does not contain the
// value.
func TestHeed_AnErrorDoesNotContainTheValueOfAReference(t *testing.T) {
	for _, secret := range []string{"hunter2", "ftp://user:hunter2@proxy.example", "http://user:hunter2@proxy.example/path", "file:hunter2", "env", "http://user:hunter2%zz@proxy.example"} {
		_, err := ResolveUpstream("env:P", []string{"P=" + secret})
		must.True(t, err != nil && !strings.Contains(err.Error(), "hunter2"), "%q: %v", secret, err)
	}
}
