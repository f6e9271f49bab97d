package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"heed/internal/audit/replay"
)

// AuditListCmd is `heed audit list`.
type AuditListCmd struct {
	recordFiles
	Since   string `placeholder:"TIME" aliases:"from" help:"From that time on: 2026-05-03, 2026-05-03T14:00:00Z, or 36h or 7d ago."`
	Until   string `placeholder:"TIME" aliases:"to" help:"Before that time."`
	Client  string `placeholder:"NAME" help:"Of that client alone: its address as the record has it, its [[client]], its user or a product token."`
	Host    string `placeholder:"PATTERN" help:"About these hosts alone: example.org, or *.example.org for all below it."`
	Verdict string `placeholder:"WORD" help:"With that verdict alone: allow, refuse or would-refuse."`
	JSON    bool   `name:"json" help:"Print one JSON object per decision, with all that is recorded of it."`
}

// Help says what a line holds.
func (AuditListCmd) Help() string {
	return `Prints a line for each decision: its time and id, the verdict, the status that the
client got (- while there is none), who asked, for what, and why. What it rests on,
heed why tells of one id. Several records are listed as one, in the order of time.

  heed audit list --since 1h --verdict refuse
  heed audit list --client newsbot --host '*.example.org' audit.db
  heed audit list --since 2026-05-03 --until 2026-05-04 --json`
}

// Run lists the decisions.
func (c *AuditListCmd) Run(a *App) error {
	f, err := c.filter(a.Now())
	if err != nil {
		return err
	}
	records, leave, err := c.open(a)
	if err != nil {
		return err
	}
	defer leave()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := bufio.NewWriter(a.Stdout)
	encoder, paint := newJSON(out), colours(a.Environ, a.Stdout)
	err = replay.ListAll(ctx, handles(records), f, func(i int, d *replay.Decision) error {
		if c.JSON {
			return encoder.Encode(struct {
				File string `json:"file"`
				*replay.Decision
			}{records[i].Name, d})
		}
		return listed(out, paint, d)
	})
	return errors.Join(err, out.Flush())
}

func (c *AuditListCmd) filter(now time.Time) (f replay.Filter, err error) {
	f = replay.Filter{Client: c.Client, Host: strings.ToLower(c.Host), Verdict: c.Verdict}
	switch c.Verdict {
	case "", "allow", "refuse", "would-refuse":
	default:
		return f, fmt.Errorf("--verdict: %q is no verdict; write allow, refuse or would-refuse", c.Verdict)
	}
	if f.From, err = parseWhen("--since", c.Since, now); err != nil {
		return f, err
	}
	if f.To, err = parseWhen("--until", c.Until, now); err != nil {
		return f, err
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return f, errors.New("--since is not before --until: nothing lies between\nExchange them")
	}
	return f, nil
}

// listed writes a decision in a line.
func listed(w io.Writer, paint painter, d *replay.Decision) error {
	status, url := "-", d.URL
	if d.Outcome != nil {
		status = fmt.Sprint(d.Outcome.Status)
	}
	if url == "" {
		url = "-"
	}
	verdict := fmt.Sprintf("%-12s", d.Verdict.Verdict)
	switch d.Verdict.Verdict {
	case "allow":
		verdict = paint(green, verdict)
	case "refuse":
		verdict = paint(red, verdict)
	default:
		verdict = paint(yellow, verdict)
	}
	_, err := fmt.Fprintf(w, "%s %s %s %3s %s %s %s  %s\n", d.Time.Format("2006-01-02T15:04:05.000Z"), d.ID, verdict, status,
		quoted(whoListed(d)), quoted(d.Method), quoted(url), shortly(&d.Verdict))
	return err
}

// whoListed names who asked: the entry of the settings where one fits, and the
// client.
func whoListed(d *replay.Decision) string {
	if d.ClientName != "" {
		return d.ClientName + "@" + d.Client
	}
	return d.Client
}

// shortly says why in few words.
func shortly(v *replay.Verdict) string {
	text := v.Reason
	if v.Rule != "" {
		text += ": " + v.Rule
		if v.Line > 0 {
			text += fmt.Sprintf(" (line %d)", v.Line)
		}
	}
	if v.Settled != "" {
		text += " [" + v.Settled + "]"
	}
	return quoted(text)
}
