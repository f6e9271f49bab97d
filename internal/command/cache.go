package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/daemon"
	"heed/internal/output/console"
	"heed/internal/pace/fleet"
)

// CacheCmd is `heed cache`: lists, purges and fetches stored robots.txt files.
type CacheCmd struct {
	List  CacheListCmd  `cmd:"" help:"List the robots.txt files in memory: state, age, refresh."`
	Show  CacheShowCmd  `cmd:"" help:"Show the stored robots.txt of a site."`
	Purge CachePurgeCmd `cmd:"" help:"Delete all that is stored of a site."`
	Warm  CacheWarmCmd  `cmd:"" help:"Fetch the robots.txt of many sites in advance."`
}

// cacheFlags are the flags that all commands of cache have.
type cacheFlags struct {
	config.FileFlags
	Fleet bool `help:"Read the store of the fleet, not the running heed."`
	JSON  bool `name:"json" help:"Print one JSON object per line."`
}

// with calls do with the cache of the running heed, or with --fleet that of the fleet's
// store. A store that cannot be used is an error.
func (c *cacheFlags) with(a *console.App, do func(control.CacheAPI) error) error {
	if c.Fleet {
		return c.withFleet(a, do)
	}
	if c.Config != "" || c.NoConfig {
		return errors.New("--config and --no-config are for --fleet: the running heed has its own settings\nAdd --fleet, or leave them out")
	}
	client, err := runningHeed(a, "; or see what the fleet shares with --fleet")
	if err != nil {
		return err
	}
	return do(control.RemoteCache{Client: client})
}

// ask returns what do returns for a host or an origin.
func ask[A any](c *cacheFlags, a *console.App, what string, do func(control.CacheAPI, context.Context, string) (A, error)) (answer A, err error) {
	err = c.with(a, func(k control.CacheAPI) (err error) {
		answer, err = do(k, context.Background(), what)
		return err
	})
	return answer, err
}

// withFleet calls do with the cache of the fleet's store, accessed by this process.
func (c *cacheFlags) withFleet(a *console.App, do func(control.CacheAPI) error) error {
	cfg, err := c.Load(a)
	if err != nil {
		return err
	}
	store, err := route.OpenFleet(cfg, a.Environ, fleet.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if store == nil {
		return fmt.Errorf("there is no fleet: fleet.url is empty in %s\nName the store there, or leave out --fleet to ask the running heed", cfg.Source())
	}
	defer store.Close()
	r, err := route.Open(cfg, a.Environ, route.Options{Memory: route.PolicyMemory(cfg), Fleet: store})
	if err != nil {
		return err
	}
	err = do(&daemon.LocalCache{Routes: []*route.Route{r}, Shared: r.Shared})
	h := store.Health()
	if !h.Away && errors.Is(err, fleet.ErrAway) { // it went while the command read it
		h.Away, h.Why = true, err.Error()
	}
	if h.Away {
		return fmt.Errorf("the fleet's store %s cannot be used: %s\nSee that it runs, and that fleet.url names it", h.Hosts, console.Quoted(h.Why))
	}
	return err
}

// CacheListCmd is `heed cache list`.
type CacheListCmd struct {
	cacheFlags
}

// Run prints the list, in the order of the origins' names.
func (c *CacheListCmd) Run(a *console.App) error {
	var lines []*control.CacheEntry
	err := c.with(a, func(k control.CacheAPI) error {
		return k.List(context.Background(), func(line *control.CacheEntry) error {
			lines = append(lines, line)
			return nil
		})
	})
	if err != nil {
		return err
	}
	slices.SortFunc(lines, func(a, b *control.CacheEntry) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Route, b.Route), cmp.Compare(a.For, b.For))
	})
	if c.JSON {
		return console.PrintJSON(a.Stdout, lines)
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		cells := []string{l.State, span(a.Now().Sub(l.FetchedAt)), nextAsk(l, a.Now()), sizeWords(l.Bytes), entryName(l), l.Why}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// entryName returns the origin of an entry, the clients it is for and the way it
// was fetched over.
func entryName(l *control.CacheEntry) string {
	text := l.Origin
	if l.Kind != "" {
		text = l.Kind + " " + text
	}
	if l.For != "" {
		text += " for " + l.For
	}
	if l.Route != "" {
		text += " route " + l.Route
	}
	return text
}

// nextAsk returns when the robots.txt is fetched again.
func nextAsk(l *control.CacheEntry, now time.Time) string {
	if l.NextAt.IsZero() {
		return "-"
	}
	if d := l.NextAt.Sub(now); d > 0 {
		return "in " + span(d)
	}
	return "due"
}

// span writes a duration in its largest unit, for a column.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// sizeWords writes a size for a column.
func sizeWords(bytes int) string {
	if bytes < 10<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// CachePurgeCmd is `heed cache purge`.
type CachePurgeCmd struct {
	cacheFlags
	Host string `arg:"" help:"A host, such as example.org, or an origin, such as http://example.org:8080."`
}

// Run deletes the entries and prints their origins.
func (c *CachePurgeCmd) Run(a *console.App) error {
	origins, err := ask(&c.cacheFlags, a, c.Host, control.CacheAPI.Purge)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(a.Stdout, []map[string][]string{{"purged": origins}})
	}
	if len(origins) == 0 {
		fmt.Fprintf(a.Stderr, "heed: nothing was kept of %s\n`heed cache list` shows the sites\n", console.Quoted(c.Host))
	}
	for _, o := range origins {
		fmt.Fprintln(a.Stdout, "forgotten:", o)
	}
	return nil
}

// CacheShowCmd is `heed cache show`.
type CacheShowCmd struct {
	cacheFlags
	Text bool   `help:"Print only the text, byte for byte (with escapes on a terminal)."`
	Host string `arg:"" help:"A host, such as example.org, or an origin, such as http://example.org:8080."`
}

// Run prints the stored entries of the host.
func (c *CacheShowCmd) Run(a *console.App) error {
	if c.Text {
		return c.text(a)
	}
	lines, err := ask(&c.cacheFlags, a, c.Host, control.CacheAPI.Show)
	if err != nil {
		return err
	}
	if c.JSON {
		err = console.PrintJSON(a.Stdout, lines)
	} else {
		err = printShown(a.Stdout, lines, a.Now())
	}
	if err == nil && len(lines) == 0 {
		fmt.Fprintf(a.Stderr, "heed: nothing is kept of %s\n`heed cache list` shows the sites; heed cache warm FILE fetches those of a list\n", console.Quoted(c.Host))
		return console.Exit(console.ExitNo)
	}
	return err
}

// text prints only the file.
func (c *CacheShowCmd) text(a *console.App) error {
	if c.JSON {
		return errors.New("--text prints the file as it is, --json a description of it\nLeave one of them out")
	}
	text, err := ask(&c.cacheFlags, a, c.Host, control.CacheAPI.Text)
	switch {
	case err != nil:
		return err
	case text == nil:
		fmt.Fprintf(a.Stderr, "heed: no robots.txt is kept of %s\n", console.Quoted(c.Host))
		return console.Exit(console.ExitNo)
	case console.IsTerminal(a.Stdout):
		text = []byte(console.PrintableLines(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	_, err = a.Stdout.Write(text)
	return err
}

// printShown writes entries as text.
func printShown(w io.Writer, lines []*control.CacheEntry, now time.Time) error {
	out := bufio.NewWriter(w)
	for i, l := range lines {
		if i > 0 {
			fmt.Fprintln(out)
		}
		row := func(name, format string, values ...any) {
			fmt.Fprintf(out, "%-10s %s\n", name, fmt.Sprintf(format, values...))
		}
		row("site", "%s", entryName(l))
		row("state", "%s", l.State)
		row("why", "%s", l.Why)
		row("age", "%s, from %s", span(now.Sub(l.FetchedAt)), l.FetchedAt.Local().Format(time.DateTime))
		if !l.NextAt.IsZero() {
			row("next", "%s, with the first request from %s on; requests wait for it from %s on", nextAsk(l, now),
				l.NextAt.Local().Format(time.DateTime), l.WaitAt.Local().Format(time.TimeOnly))
		}
		if l.Failures > 0 {
			row("failures", "%d in a row", l.Failures)
		}
		row("memory", "%s", sizeWords(l.Bytes))
		if l.Shared {
			row("fleet", "shared")
		}
		printText(out, row, l)
	}
	return out.Flush()
}

// maxShownLine bounds the printed part of a line of the file, in characters.
const maxShownLine = 500

func printText(w io.Writer, row func(name, format string, values ...any), l *control.CacheEntry) {
	if l.Text == nil {
		row("text", "not kept")
		return
	}
	if chain := l.Snapshot.Chain; len(chain) > 1 {
		row("redirected", "to %s", console.Quoted(chain[len(chain)-1]))
	}
	row("text", "%d octets, SHA-256 %s", len(*l.Text), l.Snapshot.SHA256)
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(*l.Text)
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if text == "" {
			break
		}
		if runes := []rune(line); len(runes) > maxShownLine {
			line = string(runes[:maxShownLine]) + "..."
		}
		fmt.Fprintf(w, "%6d  %s\n", i+1, console.Printable(strings.ReplaceAll(line, "\t", " ")))
	}
	if l.Cut {
		row("", "... it is longer than %d KiB: the rest is not shown", control.MaxShown>>10)
	}
}
