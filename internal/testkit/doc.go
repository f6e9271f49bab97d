// Package testkit is what the tests of every folder stand on: a real nginx as
// the site, certificates for it, the real heed binary as a child process, the
// programs of real clients, and raw sockets.
//
// Everything listens on 127.0.0.1 at a port the system picked. Sites carry
// .test names, since Go and Java go round any proxy for loopback names; the
// names reach the right port through `[upstream] resolve` (Origin.Resolve).
//
// A helper never skips: what is missing on the machine fails the test with the
// command that installs it, `sh internal/testkit/all.sh`. Helpers end the test
// on their own errors, so their callers read as a story.
package testkit

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long any helper waits for something that should take
// milliseconds, on a busy machine with the race detector on.
const Patience = 20 * time.Second

// cure tells the person whose machine lacks a program what to do.
const cure = "run `sh internal/testkit/all.sh` once: it installs what the tests need"

// Root is the checkout's top folder, where go.mod lies.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := root()
	if err != nil {
		t.Fatalf("finding the module's root: %v", err)
	}
	return dir
}

var root = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	return filepath.Dir(strings.TrimSpace(string(out))), err
})

// Program is the path of a program the tests need; a missing one fails the test.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		// Debian keeps servers out of the PATH of ordinary users.
		if path, err = exec.LookPath("/usr/sbin/" + name); err != nil {
			t.Fatalf("%s is not on this machine; %s", name, cure)
		}
	}
	return path
}
