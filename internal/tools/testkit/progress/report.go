package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output and build-fail
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// slowest is how many tests are named at the end.
const slowest = 10

// report prints the events of one go test.
type report struct {
	out     io.Writer
	flags   []string
	total   int // packages
	done    int
	passed  int // tests, without subtests
	failed  int // the same, and packages that failed without a test
	output  map[place]*strings.Builder
	inside  map[string]bool // packages of which a test failed
	elapsed []finished
}

// place is a test, or a package where test is empty.
type place struct{ pkg, test string }

type finished struct {
	place
	seconds float64
}

func newReport(out io.Writer, flags []string, total int) *report {
	return &report{out: out, flags: flags, total: total, output: map[place]*strings.Builder{}, inside: map[string]bool{}}
}

// read takes events until their end. What is no event is printed.
func (r *report) read(lines *bufio.Reader) {
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(r.out, line)
			} else {
				r.take(e)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(r.out, "the events of go test cannot be read:", err)
			}
			return
		}
	}
}

func (r *report) take(e event) {
	at := place{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if r.output[at] == nil {
			r.output[at] = &strings.Builder{}
		}
		r.output[at].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.test(at, e)
		} else {
			r.pkg(at, e)
		}
		delete(r.output, at)
	}
}

// test takes the end of a test.
func (r *report) test(at place, e event) {
	top := !strings.Contains(at.test, "/")
	if top && e.Action != "skip" {
		r.elapsed = append(r.elapsed, finished{at, e.Elapsed})
	}
	if e.Action != "fail" {
		if top && e.Action == "pass" {
			r.passed++
		}
		return
	}
	r.inside[at.pkg] = true
	if top {
		r.failed++
	}
	r.show(at)
	if top {
		fmt.Fprintf(r.out, "\tto repeat it alone: %s\n", r.repeat(at))
	}
}

// show prints what a test or a package has printed.
func (r *report) show(at place) {
	if text := r.output[at]; text != nil {
		fmt.Fprint(r.out, text.String())
	}
}

// repeat returns the command that runs one test again.
func (r *report) repeat(at place) string {
	words := []string{"go", "test"}
	for _, flag := range r.flags {
		if flag == "-race" || strings.HasPrefix(flag, "-gcflags=") {
			words = append(words, flag)
		}
	}
	return strings.Join(append(words, "-count=1", "-v", "-run", "'^"+at.test+"$'", dir(at.pkg)), " ")
}

// dir returns the folder of a package, relative to the top of the checkout.
func dir(pkg string) string {
	_, folder, _ := strings.Cut(pkg, "/")
	return "./" + folder
}

// pkg takes the end of a package.
func (r *report) pkg(at place, e event) {
	if e.Action == "skip" { // no tests
		return
	}
	r.done++
	word := "ok  "
	if e.Action == "fail" {
		word = "FAIL"
		if !r.inside[at.pkg] { // it did not compile, panicked, or ended outside of its tests
			r.failed++
			r.unended(at.pkg)
			r.show(at)
			fmt.Fprintf(r.out, "\tto repeat it alone: go test -count=1 %s\n", dir(at.pkg))
		}
	}
	fmt.Fprintf(r.out, "%s\t%s\t%s\t[%d of %d]\n", word, at.pkg, seconds(e.Elapsed), r.done, r.total)
}

// unended prints what the tests of a package had printed that have no end.
func (r *report) unended(pkg string) {
	var tests []place
	for at := range r.output {
		if at.pkg == pkg && at.test != "" {
			tests = append(tests, at)
		}
	}
	slices.SortFunc(tests, func(a, b place) int { return strings.Compare(a.test, b.test) })
	for _, at := range tests {
		r.show(at)
		delete(r.output, at)
	}
}

// end prints the slowest tests, and how many there were.
func (r *report) end() {
	slices.SortStableFunc(r.elapsed, func(a, b finished) int {
		switch {
		case a.seconds > b.seconds:
			return -1
		case a.seconds < b.seconds:
			return 1
		}
		return 0
	})
	fmt.Fprintln(r.out, "\nthe slowest tests, beside others:")
	for _, f := range r.elapsed[:min(slowest, len(r.elapsed))] {
		fmt.Fprintf(r.out, "%8s  %s %s\n", seconds(f.seconds), dir(f.pkg), f.test)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed\n", r.passed, r.failed)
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}
