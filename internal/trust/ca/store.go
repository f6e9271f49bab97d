package ca

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"heed/internal/base/safetext"
)

// Machine is the system and user whose stores are meant.
type Machine struct {
	goos   string
	home   string // of the user, for browsers' databases
	euid   int
	getenv func(string) string
	look   func(program string) (string, error)
	run    runner
}

// ThisMachine is the system this process runs on and the user it acts as.
func ThisMachine() Machine {
	home, _ := os.UserHomeDir() // without a home there are no browsers' databases
	return Machine{
		goos: runtime.GOOS, home: home, euid: os.Geteuid(),
		getenv: os.Getenv, look: exec.LookPath, run: runCommand,
	}
}

// Stores returns the stores found: the system's, the NSS databases of the
// user's browsers, and the one of the Java in JAVA_HOME or else in PATH. A
// store that was found and cannot be changed is among them and says why when
// it is used.
func (m Machine) Stores() []Store {
	stores := m.systemStores()
	if m.goos != "windows" { // where certutil is another program, and Firefox reads the system's store
		stores = append(stores, m.nssStores()...)
	}
	return append(stores, m.javaStores()...)
}

// maxCommand bounds one command of a store: rebuilding a system's bundle takes
// seconds.
const maxCommand = 2 * time.Minute

// Store is a place where programs look for the roots they trust. Stores come
// from Machine.Stores.
type Store struct {
	// Name says what it is and who reads it.
	Name string

	tool    string // the program that changes it
	getTool string // how to get that program; empty when the system has it
	root    bool   // this user may not change it
	absent  string // why there is nothing to change yet; empty: there is
	cure    string // of absent
	run     runner

	has         func(c *x509.Certificate) (bool, error)
	add, remove func(c *x509.Certificate, file string) [][]string // the commands, file holding c
}

// runner runs a program and returns what it printed.
type runner func(name string, args ...string) ([]byte, error)

// State is what became of a store.
type State uint8

// The states of a store. The zero value is Failed.
const (
	Failed    State = iota // Why it failed, and the Advice
	Skipped                // Why it was left alone, and the Advice
	Unchanged              // it was as wanted
	Planned                // a dry run would change it
	Done                   // it was changed
)

// String returns failed, skipped, unchanged, planned or done.
func (s State) String() string {
	return [...]string{"failed", "skipped", "unchanged", "planned", "done"}[s]
}

// Result says what became of one root in one store.
type Result struct {
	Store  string
	Cert   *x509.Certificate
	State  State
	Why    string // of Failed and Skipped, one line; the commands of Planned
	Advice string // what to do about Failed and Skipped: commands for a shell, or a sentence
}

// Install puts the roots into the stores, those left out that Renew replaced,
// and says for each store and root what became of it. With dryRun it changes
// nothing and says what it would do. One store's failure does not keep it from
// the next.
func Install(stores []Store, roots []Root, dryRun bool) []Result {
	wanted := slices.DeleteFunc(slices.Clone(roots), func(r Root) bool { return r.Replaced })
	return change(stores, wanted, true, dryRun)
}

// Uninstall takes the roots out of the stores, in the manner of Install; also
// those that Renew replaced.
func Uninstall(stores []Store, roots []Root, dryRun bool) []Result {
	return change(stores, roots, false, dryRun)
}

func change(stores []Store, roots []Root, install, dryRun bool) []Result {
	var results []Result
	for i := range stores {
		for _, r := range roots {
			results = append(results, stores[i].change(r, install, dryRun))
		}
	}
	return results
}

func (s *Store) change(r Root, install, dryRun bool) Result {
	result := Result{Store: s.Name, Cert: r.Cert}
	if s.absent != "" {
		if result.State, result.Why = Unchanged, s.absent; install {
			result.State, result.Advice = Skipped, s.cure
		}
		return result
	}
	if _, err := exec.LookPath(s.tool); err != nil && s.getTool != "" {
		result.State, result.Why, result.Advice = Skipped, fmt.Sprintf("the program %s is missing", s.tool), s.getTool
		return result
	}
	there, err := s.has(r.Cert)
	if err != nil {
		result.Why, result.Advice = oneLine(err), "make the store readable, or leave it as it is"
		return result
	}
	if there == install {
		result.State = Unchanged
		return result
	}
	file, cleanup, err := fileOf(r)
	if err != nil {
		result.Why, result.Advice = oneLine(err), "free space in the directory for temporary files"
		return result
	}
	defer cleanup()
	how := s.remove
	if install {
		how = s.add
	}
	commands := how(r.Cert, file)
	switch {
	case s.root:
		result.State, result.Why, result.Advice = Skipped, "this user may not change it", asRoot(commands, r, install)
	case dryRun:
		result.State, result.Why = Planned, shell("", commands)
	default:
		s.execute(&result, commands, install)
	}
	return result
}

// execute runs the commands and looks whether they had the effect.
func (s *Store) execute(result *Result, commands [][]string, install bool) {
	result.Advice = "run it by hand and see: " + shell("", commands)
	for _, c := range commands {
		if out, err := s.run(c[0], c[1:]...); err != nil {
			result.Why = oneLine(fmt.Errorf("%s: %w: %s", c[0], err, lastLine(out)))
			return
		}
	}
	if there, err := s.has(result.Cert); err != nil || there != install {
		result.Why = "the commands succeeded without effect"
		return
	}
	result.State, result.Advice = Done, ""
}

// fileOf returns a file that holds exactly the root's certificate.
func fileOf(r Root) (file string, cleanup func(), err error) {
	if r.File != "" {
		return r.File, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "heed-ca-")
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(dir, "ca.pem")
	cleanup = func() { os.RemoveAll(dir) }
	if err := os.WriteFile(file, pemOf(certificateBlock, r.Cert.Raw), 0o644); err != nil {
		cleanup()
		return "", nil, err
	}
	return file, cleanup, nil
}

// asRoot says how a person who may become root does what this user may not.
func asRoot(commands [][]string, r Root, install bool) string {
	switch {
	case r.File != "":
		return shell("sudo ", commands)
	case install:
		return "run `heed ca install` as root"
	}
	return "run `heed ca uninstall` as root"
}

func shell(prefix string, commands [][]string) string {
	var lines []string
	for _, c := range commands {
		var words []string
		for _, w := range c {
			words = append(words, safetext.ShellQuote(w))
		}
		lines = append(lines, prefix+strings.Join(words, " "))
	}
	return strings.Join(lines, " && ")
}

// runCommand runs a program without input, so that one which asks for a
// password fails instead of waiting.
func runCommand(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxCommand)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if ctx.Err() != nil {
		err = errors.New("it did not end within two minutes")
	}
	return out, err
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
