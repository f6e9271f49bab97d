package command

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"heed/internal/audit/replay"
)

// WhyCmd is `heed why`: one recorded decision, told.
type WhyCmd struct {
	File   []string `short:"f" placeholder:"FILE" help:"Records to look into; audit.db of the state directory if none is named."`
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
	var found *replay.Told
	file := ""
	for _, r := range records {
		_, end := a.bar("looking into " + quoted(r.Name))
		told, err := find(ctx, r.DB)
		end()
		if errors.Is(err, replay.ErrNone) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", quoted(r.Name), err)
		}
		if found == nil || found.Time.Before(told.Time) {
			found, file = told, r.Name
		}
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

// finder returns what looks the decision up in one record.
func (c *WhyCmd) finder(now time.Time) (func(context.Context, *sql.DB) (*replay.Told, error), error) {
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
