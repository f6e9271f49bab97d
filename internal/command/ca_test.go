package command

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestHeed_CAIsMadeShownAndRenewed(t *testing.T) {
	system := systemRoots(t)
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("HEED_STATE", state)
	heed(t, "", "ca").is(t, 0, filepath.Join(state, "ca.pem")+"\n", "")
	heed(t, "", "ca", "path").is(t, 0, filepath.Join(state, "ca.pem")+"\n", "")
	cert := read(t, filepath.Join(state, "ca.pem"))
	heed(t, "", "ca", "print").is(t, 0, cert, "")
	heed(t, "", "ca", "bundle").is(t, 0, string(system.CertPEM())+cert, "")

	s := heed(t, "", "ca", "renew")
	next := read(t, filepath.Join(state, "ca-next.pem"))
	if s.status != 0 || !strings.HasPrefix(s.out, "new CA: "+filepath.Join(state, "ca-next.pem")) || !strings.Contains(s.out, "heed ca renew --now") {
		t.Errorf("%+v", s)
	}
	heed(t, "", "ca", "print").is(t, 0, cert+next, "")
	if s := heed(t, "", "ca", "renew", "--now"); s.status != 0 || !strings.Contains(s.out, "signs in every heed started from now on") {
		t.Errorf("%+v", s)
	}
	heed(t, "", "ca", "print").is(t, 0, next+cert, "")
}

func TestHeed_AnExistingCAIsTakenAndNotRenewed(t *testing.T) {
	dir := t.TempDir()
	mine := testCA(t, filepath.Join(dir, "mine"))
	t.Setenv("HEED_STATE", filepath.Join(dir, "state"))
	file := write(t, filepath.Join(dir, "proxy.toml"), "[https]\nca_cert = \"mine/ca.pem\"\nca_key = \"mine/ca-key.pem\"\n")
	heed(t, "", "ca", "path", "-c", file).is(t, 0, mine.CertPath()+"\n", "")
	s := heed(t, "", "ca", "renew", "-c", file)
	if s.status != exitUsage || !strings.Contains(s.errors, "not heed's to renew") {
		t.Errorf("%+v", s)
	}
}

func TestHeed_InstallNamesEachStore(t *testing.T) {
	t.Setenv("HEED_STATE", filepath.Join(t.TempDir(), "state"))
	t.Setenv("HOME", t.TempDir())
	for _, verb := range []string{"install", "uninstall"} {
		s := heed(t, "", "ca", verb, "--dry-run")
		if s.status != 0 && s.status != exitNo || !strings.Contains(s.out, "store") || s.errors != "" {
			t.Errorf("%s: %+v", verb, s)
		}
		for line := range strings.Lines(s.out) {
			if strings.HasPrefix(line, "done") {
				t.Errorf("a dry run has changed something: %s", line)
			}
		}
	}
}
