package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A record has one writer, by whatever name it is called, and also while that one
// is stopped: the second heed says so and does not start.
func TestHeed_TwoHeedsDoNotWriteToOneRecord(t *testing.T) {
	t.Parallel()
	s, dir := newSite(t), t.TempDir()
	real := filepath.Join(dir, "real")
	must.OK(t, os.Mkdir(real, 0o700))
	path := filepath.Join(real, "audit.db")
	h := withRecord(t, s, path, "")
	c, n := client(t, h), &notes{}
	n.ask(c, "http://proof.test/page/before")
	for link, to := range map[string]string{"link.db": path, "linked": real} {
		must.OK(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	must.OK(t, os.Link(path, filepath.Join(dir, "hard.db")))
	h.Signal(syscall.SIGSTOP)
	for _, name := range []string{path, filepath.Join(dir, "link.db"), filepath.Join(dir, "linked", "audit.db"), filepath.Join(dir, "hard.db")} {
		second := testkit.Launch(t, testkit.Options{Config: s.config(fmt.Sprintf("[audit]\nfile = %q\n", name))})
		if status := second.Exit(); status == 0 || !strings.Contains(second.Stderr(), "another heed writes to it") {
			t.Errorf("%s: status %d, it says:\n%s", name, status, second.Stderr())
		}
	}
	h.Signal(syscall.SIGCONT)
	n.ask(c, "http://proof.test/page/after")
	agreeAtTheEnd(t, h, s, path, n)
}
