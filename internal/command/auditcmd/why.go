package auditcmd

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/base/safetext"
	"heed/internal/check/why"
	"heed/internal/config"
	"heed/internal/output/console"
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
	found, err := c.search(ctx, a, records, find)
	for wait := time.Duration(0); err == nil && found == nil && wait < completionTime && c.recent(a.Now()); wait += searchInterval {
		time.Sleep(searchInterval)
		found, err = c.search(ctx, a, records, find)
	}
	if err != nil {
		return err
	}
	if found == nil {
		advice := listed(c.File)
		if _, err := os.Stat(c.What); err == nil {
			advice = "It is a file: if it is the record, name it with --file, before the id or the URL"
		} else if strings.ContainsAny(c.What, "./") && !strings.Contains(c.What, "://") {
			advice = "A URL begins with http:// or https://"
		}
		fmt.Fprintf(a.Stderr, "heed: the record has no decision on %s\n%s\n", console.Quoted(c.What), advice)
		return console.Exit(console.ExitNo)
	}
	if c.likely(found) {
		fmt.Fprintln(a.Stderr, "heed: the record keeps values of this URL as keyed hashes; this is the last decision on a URL that differs from it in such values at most")
	}
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(found)
	}
	return printWhy(a.Stdout, console.Colours(a.Environ, a.Stdout), found)
}

// listed names the command that prints the decisions of these records; none is heed's own.
func listed(files []string) string {
	words := append([]string{"heed", "audit", "list"}, files...)
	return console.Printable("`" + strings.Join(words, " ") + "` shows those it has")
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
	id, _ := hex.DecodeString(strings.ReplaceAll(c.What, "-", "")) // what is no id has no time
	at, ok := audit.TimeOf(id)
	age := now.Sub(at)
	return ok && -completionTime < age && age < 2*completionTime
}

// search searches all records and returns the latest decision found; nil when there is none.
func (c *WhyCmd) search(ctx context.Context, a *console.App, records []*store.Record, find finder) (found *replay.Explained, err error) {
	for _, r := range records {
		_, end := a.Bar("searching " + console.Quoted(r.Path))
		d, err := find(ctx, r)
		end()
		if errors.Is(err, replay.ErrNone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", console.Quoted(r.Path), err)
		}
		if found == nil || found.Time.Before(d.Time) {
			found = d
		}
	}
	return found, nil
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
func printWhy(w io.Writer, paint console.Painter, t *replay.Explained) error {
	_, err := fmt.Fprintf(w, "%s %s %s\n%s\n", paint(why.Colour(t.Verdict.Verdict), console.Quoted(t.Verdict.Verdict)), console.Quoted(t.Method),
		console.Quoted(cmp.Or(t.URL, "(unknown host)")), why.Text(why.Recorded(t, paint, console.ReasonText), paint))
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

const (
	idDigits    = 32 // hexadecimal, of an id
	minIDDigits = 6  // of its beginning
	maxIDs      = 20 // listed
)

// idRange returns the first and the last id that begin with the digits of text, which
// may have hyphens; ok is false for a text that is no beginning of an id.
func idRange(text string) (ids [2][]byte, digits int, ok bool) {
	beginning := strings.ReplaceAll(text, "-", "")
	digits = len(beginning)
	if digits == 0 || digits > idDigits {
		return ids, digits, false
	}
	for i, digit := range []string{"0", "f"} {
		id, err := hex.DecodeString(beginning + strings.Repeat(digit, idDigits-digits))
		if err != nil {
			return ids, digits, false
		}
		ids[i] = id
	}
	return ids, digits, true
}

// completeID replaces the beginning of an id in What by the only id that has it. When
// there are several, it lists them, and the error is the exit status.
func (c *WhyCmd) completeID(ctx context.Context, a *console.App, records []*store.Record) error {
	ids, digits, ok := idRange(c.What)
	if !ok || digits == idDigits {
		return nil
	}
	if digits < minIDDigits {
		return fmt.Errorf("%s is too short for the beginning of an id\nWrite at least %d of its digits", console.Quoted(c.What), minIDDigits)
	}
	var found []*replay.Decision
	known := map[string]bool{}
	err := replay.List(ctx, records, store.Filter{IDs: ids}, func(d *replay.Decision) error {
		if !known[d.ID] { // the record of a run may be among them
			known[d.ID] = true
			if len(found) < maxIDs {
				found = append(found, d)
			}
		}
		return nil
	})
	switch {
	case err != nil || len(known) == 0:
		return err
	case len(known) == 1:
		c.What = found[0].ID
		return nil
	}
	fmt.Fprintf(a.Stderr, "heed: %s begin with %s; write more digits of one\n", console.Plural(uint64(len(known)), "id"), console.Quoted(c.What))
	for _, d := range found {
		if err := printLine(a.Stderr, console.Colours(a.Environ, a.Stderr), d); err != nil {
			return err
		}
	}
	if len(known) > len(found) {
		fmt.Fprintf(a.Stderr, "and %s\n", console.Plural(uint64(len(known)-len(found)), "further decision"))
	}
	return console.Exit(console.ExitUsage)
}

// explainRedacted explains the last decision that f selects about a URL whose recorded
// form may be one of targets with values replaced by hashes. It returns
// replay.ErrNone when the record has none.
func explainRedacted(ctx context.Context, r *store.Record, o rules.Origin, targets []string, f store.Filter) (*replay.Explained, error) {
	if !slices.ContainsFunc(targets, func(target string) bool { return strings.ContainsAny(target, "=@%") }) {
		return nil, replay.ErrNone
	}
	var last *replay.Decision
	f.Host = o.Host
	err := replay.List(ctx, []*store.Record{r}, f, func(d *replay.Decision) error {
		if !d.Redacted || last != nil && d.Time.Before(last.Time) {
			return nil
		}
		origin, recorded, err := rules.ParseURL(d.URL)
		if err == nil && origin == o && slices.ContainsFunc(targets, func(target string) bool { return audit.MayBeRedacted(recorded, target) }) {
			last = d
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case last == nil:
		return nil, replay.ErrNone
	}
	return replay.ExplainID(ctx, r, config.RecordedRules, last.ID)
}

// likely reports whether the decision was found although its URL is not the one asked
// for: values in it are hashes.
func (c *WhyCmd) likely(d *replay.Explained) bool {
	return d.Redacted && strings.Contains(c.What, "://") && safetext.ParseOctets(c.What) != d.URL
}
