package auditcmd

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/config"
	"heed/internal/console"
	"heed/internal/safetext"
	"heed/internal/why"
	"heed/rules"
)

// WhyCmd is `heed why`: explains one recorded decision.
type WhyCmd struct {
	config.FileFlags
	File   []string `short:"f" placeholder:"FILE" help:"Search these records (default: this heed's own)."`
	At     string   `placeholder:"TIME" help:"With a URL: search up to TIME: 2026-05-03T14:00:00Z, or 36h ago."`
	Client string   `placeholder:"NAME" help:"With a URL: search only this client: address, [[client]], user or agent."`
	JSON   bool     `name:"json" help:"Print one JSON object with every field."`

	What string `arg:"" name:"id|url" help:"The id of a decision or its beginning, or the URL that was requested."`
}

// Help describes the explanation and where ids are found.
func (WhyCmd) Help() string {
	return `Explains one decision like heed check --explain, with everything behind it: the
client, the bytes of the line of robots.txt, the file's hash and age, what the site
states about the use of the page, the settings, the waiting time and the outcome. The
decision is also judged again.

Ids are in every refusal, in the log and in heed audit list. The beginning of an id,
at least 6 digits, is enough where no other one has it; else they are listed, and
heed exits with 2. For a URL, the last decision is explained; values that the record
keeps as hashes are not compared. Exits with 1 when there is none.

  heed why 01a1ff09-53aa-7c7f-9f91-703e878567fa
  heed why https://example.org/page --at 2026-05-03T14:00:00Z --client newsbot`
}

// Run finds the decision and prints its explanation.
func (c *WhyCmd) Run(a *console.App) error {
	find, err := c.finder(a.Now())
	if err != nil {
		return err
	}
	records, err := (&recordFiles{FileFlags: c.FileFlags, Files: c.File}).open(a)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if err := c.completeID(ctx, a, records); err != nil {
		return err
	}
	file, found, err := c.search(ctx, a, records, find)
	for wait := time.Duration(0); err == nil && found == nil && wait < completionTime && c.recent(a.Now()); wait += searchInterval {
		time.Sleep(searchInterval)
		file, found, err = c.search(ctx, a, records, find)
	}
	if err != nil {
		return err
	}
	if found == nil {
		fmt.Fprintf(a.Stderr, "heed: the record has no decision on %s\n`heed audit list` shows those it has\n", console.Quoted(c.What))
		return console.Exit(console.ExitNo)
	}
	if c.likely(found) {
		fmt.Fprintln(a.Stderr, "heed: the record keeps values of this URL as keyed hashes; this is the last decision on a URL that differs from it in such values at most")
	}
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(struct {
			File string `json:"file"`
			*replay.Explained
		}{file, found})
	}
	return printWhy(a.Stdout, console.Colours(a.Environ, a.Stdout), file, found)
}

// A decision is in the record at most completionTime after it was made. Until then
// a search for it is repeated, so that a refusal just received can be explained.
const (
	completionTime = 2 * time.Second
	searchInterval = 200 * time.Millisecond
)

// recent reports whether What is the id of a decision that may not be in the record
// yet.
func (c *WhyCmd) recent(now time.Time) bool {
	id, err := hex.DecodeString(strings.ReplaceAll(c.What, "-", ""))
	if err != nil || len(id) != 16 || id[6]>>4 != 7 {
		return false
	}
	var at uint64 // milliseconds since 1970 (RFC 9562 §5.7)
	for _, octet := range id[:6] {
		at = at<<8 | uint64(octet)
	}
	age := now.Sub(time.UnixMilli(int64(at)))
	return -completionTime < age && age < 2*completionTime
}

// search searches all records and returns the latest decision found, with the path
// of its record; found is nil when there is none.
func (c *WhyCmd) search(ctx context.Context, a *console.App, records []*store.Record, find finder) (file string, found *replay.Explained, err error) {
	for _, r := range records {
		_, end := a.Bar("searching " + console.Quoted(r.Path))
		d, err := find(ctx, r)
		end()
		if errors.Is(err, replay.ErrNone) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", console.Quoted(r.Path), err)
		}
		if found == nil || found.Time.Before(d.Time) {
			found, file = d, r.Path
		}
	}
	return file, found, nil
}

// finder searches one record for a decision. Without one the error is
// replay.ErrNone.
type finder func(context.Context, *store.Record) (*replay.Explained, error)

// finder returns the search for the id or the URL.
func (c *WhyCmd) finder(now time.Time) (finder, error) {
	if !strings.Contains(c.What, "://") {
		if c.At != "" || c.Client != "" {
			return nil, errors.New("--at and --client choose among the decisions on a URL, and an id names a single one\nLeave them out, or write the URL with http:// or https://")
		}
		return func(ctx context.Context, r *store.Record) (*replay.Explained, error) {
			return replay.ExplainID(ctx, r, config.RecordedRules, c.What)
		}, nil
	}
	origin, target, err := rules.ParseRecorded(safetext.ParseOctets(c.What)) // as heed audit list prints it
	if err != nil {
		return nil, err
	}
	f := store.Filter{Client: c.Client}
	if f.To, err = parseTime("--at", c.At, now); err != nil {
		return nil, err
	}
	if !f.To.IsZero() {
		f.To = f.To.Add(time.Second) // times are given in seconds: include all of the last one
	}
	targets := []string{target}
	if _, other, err := rules.ParseURL(c.What); err == nil && other != target { // as it was sent
		targets = append(targets, other)
	}
	if other := escapedTarget(c.What); !slices.Contains(targets, other) {
		targets = append(targets, other)
	}
	return func(ctx context.Context, r *store.Record) (t *replay.Explained, err error) {
		for _, target := range targets {
			if t, err = replay.ExplainURL(ctx, r, config.RecordedRules, origin, target, f); !errors.Is(err, replay.ErrNone) {
				return t, err
			}
		}
		return explainRedacted(ctx, r, origin, targets, f)
	}, nil
}

// printWhy explains a decision, one paragraph per step.
func printWhy(w io.Writer, paint console.Painter, file string, t *replay.Explained) error {
	_, err := fmt.Fprintf(w, "%s %s %s\n%s\n", paint(why.Colour(t.Verdict.Verdict), console.Quoted(t.Verdict.Verdict)), console.Quoted(t.Method),
		console.Quoted(cmp.Or(t.URL, "(unknown host)")), why.Text(why.Recorded(file, t, paint), paint))
	return err
}

// escapedTarget returns the target of a URL as browsers and older records spell it:
// octets that a URL may not contain are escapes.
func escapedTarget(address string) string {
	u, err := url.Parse(rules.EscapePercents(address))
	if err != nil {
		return ""
	}
	return u.RequestURI()
}
