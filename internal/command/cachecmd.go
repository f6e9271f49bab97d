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

	"heed/internal/fleet"
)

// CacheCmd is `heed cache`: what heed knows of sites' robots.txt files.
type CacheCmd struct {
	List  CacheListCmd  `cmd:"" help:"List the robots.txt files in memory, with age, next refresh and why."`
	Show  CacheShowCmd  `cmd:"" help:"Show what is kept of a site, with the text."`
	Purge CachePurgeCmd `cmd:"" help:"Forget a site: the next request fetches its robots.txt anew."`
	Warm  CacheWarmCmd  `cmd:"" help:"Fetch the robots.txt of many sites before they are asked for."`
}

// cacheFlags are what the commands of cache have in common.
type cacheFlags struct {
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"With --fleet: read settings from FILE instead of ./proxy.toml."`
	Fleet  bool   `help:"Ask the store that the fleet shares instead of the running heed."`
	JSON   bool   `name:"json" help:"Print one JSON object per line."`
}

// desk returns who answers; leave is to be called at the end.
func (c *cacheFlags) desk(a *App) (k cacheDesk, leave func(), err error) {
	if c.Fleet {
		return c.fleetDesk(a)
	}
	if c.Config != "" {
		return nil, nil, errors.New("--config says where the fleet is, and the running heed has its settings\nAdd --fleet, or leave --config out")
	}
	state, err := StateDir()
	if err != nil {
		return nil, nil, err
	}
	if _, err := readStatus(context.Background(), state); errors.Is(err, errNotRunning) {
		return nil, nil, fmt.Errorf("heed is not running in %s\nStart it with `heed serve`; or see what the fleet shares with --fleet", state)
	} else if err != nil {
		return nil, nil, err
	}
	return controlDesk{newControlClient(state)}, func() {}, nil
}

// fleetDesk is the desk of what the fleet shares: this process, with nothing in
// memory.
func (c *cacheFlags) fleetDesk(a *App) (k cacheDesk, leave func(), err error) {
	cfg, err := Load(c.Config, a.Defaults)
	if err != nil {
		return nil, nil, err
	}
	store, err := openFleet(cfg, a.Environ, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	if store == nil {
		return nil, nil, fmt.Errorf("there is no fleet: fleet.url is empty in %s\nName the store there, or leave out --fleet to ask the running heed", cfg.source())
	}
	leave = func() { store.Close() }
	ways, err := newEgresses(cfg, a.Environ)
	if err != nil {
		leave()
		return nil, nil, err
	}
	ways.memory, ways.fleet = policyMemory(cfg), store
	out, err := ways.take(way{})
	if err != nil {
		leave()
		return nil, nil, err
	}
	shared, err := ways.shared()
	if err != nil {
		leave()
		return nil, nil, err
	}
	return &fleetDesk{&waysDesk{ways: []*egress{out}, shared: shared}, store}, leave, nil
}

// fleetDesk is a desk that is of no use when the store is away.
type fleetDesk struct {
	cacheDesk
	store *fleet.Store
}

// well returns err, or that the store is away.
func (k *fleetDesk) well(err error) error {
	if h := k.store.Health(); h.Away {
		return fmt.Errorf("the fleet's store %s cannot be used: %s\nSee that it runs, and that fleet.url names it", h.Hosts, quoted(h.Why))
	}
	return err
}

func (k *fleetDesk) list(ctx context.Context, each func(*heldLine) error) error {
	return k.well(k.cacheDesk.list(ctx, each))
}

func (k *fleetDesk) show(ctx context.Context, what string) ([]*heldLine, error) {
	lines, err := k.cacheDesk.show(ctx, what)
	return lines, k.well(err)
}

func (k *fleetDesk) text(ctx context.Context, what string) ([]byte, error) {
	text, err := k.cacheDesk.text(ctx, what)
	return text, k.well(err)
}

func (k *fleetDesk) purge(ctx context.Context, what string) ([]string, error) {
	origins, err := k.cacheDesk.purge(ctx, what)
	return origins, k.well(err)
}

func (k *fleetDesk) warm(ctx context.Context, origin string) (*heldLine, error) {
	line, err := k.cacheDesk.warm(ctx, origin)
	return line, k.well(err)
}

// CacheListCmd is `heed cache list`.
type CacheListCmd struct {
	cacheFlags
}

// Help says what the columns are.
func (CacheListCmd) Help() string {
	return `One line per robots.txt in memory: its state (available; stale: an old copy
stands in; unavailable: there is none, all is allowed; unreachable: all is
refused), how old it is, when the site is asked again, how much memory it takes,
whose it is, and why. What is only on disk is not listed, but shown by name.

Example:

    heed cache list --json | jq -r 'select(.state == "unreachable") | .origin'`
}

// Run prints the list, in the order of the origins' names.
func (c *CacheListCmd) Run(a *App) error {
	k, leave, err := c.desk(a)
	if err != nil {
		return err
	}
	defer leave()
	var lines []*heldLine
	err = k.list(context.Background(), func(line *heldLine) error {
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(lines, func(a, b *heldLine) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Way, b.Way), cmp.Compare(a.For, b.For))
	})
	if c.JSON {
		return printJSON(a.Stdout, lines)
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(table, line.row(a.Now()))
	}
	return table.Flush()
}

// printJSON prints one object per line.
func printJSON[T any](w io.Writer, lines []T) error {
	out := bufio.NewWriter(w)
	encoder := newJSON(out)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// row is a line of the table.
func (l *heldLine) row(now time.Time) string {
	return strings.Join([]string{l.State, span(now.Sub(l.FetchedAt)), l.next(now), sizeWords(l.Bytes), l.whose(), l.Why}, "\t")
}

func (l *heldLine) whose() string {
	text := l.Origin
	if l.For != "" {
		text += " for " + l.For
	}
	if l.Way != "" {
		text += " way " + l.Way
	}
	return text
}

// next says when the site is asked again.
func (l *heldLine) next(now time.Time) string {
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

// Help says how far it goes.
func (CachePurgeCmd) Help() string {
	return `Forgets what is kept of a host in memory and on disk, and has the other heeds of
the fleet forget it too. The next request fetches its robots.txt anew; if it
cannot be had, there is no old copy to stand in, and requests are refused.

Example:

    heed cache purge example.org`
}

// Run forgets, and says what.
func (c *CachePurgeCmd) Run(a *App) error {
	k, leave, err := c.desk(a)
	if err != nil {
		return err
	}
	defer leave()
	origins, err := k.purge(context.Background(), c.Host)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.Stdout, []map[string][]string{{"purged": origins}})
	}
	if len(origins) == 0 {
		fmt.Fprintf(a.Stderr, "heed: nothing was kept of %s\n", quoted(c.Host))
	}
	for _, o := range origins {
		fmt.Fprintln(a.Stdout, "forgotten:", o)
	}
	return nil
}
