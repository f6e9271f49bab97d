//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// storyUnit runs the story on a machine, and then ends the machine with its status.
const storyUnit = `[Unit]
After=multi-user.target
SuccessAction=exit
FailureAction=exit

[Service]
Type=oneshot
Environment=HOME=/root
ExecStart=/bin/sh /root/story.sh
StandardOutput=file:/root/story.log
StandardError=inherit

[Install]
WantedBy=default.target
`

// A real Debian with a real systemd installs, runs, upgrades and purges the package: see
// testdata/machine/story.sh. The second build of each package has the same bytes. It takes
// some minutes and runs as root, with HEED_TEST_FULL=1; by default only the unit, the
// scripts and the documents are checked, each by itself.
func TestPackage_OnAMachineWithSystemd(t *testing.T) {
	if !testkit.Full {
		t.Skip("internal/tools/dist: the package on a machine with systemd")
	}
	must.Need(t, os.Geteuid() == 0, "a machine can be booted by root only; run this as root")
	nspawn, debootstrap := testkit.Program(t, "systemd-nspawn"), testkit.Program(t, "debootstrap")
	dir := t.TempDir()
	first := debFor(t, filepath.Join(dir, "first"), "v0.0.1")
	second := debFor(t, filepath.Join(dir, "second"), "v0.0.2")
	if again := debFor(t, filepath.Join(dir, "again"), "v0.0.2"); !bytes.Equal([]byte(testkit.Read(t, second)), []byte(testkit.Read(t, again))) {
		t.Error("the package differs when it is built again")
	}

	machine := filepath.Join(dir, "machine")
	if out, err := exec.Command(debootstrap, "--variant=minbase", "--include=systemd,systemd-sysv,dbus,curl,iproute2,ca-certificates,man-db", "bookworm", machine).CombinedOutput(); err != nil {
		t.Fatalf("debootstrap: %v\n%s", err, out[max(0, len(out)-2000):])
	}
	root := filepath.Join(machine, "root")
	for name, text := range map[string]string{
		"first.deb": testkit.Read(t, first), "second.deb": testkit.Read(t, second), "story.sh": testkit.Read(t, filepath.Join("testdata", "machine", "story.sh")),
		"../etc/systemd/system/story.service": storyUnit,
	} {
		testkit.Write(t, filepath.Join(root, name), text)
	}
	if out, err := exec.Command("systemctl", "--root", machine, "enable", "story.service").CombinedOutput(); err != nil {
		t.Fatalf("systemctl enable: %v\n%s", err, out)
	}
	cmd := exec.Command(nspawn, "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe", "-D", machine, "--boot")
	cmd.Stdin = nil
	testkit.NotOrphaned(cmd)
	ended := time.AfterFunc(10*time.Minute, func() { cmd.Process.Kill() })
	console, err := cmd.CombinedOutput()
	ended.Stop()
	story := testkit.Read(t, filepath.Join(root, "story.log"))
	if err != nil || !strings.HasSuffix(story, "\nPASSED\n") {
		t.Fatalf("%v\n%s\n%s", err, story, console[max(0, len(console)-1000):])
	}
	t.Log(story)
}

// debFor makes the package of this checkout with a version.
func debFor(t *testing.T, out, version string) string {
	t.Helper()
	j := must.Get(newJob(out, version, "Tests <tests@heed.test>", true))(t)
	j.targets = []target{{"linux", runtime.GOARCH}}
	must.OK(t, j.makeDebs())
	return filepath.Join(out, "heed_"+j.release.debian()+"_"+runtime.GOARCH+".deb")
}
