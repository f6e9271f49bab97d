// Package testkit is what the tests of every folder use: a real nginx as
// the site, certificates for it, the real heed binary as a child process, the
// programs of real clients, and raw sockets.
//
// Everything listens on 127.0.0.1 at a port the system picked. Sites carry
// .test names, since Go and Java go round any proxy for loopback names; the
// names reach the right port through `[upstream] resolve` (Origin.Resolve).
//
// A helper never skips: what is missing on the machine fails the test with the
// command that installs it, `sh internal/tools/testkit/all.sh`. Helpers end the test
// on their own errors, so their callers read as a story.
package testkit

import (
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Patience is how long any helper waits for something that should take
// milliseconds, on a busy machine with the race detector on.
const Patience = time.Minute

// Until waits until done, which it asks every few milliseconds. A test that it
// waits for in vain fails with what.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(Patience)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Advance moves the clock of a testing/synctest bubble forward by d, and returns when
// everything that is due by then has happened. It panics outside of a bubble: there a
// test waits for the thing itself, with Until.
func Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Delay takes d. It plays the time that another program takes: a slow site, a distant
// store, a client that pauses between its requests or keeps a Retry-After. It is not for
// waiting until something has happened: Until is.
func Delay(d time.Duration) { time.Sleep(d) }

// Update is the flag -update of every test program that uses this package: tests
// that compare an output with a file rewrite the file.
//
//	go test ./internal/command -run 'TestScripts|BrokenSettings' -update
var Update = flag.Bool("update", false, "rewrite the expected outputs of tests that keep them in files")

// Full reports whether long tests run in full: the environment variable
// HEED_TEST_FULL is set. They run at a tenth of it or less otherwise. go test remembers a
// result of either form as that of both: -count=1 has it run again.
var Full = os.Getenv("HEED_TEST_FULL") != ""

// Main runs the tests of a package whose tests wait more than they compute, n of
// those that are parallel at a time. It is called by TestMain and does not return.
func Main(m *testing.M, n int) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
	// Under nohup and in the background of a shell they are ignored: what tests start is
	// to have the default again.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	os.Exit(m.Run())
}

// cure is what to do on a machine that lacks a program.
const cure = "run `sh internal/tools/testkit/all.sh` once: it installs what the tests need"

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
