package command

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/report"
)

// WhyCmd is `heed why`: one recorded decision, told.
type WhyCmd struct {
	File   []string `short:"f" placeholder:"FILE" help:"Records to look into; this heed's own if none is named."`
	At     string   `placeholder:"TIME" help:"With a URL: the last decision up to that time: 2026-05-03T14:00:00Z, or 36h or 7d ago."`
	Client string   `placeholder:"NAME" help:"With a URL: of that client alone: its address as the record has it, its [[client]], its user or a product token."`
	JSON   bool     `name:"json" help:"Print one JSON object with all that is known."`

	What string `arg:"" name:"id|url" help:"The id of a decision, or the URL that was asked for."`
}

// Help says where ids are found.
func (WhyCmd) Help() string {
	return `Tells one decision as heed check --explain does, and all that it rested on: who
asked, the bytes of the line of robots.txt, the file's hash and age, the settings,
what it waited for, and how the exchange ended; and judges it again.

The id stands in every refusal, in the log, and in heed audit list. Of a URL the
last decision is told. Exit status 1 when there is none.

  heed why 01a1ff09-53aa-7c7f-9f91-703e878567fa
  heed why https://example.org/page --at 2026-05-03T14:00:00Z --client newsbot`
}

// Run finds the decision and tells it.
func (c *WhyCmd) Run(a *App) error {
	find, err := c.finder(a.Now())
	if err != nil {
		return err
	}
	records, leave, err := (&recordFiles{Files: c.File}).open(a)
	if err != nil {
		return err
	}
	defer leave()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	file, found, err := c.look(ctx, a, records, find)
	for wait := time.Duration(0); err == nil && found == nil && wait < completed && c.new(a.Now()); wait += lookAgain {
		time.Sleep(lookAgain)
		file, found, err = c.look(ctx, a, records, find)
	}
	if err != nil {
		return err
	}
	if found == nil {
		fmt.Fprintf(a.Stderr, "heed: the record has no decision on %s\n`heed audit list` shows those it has\n", quoted(c.What))
		return Exit(exitNo)
	}
	if c.JSON {
		return newJSON(a.Stdout).Encode(struct {
			File string `json:"file"`
			*replay.Told
		}{file, found})
	}
	return tellWhy(a.Stdout, colours(a.Environ, a.Stdout), file, found)
}

// A heed completes its record within a second: who asks for a refusal that was
// just received gets it.
const (
	completed = 2 * time.Second
	lookAgain = 200 * time.Millisecond
)

// new reports whether what is asked for is the id of a decision that may not be in
// the record yet.
func (c *WhyCmd) new(now time.Time) bool {
	id, err := hex.DecodeString(strings.ReplaceAll(c.What, "-", ""))
	if err != nil || len(id) != 16 || id[6]>>4 != 7 {
		return false
	}
	var at uint64 // milliseconds since 1970 (RFC 9562 §5.7)
	for _, octet := range id[:6] {
		at = at<<8 | uint64(octet)
	}
	age := now.Sub(time.UnixMilli(int64(at)))
	return -completed < age && age < 2*completed
}

// look looks the decision up in all records; nil when none has it. Of several the
// last one is meant.
func (c *WhyCmd) look(ctx context.Context, a *App, records []report.Record, find finder) (file string, found *replay.Told, err error) {
	for _, r := range records {
		_, end := a.bar("looking into " + quoted(r.Name))
		told, err := find(ctx, r.DB)
		end()
		if errors.Is(err, replay.ErrNone) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", quoted(r.Name), err)
		}
		if found == nil || found.Time.Before(told.Time) {
			found, file = told, r.Name
		}
	}
	return file, found, nil
}

// finder looks a decision up in one record.
type finder func(context.Context, *sql.DB) (*replay.Told, error)

// finder returns what looks the decision up in one record.
func (c *WhyCmd) finder(now time.Time) (finder, error) {
	if !strings.Contains(c.What, "://") {
		if c.At != "" || c.Client != "" {
			return nil, errors.New("--at and --client choose among the decisions on a URL, and an id names a single one\nLeave them out, or write the URL with http:// or https://")
		}
		return func(ctx context.Context, db *sql.DB) (*replay.Told, error) {
			return replay.Tell(ctx, db, bookInForce, c.What)
		}, nil
	}
	origin, target, err := parseURL(c.What)
	if err != nil {
		return nil, err
	}
	f := replay.Filter{Client: c.Client}
	if f.To, err = parseWhen("--at", c.At, now); err != nil {
		return nil, err
	}
	if !f.To.IsZero() {
		f.To = f.To.Add(wholeSecond) // who writes a second means all of it
	}
	return func(ctx context.Context, db *sql.DB) (*replay.Told, error) {
		return replay.TellURL(ctx, db, bookInForce, origin, target, f)
	}, nil
}

const wholeSecond = time.Second
