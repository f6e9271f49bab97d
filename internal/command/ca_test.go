package command

import (
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/fixture"
	"heed/internal/tools/testkit/must"
)

func TestAnExistingCAIsTakenAndNotRenewed(t *testing.T) {
	dir := t.TempDir()
	mine := fixture.CA(t, filepath.Join(dir, "mine"))
	t.Setenv("HEED_STATE", filepath.Join(dir, "state"))
	file := testkit.Write(t, filepath.Join(dir, "proxy.toml"), "[https]\nca_cert = \"mine/ca.pem\"\nca_key = \"mine/ca-key.pem\"\n")
	heed(t, "", "ca", "path", "-c", file).is(t, 0, mine.CertPath()+"\n", "")
	s := heed(t, "", "ca", "renew", "-c", file)
	must.True(t, s.status == console.ExitUsage && strings.Contains(s.errors, "not heed's to renew"), "%+v", s)
}

func TestInstallNamesEachStore(t *testing.T) {
	t.Setenv("HEED_STATE", filepath.Join(t.TempDir(), "state"))
	t.Setenv("HOME", t.TempDir())
	for _, verb := range []string{"install", "uninstall"} {
		s := heed(t, "", "ca", verb, "--dry-run")
		must.True(t, (s.status == 0 || s.status == console.ExitNo) && strings.Contains(s.out, "store") && s.errors == "",
			"%s: %+v", verb, s)
		for line := range strings.Lines(s.out) {
			must.True(t, !strings.HasPrefix(line, "done"), "a dry run has changed something: %s", line)
		}
	}
}
