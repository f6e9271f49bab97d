// Package console prints for people and for programs: quoting of untrusted text,
// JSON lines, colours, progress bars and exit statuses. Every verb gets its
// surroundings as an App.
package console

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Exit statuses beside 0.
const (
	ExitNo    = 1 // the answer is no: a URL is refused, heed is unhealthy
	ExitUsage = 2 // the command line, the settings or the environment are wrong
)

// App is the environment of the process, which each verb's Run method receives.
type App struct {
	Stdin    io.Reader
	Stdout   io.Writer // results only
	Stderr   io.Writer // progress, remarks, errors
	Environ  []string  // as os.Environ
	Defaults []byte    // proxy.toml as built in
	Now      func() time.Time
}

// Input returns the content of a file, or of standard input for "-": at most most octets, and one
// more when it is longer.
func (a *App) Input(name string, most int64) ([]byte, error) {
	in := a.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, most+1))
}

// Exit is an error that sets only the exit status: the message has been printed.
type Exit int

// Error returns the text "exit status N".
func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Fail prints err, unless it is an Exit, and returns the exit status for it; 0 for
// nil.
func (a *App) Fail(err error) int {
	var exit Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	}
	a.Complain(err)
	return ExitUsage
}

// SignalStatus returns the exit status of a process that a signal ended, as shells
// report it: 128 plus the number of the signal.
func SignalStatus(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return ExitNo
}

// Bar shows a progress bar on a terminal when work takes longer than a second. progress
// sets how much of all is done, and is cheap to call; end removes the bar. Without a
// terminal nothing is shown.
func (a *App) Bar(what string) (progress func(done, all int64), end func()) {
	var so, of atomic.Int64
	begun := time.Now()
	_, end = a.Live(func() string { return what + " " + barWords(so.Load(), of.Load(), time.Since(begun)) })
	return func(done, all int64) { so.Store(done); of.Store(all) }, end
}

// When progress is shown, and how often it changes.
const (
	progressAfter = time.Second // shorter work shows no progress
	progressEvery = 200 * time.Millisecond
)

// clearLine makes a terminal clear the current line.
const clearLine = "\r\x1b[K"

// Live shows text on stderr again and again when work takes longer than a second; without a
// terminal, nothing is shown. The work may print results, maybe on the same terminal: beside
// calls print, with the text removed. end removes it.
func (a *App) Live(text func() string) (beside func(print func()), end func()) {
	if !IsTerminal(a.Stderr) {
		return func(print func()) { print() }, func() {}
	}
	var mu sync.Mutex
	shown := false
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for wait := progressAfter; ; wait = progressEvery {
			select {
			case <-quit:
				return
			case <-time.After(wait):
				words := text()
				mu.Lock()
				fmt.Fprint(a.Stderr, clearLine+"heed: "+words)
				shown = true
				mu.Unlock()
			}
		}
	}()
	beside = func(print func()) {
		mu.Lock()
		defer mu.Unlock()
		if shown {
			fmt.Fprint(a.Stderr, clearLine)
		}
		shown = false
		print()
	}
	return beside, func() { close(quit); <-gone; beside(func() {}) }
}

const barWidth = 30

// barWords returns the text of a progress bar.
func barWords(done, all int64, taken time.Duration) string {
	if all <= 0 || done <= 0 {
		return fmt.Sprintf("for %s", taken.Round(time.Second))
	}
	part := min(1, float64(done)/float64(all))
	filled := int(part * barWidth)
	left := time.Duration(float64(taken) * (1 - part) / part)
	return fmt.Sprintf("[%s%s] %3.0f %%, %d of %d, %s left",
		strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), 100*part, done, all, left.Round(time.Second))
}

// IsTerminal reports whether a person is likely to read what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device, too, under whatever name
	return err != nil || !os.SameFile(info, null)
}

// Colours of a terminal (ECMA-48).
const (
	Bold   = "\x1b[1m"
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
)

// Painter returns text in a colour, or unchanged where colours are off.
type Painter func(colour, text string) string

// Colours returns a Painter that uses colours if w is a terminal and NO_COLOR is not
// set (no-color.org).
func Colours(environ []string, w io.Writer) Painter {
	if no, _ := Lookup(environ, "NO_COLOR"); no != "" || !IsTerminal(w) {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string { return colour + text + "\x1b[0m" }
}

// Remark prints each text that is not empty to stderr.
func (a *App) Remark(texts ...string) {
	for _, text := range texts {
		if text != "" {
			fmt.Fprintln(a.Stderr, "heed:", text)
		}
	}
}

// Progress prints text on a terminal, as the reason for a wait.
func (a *App) Progress(text string) {
	if IsTerminal(a.Stderr) {
		fmt.Fprintln(a.Stderr, "heed:", text)
	}
}

// FetchWidth is the number of URLs that are judged at the same time when each may
// need a fetch.
const FetchWidth = 64

// InOrder does the work of each input, up to width at the same time, and
// hands the results to emit in the order of the inputs. It stops at the first
// error of emit. waiting reports that further results will follow.
func InOrder[In, Out any](width int, inputs iter.Seq[In], work func(In) Out, emit func(out Out, waiting bool) error) error {
	queue := make(chan chan Out, width) // one place for each result under way
	done := make(chan struct{})
	defer close(done)
	go feed(queue, done, inputs, work)
	for result := range queue {
		if err := emit(<-result, len(queue) > 0); err != nil {
			return err
		}
	}
	return nil
}

// feed starts the work of each input when there is room in the queue.
func feed[In, Out any](queue chan<- chan Out, done <-chan struct{}, inputs iter.Seq[In], work func(In) Out) {
	defer close(queue)
	for in := range inputs {
		result := make(chan Out, 1)
		select {
		case queue <- result:
			go func() { result <- work(in) }()
		case <-done:
			return
		}
	}
}
