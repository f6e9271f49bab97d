package command

import (
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/fixture"
)

func TestCAIsMadeShownAndRenewed(t *testing.T) {
	system := fixture.SystemRoots(t)
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("HEED_STATE", state)
	heed(t, "", "ca").is(t, 0, filepath.Join(state, "ca.pem")+"\n", "")
	heed(t, "", "ca", "path").is(t, 0, filepath.Join(state, "ca.pem")+"\n", "")
	cert := testkit.Read(t, filepath.Join(state, "ca.pem"))
	heed(t, "", "ca", "print").is(t, 0, cert, "")
	heed(t, "", "ca", "bundle").is(t, 0, string(system.CertPEM())+cert, "")

	s := heed(t, "", "ca", "renew")
	next := testkit.Read(t, filepath.Join(state, "ca-next.pem"))
	if s.status != 0 || !strings.HasPrefix(s.out, "new CA: "+filepath.Join(state, "ca-next.pem")) || !strings.Contains(s.out, "heed ca renew --now") {
		t.Errorf("%+v", s)
	}
	heed(t, "", "ca", "print").is(t, 0, cert+next, "")
	if s := heed(t, "", "ca", "renew", "--now"); s.status != 0 || !strings.Contains(s.out, "signs in every heed started from now on") {
		t.Errorf("%+v", s)
	}
	heed(t, "", "ca", "print").is(t, 0, next+cert, "")
}

func TestAnExistingCAIsTakenAndNotRenewed(t *testing.T) {
	dir := t.TempDir()
	mine := fixture.CA(t, filepath.Join(dir, "mine"))
	t.Setenv("HEED_STATE", filepath.Join(dir, "state"))
	file := testkit.Write(t, filepath.Join(dir, "proxy.toml"), "[https]\nca_cert = \"mine/ca.pem\"\nca_key = \"mine/ca-key.pem\"\n")
	heed(t, "", "ca", "path", "-c", file).is(t, 0, mine.CertPath()+"\n", "")
	s := heed(t, "", "ca", "renew", "-c", file)
	if s.status != console.ExitUsage || !strings.Contains(s.errors, "not heed's to renew") {
		t.Errorf("%+v", s)
	}
}

func TestInstallNamesEachStore(t *testing.T) {
	t.Setenv("HEED_STATE", filepath.Join(t.TempDir(), "state"))
	t.Setenv("HOME", t.TempDir())
	for _, verb := range []string{"install", "uninstall"} {
		s := heed(t, "", "ca", verb, "--dry-run")
		if s.status != 0 && s.status != console.ExitNo || !strings.Contains(s.out, "store") || s.errors != "" {
			t.Errorf("%s: %+v", verb, s)
		}
		for line := range strings.Lines(s.out) {
			if strings.HasPrefix(line, "done") {
				t.Errorf("a dry run has changed something: %s", line)
			}
		}
	}
}
