package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/config"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// defaultPrivacy is what the built-in settings hide.
func defaultPrivacy(t *testing.T) *config.AuditConfig {
	t.Helper()
	c := must.Get(config.Load("", testkit.BuiltIn(t)))(t)
	return &c.Audit
}

// The names that stand in proxy.toml cover what sites and APIs usually call
// secrets, and leave the usual rest of a query alone.
func TestHeed_TheUsualNamesOfSecretsAreHiddenUnasked(t *testing.T) {
	p := must.Get(openPrivacy(defaultPrivacy(t), t.TempDir()))(t)
	for _, name := range []string{
		"token", "access_token", "accessToken", "id_token", "refresh_token", "oauth_token", "csrfToken", "X-Amz-Security-Token", "authtoken",
		"key", "api_key", "apikey", "API-KEY", "apiKey", "x-api-key", "subscription-key", "appkey", "access_key", "accesskey", "private_key", "license_key",
		"password", "passwd", "pass", "pwd", "passphrase", "new_password", "user[password]", "sig", "signature", "X-Amz-Signature", "oauth_signature",
		"secret", "client_secret", "clientsecret", "auth", "authorization", "session", "session_id", "sessionid", "PHPSESSID", "jsessionid", "sid",
		"jwt", "bearer", "credential", "credentials", "otp", "SAMLResponse", "code",
	} {
		got, privacy := p.Redact("/a?b=1&" + name + "=5ecret&c=2")
		must.True(t, privacy && !strings.Contains(got, "5ecret") && strings.HasSuffix(got, "&c=2"), "%s: %s", name, got)
	}
	for _, name := range []string{"q", "id", "page", "keyword", "keywords", "author", "passenger", "sight", "design", "zip_code", "state", "lang", "sort", "compass", "monkey", "side", "authors"} {
		got, privacy := p.Redact("/a?" + name + "=1")
		must.True(t, !privacy, "%s: %s", name, got)
	}
}

func TestHeed_TheRedactionKeyIsMadeOnceAndPrivate(t *testing.T) {
	state, c := t.TempDir(), defaultPrivacy(t)
	first := must.Get(openPrivacy(c, state))(t)
	path := filepath.Join(state, privacyKeyFile)
	info, err := os.Stat(path)
	must.Need(t, err == nil && info.Mode().Perm() == 0o600, "%v, %v", info, err)
	second := must.Get(openPrivacy(c, state))(t)
	a, _ := first.Redact("/?token=x")
	b, _ := second.Redact("/?token=x")
	must.True(t, a == b, "after a restart %s is %s", a, b)
	must.OK(t, os.Chmod(path, 0o604))
	must.Fail(t, must.Err(openPrivacy(c, state)), "chmod", "a key that everyone can read")
	testkit.Write(t, filepath.Join(state, "other"), "no key\n")
	must.OK(t, os.Rename(filepath.Join(state, "other"), path))
	must.Fail(t, must.Err(openPrivacy(c, state)), "Remove it", "a file without a key")
}
