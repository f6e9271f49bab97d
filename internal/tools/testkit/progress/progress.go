// Command progress runs go test and reports what it does: each package when its tests
// have ended, with the number of packages that are done and to do, the output of tests
// that failed with the command that repeats them, and the ten slowest tests.
//
//	go run ./internal/tools/testkit/progress [FLAG OF GO TEST]... -- PACKAGE...
//
// The exit status is 1 when a test failed, 2 when go test could not be run.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	flags, packages := split(os.Args[1:])
	if len(packages) == 0 {
		fmt.Fprintln(os.Stderr, "usage: progress [FLAG OF GO TEST]... -- PACKAGE...")
		os.Exit(2)
	}
	failed, err := run(flags, packages)
	if err != nil {
		fmt.Fprintln(os.Stderr, "progress:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

// split returns the words before and after "--".
func split(words []string) (flags, packages []string) {
	i := slices.Index(words, "--")
	if i < 0 {
		return words, nil
	}
	return words[:i], words[i+1:]
}

// run runs go test with the flags for the packages, and reports whether a test failed.
func run(flags, packages []string) (failed bool, err error) {
	total, err := tested(packages)
	if err != nil {
		return false, err
	}
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json"}, flags, packages)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	r := newReport(os.Stdout, flags, total)
	r.read(bufio.NewReader(events))
	_, _ = io.Copy(io.Discard, events) // read ends at its first fault
	ended := cmd.Wait()
	r.end()
	if r.failed == 0 && ended != nil {
		return true, fmt.Errorf("go test: %w", ended)
	}
	return ended != nil, nil
}

// tested returns the number of packages that have tests.
func tested(packages []string) (int, error) {
	list := exec.Command("go", slices.Concat([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, packages)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", err)
	}
	return len(strings.Fields(string(out))), nil
}
