package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// CacheWarmCmd is `heed cache warm`.
type CacheWarmCmd struct {
	cacheFlags
	Quiet bool   `short:"q" help:"Print nothing; the exit status tells."`
	File  string `arg:"" help:"A file with one host or URL per line; - for stdin."`
}

// Help says what the file may hold and how it ends.
func (CacheWarmCmd) Help() string {
	return `Has the robots.txt of each site at hand, fetching what is not there or not fresh.
A line is a host (https is meant), an origin or the URL of a page; empty lines
and lines that begin with # are left out. Prints a line per site, in the order
of the file. Exit status 0 when all could be had, 1 when a site could not be
asked, 2 when a line is wrong.

Example:

    cut -d, -f1 sites.csv | heed cache warm -`
}

// maxWarm is how long a list of sites may be, in bytes.
const maxWarm = 64 << 20

// Run fetches, and says what came of it.
func (c *CacheWarmCmd) Run(a *App) error {
	sites, err := c.sites(a)
	if err != nil {
		return err
	}
	k, leave, err := c.desk(a)
	if err != nil {
		return err
	}
	defer leave()
	w := &warming{app: a, all: len(sites)}
	// Lines on the same screen are progress enough.
	defer w.show(isTerminal(a.Stderr) && (c.Quiet || !isTerminal(a.Stdout)))()
	out := bufio.NewWriter(a.Stdout)
	err = inOrder(checkWidth, slices.Values(sites), func(site string) warmed {
		line, err := k.warm(context.Background(), site)
		return w.count(warmed{line, err})
	}, func(r warmed, waiting bool) error {
		if err := c.print(out, r); err != nil {
			return err
		}
		if waiting {
			return nil
		}
		return out.Flush()
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		return err
	}
	return w.exit()
}

// print writes what came of one site; errors are told at the end.
func (c *CacheWarmCmd) print(out io.Writer, r warmed) error {
	switch {
	case r.err != nil, c.Quiet:
		return nil
	case c.JSON:
		return printJSON(out, []*heldLine{r.line})
	}
	_, err := fmt.Fprintf(out, "%-11s  %s  %s\n", r.line.State, r.line.whose(), r.line.Why)
	return err
}

// sites reads the list.
func (c *CacheWarmCmd) sites(a *App) ([]string, error) {
	in := a.Stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, fmt.Errorf("the list of sites cannot be read: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxWarm+1))
	if err != nil {
		return nil, fmt.Errorf("the list of sites cannot be read: %w", err)
	}
	if len(text) > maxWarm {
		return nil, fmt.Errorf("the list of sites is longer than %d MiB\nSplit it", maxWarm>>20)
	}
	var sites []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			sites = append(sites, line)
		}
	}
	return sites, nil
}

// warmed is what came of one site.
type warmed struct {
	line *heldLine
	err  error
}

// warming is how far warm has come.
type warming struct {
	app *App
	all int

	mu    sync.Mutex
	so    int     // done with
	lost  int     // of those, not asked
	wrong []error // what was no site, as far as it is told
	bad   int     // how many
}

// maxWrong is how many wrong lines are told.
const maxWrong = 20

// count counts r in.
func (w *warming) count(r warmed) warmed {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.so++
	switch {
	case r.err != nil:
		if w.bad++; w.bad <= maxWrong {
			w.wrong = append(w.wrong, r.err)
		}
	case r.line.State == "stale", r.line.State == "unreachable":
		w.lost++
	}
	return r
}

const (
	progressAfter = time.Second // work that is done sooner needs no progress
	progressEvery = 200 * time.Millisecond
)

// show shows progress on a terminal until the function it returns is called.
func (w *warming) show(terminal bool) (end func()) {
	if !terminal {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		w.tick(quit)
	}()
	return func() {
		close(quit)
		<-gone
		fmt.Fprintf(w.app.Stderr, "heed: %s\n", w.words())
	}
}

func (w *warming) tick(quit <-chan struct{}) {
	for wait := progressAfter; ; wait = progressEvery {
		select {
		case <-quit:
			fmt.Fprint(w.app.Stderr, clearLine)
			return
		case <-time.After(wait):
			fmt.Fprint(w.app.Stderr, clearLine+"heed: "+w.words())
		}
	}
}

// clearLine has a terminal begin its line anew.
const clearLine = "\r\x1b[K"

func (w *warming) words() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d of %s, %d could not be asked", w.so, plural(uint64(w.all), "site"), w.lost)
}

// exit tells what was wrong, and returns the status that fits.
func (w *warming) exit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range w.wrong {
		fmt.Fprintln(w.app.Stderr, "heed:", err)
	}
	if more := w.bad - len(w.wrong); more > 0 {
		fmt.Fprintf(w.app.Stderr, "heed: %s more were wrong\n", plural(uint64(more), "line"))
	}
	switch {
	case w.bad > 0:
		return Exit(exitUsage)
	case w.lost > 0:
		return Exit(exitNo)
	}
	return nil
}
