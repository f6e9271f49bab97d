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
	type result struct {
		line *heldLine
		err  error
	}
	out := bufio.NewWriter(a.Stdout)
	w := &warming{app: a, all: len(sites)}
	work := func(site string) (r result) {
		r.line, r.err = k.warm(context.Background(), site)
		return r
	}
	err = inOrder(checkWidth, slices.Values(sites), work, func(r result, _ bool) error {
		if r.err != nil {
			w.wrong(r.err)
			return nil
		}
		w.done(r.line.State)
		switch {
		case c.Quiet:
			return nil
		case c.JSON:
			return printJSON(out, []*heldLine{r.line})
		}
		_, err := fmt.Fprintf(out, "%-11s  %s  %s\n", r.line.State, r.line.whose(), r.line.Why)
		return err
	})
	w.end()
	return errors.Join(err, out.Flush(), w.exit())
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

// warming is how far warm has come.
type warming struct {
	app        *App
	all, so    int
	lost, bad  int
	toldAt     time.Time
	begun      time.Time
	onTerminal bool
}

// progressEvery is how often a terminal is told.
const progressEvery = 200 * time.Millisecond

func (w *warming) done(state string) {
	w.so++
	if state == "stale" || state == "unreachable" {
		w.lost++
	}
	now := w.app.Now()
	if w.begun.IsZero() {
		w.begun, w.toldAt, w.onTerminal = now, now, w.app.onTerminal()
	}
	if w.onTerminal && now.Sub(w.toldAt) >= progressEvery {
		w.toldAt = now
		fmt.Fprintf(w.app.Stderr, "\r\x1b[Kheed: %d of %s, %d could not be asked", w.so, plural(uint64(w.all), "site"), w.lost)
	}
}

func (w *warming) wrong(err error) {
	w.so++
	w.bad++
	w.clear()
	fmt.Fprintln(w.app.Stderr, "heed:", err)
}

// clear takes the line of progress away.
func (w *warming) clear() {
	if w.onTerminal && w.toldAt != w.begun {
		fmt.Fprint(w.app.Stderr, "\r\x1b[K")
	}
}

func (w *warming) end() {
	w.clear()
	if w.onTerminal {
		fmt.Fprintf(w.app.Stderr, "heed: %s, %d could not be asked\n", plural(uint64(w.all), "site"), w.lost)
	}
}

// exit is the status that fits.
func (w *warming) exit() error {
	switch {
	case w.bad > 0:
		return Exit(exitUsage)
	case w.lost > 0:
		return Exit(exitNo)
	}
	return nil
}
