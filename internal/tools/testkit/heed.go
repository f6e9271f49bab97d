package testkit

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binary returns the path of the heed under test, built from the sources as they
// are now; HEED_TEST_BINARY names one that the test command has built already. In the
// long form it has the race detector when the tests have it. All test programs share
// one build.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("building heed: %v", err)
	}
	return path
}

var binary = sync.OnceValues(func() (string, error) {
	top, err := root()
	if err != nil {
		return "", err
	}
	dir, flags := filepath.Join(top, buildFolder), []string(nil)
	switch built := os.Getenv("HEED_TEST_BINARY"); {
	case built != "":
		return built, nil
	case Race && Full:
		// A folder of its own, since scripts find heed in the PATH by its name.
		dir, flags = filepath.Join(dir, "race"), []string{"-race", withoutSQLite}
	}
	path := filepath.Join(dir, "heed")
	return path, goBuild(top, path, ".", flags...)
})

// withoutSQLite leaves SQLite, C that was translated to Go, out of the race
// detector, which makes it four times slower. No package with generic functions
// may be left out: their instances would serve the whole program.
const withoutSQLite = "-gcflags=modernc.org/sqlite/lib=-race=false"

// buildFolder is where programs for tests are built, relative to the top folder.
// Git ignores it.
const buildFolder = ".build/testkit"

// goBuild builds a main package of the module whose top folder is given. The go
// command leaves a target that is up to date as it is.
func goBuild(top, target, pkg string, flags ...string) error {
	unlock, err := lockBuilds(filepath.Dir(target))
	if err != nil {
		return err
	}
	defer unlock()
	cmd := exec.Command("go", slices.Concat([]string{"build"}, flags, []string{"-o", target, pkg})...)
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// lockBuilds makes dir and waits until no other test program builds there.
func lockBuilds(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err == nil {
			return lock.Close, nil
		} else if err != syscall.EINTR {
			lock.Close()
			return nil, fmt.Errorf("locking %s: %w", lock.Name(), err)
		}
	}
}

// RaceOptions is for the environment of a heed built with the race detector:
// it ends at the first race, and does not wait a second at its end for one.
const RaceOptions = "GORACE=halt_on_error=1 atexit_sleep_ms=0"

// Options say how Start runs heed.
type Options struct {
	// Config is the text of proxy.toml; empty: any free port and nothing else.
	Config string
	// State is the state directory; empty: a new one.
	State string
	// Args come after `heed serve --config FILE`.
	Args []string
	// Env is added to a nearly empty environment.
	Env []string
	// EachLine is called with each log line in place of keeping it, for a test
	// that has millions of them: then Records, Await and Stderr know of none.
	// One call at a time; the line is not to be kept. Nil: all are kept.
	EachLine func(line []byte)
	// Change is called with the command before it starts; nil: nothing is changed.
	Change func(cmd *exec.Cmd, config string)
}

// Heed is a running `heed serve`.
type Heed struct {
	File  string // the settings it reads
	Addr  string // where it listens, "127.0.0.1:PORT"
	State string // its state directory

	t      testing.TB
	cmd    *exec.Cmd
	out    *output
	exited chan struct{}
}

// Start runs the real heed and waits until it listens. It is stopped when the
// test ends.
func Start(t testing.TB, options Options) *Heed {
	t.Helper()
	h := Launch(t, options)
	select {
	case h.Addr = <-h.out.addr:
	case <-h.exited:
		t.Fatalf("heed ended instead of listening:\n%s", h.Stderr())
	case <-time.After(3 * Patience): // on a busy machine a start takes longest
		t.Fatalf("heed did not say where it listens:\n%s", h.Stderr())
	}
	return h
}

// Launch runs the real heed without waiting for anything, for a heed that is
// not to come up.
func Launch(t testing.TB, options Options) *Heed {
	t.Helper()
	if options.State == "" {
		options.State = StateDir(t)
	}
	if options.Config == "" {
		options.Config = AnyPort
	}
	config := filepath.Join(t.TempDir(), "proxy.toml")
	if err := os.WriteFile(config, []byte(options.Config), 0o600); err != nil {
		t.Fatalf("writing %s: %v", config, err)
	}
	h := &Heed{State: options.State, File: config, t: t, out: newOutput(), exited: make(chan struct{})}
	h.out.each = options.EachLine
	h.cmd = exec.Command(Binary(t), append([]string{"serve", "--config", config}, options.Args...)...)
	h.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + options.State, "HEED_STATE=" + options.State,
		RaceOptions,
	}, options.Env...)
	h.cmd.Stderr = h.out
	NotOrphaned(h.cmd)
	if options.Change != nil {
		options.Change(h.cmd, config)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatalf("starting heed: %v", err)
	}
	go func() {
		defer close(h.exited)
		h.cmd.Wait()
	}()
	t.Cleanup(h.end)
	return h
}

// StateDir is a new directory that heed takes for its state, whatever the umask:
// one that others may write to it does not take.
func StateDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ForeignDir returns a directory that belongs to another user.
func ForeignDir(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return "/etc" // only root can give a directory away
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 65534, -1); err != nil {
		t.Fatal(err)
	}
	return dir
}

// end stops what is still running; a test of the stop calls Signal and Exit.
func (h *Heed) end() {
	h.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.exited:
	case <-time.After(Patience):
		h.cmd.Process.Kill()
		<-h.exited
		h.t.Errorf("heed did not stop within %s of SIGTERM", Patience)
	}
	if h.t.Failed() {
		h.t.Logf("heed said:\n%s", h.Stderr())
	}
	if strings.Contains(h.Stderr(), "DATA RACE") {
		h.t.Errorf("heed has a data race:\n%s", h.Stderr())
	}
}

// Pid is the process's number.
func (h *Heed) Pid() int { return h.cmd.Process.Pid }

// Signal sends a signal.
func (h *Heed) Signal(sig os.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(sig); err != nil {
		h.t.Fatalf("sending %v to heed: %v", sig, err)
	}
}

// Exit waits for the end of the process and returns its status, -1 when a
// signal ended it.
func (h *Heed) Exit() int {
	h.t.Helper()
	select {
	case <-h.exited:
	case <-time.After(Patience):
		h.t.Fatalf("heed was still running after %s:\n%s", Patience, h.Stderr())
	}
	return h.cmd.ProcessState.ExitCode()
}

// Stderr is all that heed has printed so far.
func (h *Heed) Stderr() string { return h.out.text() }

// Roots returns a pool with heed's CA, for clients that trust it.
func (h *Heed) Roots() *x509.CertPool {
	h.t.Helper()
	pem, err := os.ReadFile(filepath.Join(h.State, "ca.pem"))
	if err != nil {
		h.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return pool
}

// createdBy finds what began each goroutine, in what a Go program prints on SIGQUIT. The
// runtime's own come and go.
var createdBy = regexp.MustCompile(`(?m)^created by (heed|net|os|crypto|database)\b.*`)

// Goroutines ends heed and returns how many goroutines it had, with their stacks.
func (h *Heed) Goroutines() (count int, stacks string) {
	h.t.Helper()
	h.Signal(syscall.SIGQUIT)
	h.Exit()
	stacks = h.Stderr()
	return len(createdBy.FindAllString(stacks, -1)), stacks
}

// AnyPort is the smallest configuration a test runs with.
const AnyPort = "listen = \"127.0.0.1:0\"\n"

// Config is a proxy.toml that reaches the origin's sites and no others. top is
// text for its head, before the first table.
func (o *Origin) Config(top string) string {
	var text bytes.Buffer
	text.WriteString(AnyPort + top + "\n[upstream]\n")
	fmt.Fprintf(&text, "ca_file = %q\n[upstream.resolve]\n", o.CA.File)
	for name, addr := range o.ports {
		fmt.Fprintf(&text, "%q = %q\n", name, addr)
	}
	return text.String()
}

// listensAt finds the address in the first line that heed prints.
var listensAt = regexp.MustCompile(`(127\.\d+\.\d+\.\d+|\[::1\]):\d+`)
