package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Clients are programs that fetch a URL in the plainest way of their language:
// arguments URL [USER-AGENT], the page on stdout, what the library says of a
// refusal on stderr with status 1. None of them knows of a proxy.
type Clients struct {
	Go, Python, Perl, Java, Node []string // commands, to be followed by arguments
}

// NewClients builds what needs building, once for all tests of one test
// program. A language missing on the machine fails the test.
func NewClients(t testing.TB) Clients {
	t.Helper()
	dir, err := builtClients()
	if err != nil {
		t.Fatalf("building the client programs: %v; %s", err, cure)
	}
	source := filepath.Join(Root(t), clientSources)
	return Clients{
		Go:     []string{filepath.Join(dir, "fetch")},
		Python: []string{Program(t, "python3"), filepath.Join(source, "fetch.py")},
		Perl:   []string{Program(t, "perl"), filepath.Join(source, "fetch.pl")},
		Java:   []string{Program(t, "java"), "-cp", dir, "Fetch"},
		Node:   []string{Node(t), filepath.Join(source, "fetch.mjs")},
	}
}

const clientSources = "internal/testkit/testdata/clients"

var builtClients = sync.OnceValues(func() (string, error) {
	top, err := root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(top, clientSources)
	dir := filepath.Join(top, buildFolder)
	if err := goBuild(top, filepath.Join(dir, "fetch"), filepath.Join(source, "fetch.go")); err != nil {
		return "", err
	}
	return dir, javaBuild(filepath.Join(source, "Fetch.java"), dir)
})

// javaBuild compiles one class, beside its place as goBuild does.
func javaBuild(source, dir string) error {
	beside, err := os.MkdirTemp(dir, "javac-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(beside)
	if out, err := exec.Command("javac", "-d", beside, source).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return os.Rename(filepath.Join(beside, "Fetch.class"), filepath.Join(dir, "Fetch.class"))
}

// Node is the path of a Node that can be told to use proxy variables
// (NODE_USE_ENV_PROXY), installed from npm by the test command.
func Node(t testing.TB) string {
	t.Helper()
	path := filepath.Join(Root(t), ".build/node/bin/node")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there is no Node in .build; %s", cure)
	}
	return path
}
