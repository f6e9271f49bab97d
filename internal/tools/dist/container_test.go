//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A real Debian without systemd installs, runs and purges the package: see
// testdata/machine/container.sh. It takes some minutes and runs as root, with
// HEED_TEST_FULL=1.
func TestPackage_InAContainerWithoutSystemd(t *testing.T) {
	if !testkit.Full {
		t.Skip("internal/tools/dist: the package in a container without systemd")
	}
	must.Need(t, os.Geteuid() == 0, "a container can be entered by root only; run this as root")
	debootstrap := testkit.Program(t, "debootstrap")
	dir := t.TempDir()
	deb, root := debFor(t, filepath.Join(dir, "deb"), "v0.0.1"), filepath.Join(dir, "root")
	if out, err := exec.Command(debootstrap, "--variant=minbase", "--include=systemd-standalone-sysusers,init-system-helpers", "bookworm", root).CombinedOutput(); err != nil {
		t.Fatalf("debootstrap: %v\n%s", err, out[max(0, len(out)-2000):])
	}
	testkit.Write(t, filepath.Join(root, "root/heed.deb"), testkit.Read(t, deb))
	testkit.Write(t, filepath.Join(root, "root/story.sh"), testkit.Read(t, filepath.Join("testdata", "machine", "container.sh")))
	cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "chroot", root, "/bin/sh", "/root/story.sh")
	testkit.NotOrphaned(cmd)
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil && strings.HasSuffix(string(out), "\nPASSED\n"), "%v\n%s", err, out)
}
