package command

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/fixture"
	"heed/internal/tools/testkit/must"
)

func TestEnvNamesNoFileThatItsCallerCannotRead(t *testing.T) {
	dir := testkit.ForeignDir(t)
	t.Setenv("HEED_STATE", dir)
	s := heed(t, "", "env")
	if s.status != 0 || !strings.Contains(s.out, "export https_proxy=http://127.0.0.1:3128\n") || strings.Contains(s.out, dir) {
		t.Errorf("%+v", s)
	}
	must.True(t, strings.Contains(s.errors, "http://127.0.0.1:3128/bundle.pem") && strings.Contains(s.errors, dir),
		"stderr is %q", s.errors)
}

// A heed that runs as a service has a state directory that its users cannot
// read: `heed env` prints how to get its CA, not the path of another heed's.
func TestEnvNamesNoFileOfAnotherHeed(t *testing.T) {
	other := fixture.CA(t, filepath.Join(t.TempDir(), "other"))
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(other.CertPEM())
	}))
	defer service.Close()
	addr := strings.TrimPrefix(service.URL, "http://")
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("HEED_STATE", state)
	s := heed(t, "", "env", "--config", testkit.Write(t, filepath.Join(t.TempDir(), "p.toml"), `listen = "`+addr+`"`))
	if s.status != 0 || !strings.Contains(s.out, "export https_proxy=http://"+addr+"\n") || strings.Contains(s.out, "SSL_CERT_FILE") {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(s.errors, "the heed at "+addr+" has another state directory than "+state) || !strings.Contains(s.errors, addr+"/bundle.pem") {
		t.Errorf("stderr is %q", s.errors)
	}
}

func TestEnvNamesNoPortThatIsNotKnown(t *testing.T) {
	t.Setenv("HEED_STATE", filepath.Join(t.TempDir(), "state"))
	file := testkit.Write(t, filepath.Join(t.TempDir(), "p.toml"), `listen = "127.0.0.1:0"`)
	heed(t, "", "env", "--config", file).is(t, console.ExitUsage, "",
		"heed: heed is not running, and would listen on any free port\nStart it with `heed serve` first\n")
}
