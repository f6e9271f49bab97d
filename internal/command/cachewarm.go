package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"heed/internal/control"
	"heed/internal/output/console"
)

// CacheWarmCmd is `heed cache warm`.
type CacheWarmCmd struct {
	cacheFlags
	Quiet bool   `short:"q" help:"Print nothing; only set the exit status."`
	File  string `arg:"" help:"A file with one host or URL per line; - for stdin."`
}

// maxWarm bounds the list of sites, in bytes.
const maxWarm = 64 << 20

// Run fetches the files and prints the result of each.
func (c *CacheWarmCmd) Run(a *console.App) error {
	sites, err := c.sites(a)
	if err != nil {
		return err
	}
	w := &warming{app: a, all: len(sites)}
	err = c.with(a, func(k control.CacheAPI) error { return c.warm(k, w, sites) })
	if err != nil {
		return err
	}
	return w.exit()
}

// warm fetches the files of sites and prints the results.
func (c *CacheWarmCmd) warm(k control.CacheAPI, w *warming, sites []string) error {
	// On a terminal the lines of the results show the progress.
	if console.IsTerminal(w.app.Stderr) && (c.Quiet || !console.IsTerminal(w.app.Stdout)) {
		_, end := w.app.Live(w.words)
		defer func() {
			end()
			fmt.Fprintf(w.app.Stderr, "heed: %s\n", w.words())
		}()
	}
	out := bufio.NewWriter(w.app.Stdout)
	err := console.InOrder(console.FetchWidth, slices.Values(sites), func(site string) warmed {
		line, err := k.Warm(context.Background(), site)
		return w.count(warmed{line, err})
	}, func(r warmed, waiting bool) error {
		if err := c.print(out, r); err != nil || waiting {
			return err
		}
		return out.Flush()
	})
	return errors.Join(err, out.Flush())
}

// print writes the result of one site; errors are printed at the end, by exit.
func (c *CacheWarmCmd) print(out io.Writer, r warmed) error {
	switch {
	case r.err != nil, c.Quiet:
		return nil
	case c.JSON:
		return console.PrintJSON(out, []*control.CacheEntry{r.line})
	}
	_, err := fmt.Fprintf(out, "%-11s  %s  %s\n", r.line.State, entryName(r.line), r.line.Why)
	return err
}

// sites returns the sites of the command line or the file.
func (c *CacheWarmCmd) sites(a *console.App) ([]string, error) {
	text, err := a.Input(c.File, maxWarm)
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

// warmed is the result of one site.
type warmed struct {
	line *control.CacheEntry
	err  error
}

// warming is the progress of warm.
type warming struct {
	app *console.App
	all int

	mu    sync.Mutex
	so    int     // done with
	lost  int     // of those, not asked
	wrong []error // lines that name no site, at most maxWrong
	bad   int     // how many
}

// maxWrong is the number of wrong lines that are printed.
const maxWrong = 20

// count adds r to the counts, and returns it.
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

func (w *warming) words() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d of %s, %d could not be asked", w.so, console.Plural(uint64(w.all), "site"), w.lost)
}

// exit prints the errors and returns the exit status.
func (w *warming) exit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range w.wrong {
		fmt.Fprintln(w.app.Stderr, "heed:", err)
	}
	if more := w.bad - len(w.wrong); more > 0 {
		fmt.Fprintf(w.app.Stderr, "heed: %s more were wrong\n", console.Plural(uint64(more), "line"))
	}
	switch {
	case w.bad > 0:
		return console.Exit(console.ExitUsage)
	case w.lost > 0:
		return console.Exit(console.ExitNo)
	}
	return nil
}
