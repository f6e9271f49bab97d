package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"heed/internal/audit/report"
)

// auditWindow says which decisions are meant.
type auditWindow struct {
	From   string `placeholder:"TIME" help:"From that time on: 2026-05-03, 2026-05-03T14:00:00Z, or 36h or 7d ago."`
	To     string `placeholder:"TIME" help:"Before that time."`
	Client string `placeholder:"NAME" help:"Of that client alone: its address as the record has it, its [[client]], its user or a product token."`
	Host   string `placeholder:"PATTERN" help:"About these hosts alone: example.org, or *.example.org for all below it."`
}

// query reads the window.
func (w *auditWindow) query(now time.Time) (q report.Query, err error) {
	q.Client, q.Host = w.Client, w.Host
	if q.From, err = parseWhen("--from", w.From, now); err != nil {
		return q, err
	}
	if q.To, err = parseWhen("--to", w.To, now); err != nil {
		return q, err
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return q, errors.New("--from is not before --to: nothing lies between\nExchange them")
	}
	return q, nil
}

// parseWhen reads a time: a day (UTC), RFC 3339, or how long ago. Empty is the
// zero time.
func parseWhen(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if ago, err := parseFor(text, 100*366*24*time.Hour); err == nil {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%s: %q is no time\nWrite a day such as 2026-05-03, a time such as 2026-05-03T14:00:00Z, or how long ago: 36h, 7d", flag, text)
}

// AuditReportCmd is `heed audit report`.
type AuditReportCmd struct {
	recordFiles
	auditWindow
	Conduct bool   `help:"Add what each client did of its own accord: robots.txt, gaps, repetitions."`
	Paper   string `xor:"form" placeholder:"DIR" help:"Tables for a paper, with the queries behind them, a codebook and a paragraph on methods, into a new directory."`
	Text    bool   `xor:"form" help:"For a terminal; the same without any of these."`
	HTML    bool   `xor:"form" name:"html" help:"A page for a browser and for printing, in one file that needs nothing else."`
	JSON    bool   `xor:"form" name:"json" help:"One JSON object with everything."`
	CSV     bool   `xor:"form" name:"csv" help:"A table: a row for each agent, site and way of deciding; with --conduct for each agent and site."`
}

// Help says what the report tells.
func (AuditReportCmd) Help() string {
	return `Tells, by agent and by site, what was asked, allowed and refused and by which rule,
what waited, what was not judged, which exceptions decided, which robots.txt
changed, and which could not be had. Several records are told as one.

  heed audit report --from 7d
  heed audit report --conduct --html > report.html
  heed audit report --client newsbot --csv audit.db > newsbot.csv
  heed audit report --paper tables/ crawl.db
  heed audit report --conduct heed1/audit.db heed2/audit.db`
}

// Run reads the records and prints the report.
func (c *AuditReportCmd) Run(a *App) error {
	q, err := c.query(a.Now())
	if err != nil {
		return err
	}
	records, leave, err := c.open(a)
	if err != nil {
		return err
	}
	defer leave()
	if c.Paper != "" {
		return c.paper(a, q, records)
	}
	q.Conduct = c.Conduct
	var done func()
	q.Progress, done = a.bar("reading decisions")
	r, err := report.New(records, q, a.Now())
	done()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Stdout)
	return errors.Join(c.write(out, r), out.Flush())
}

func (c *AuditReportCmd) write(w io.Writer, r *report.Report) error {
	switch {
	case c.HTML:
		return r.WriteHTML(w)
	case c.JSON:
		return r.WriteJSON(visible{w})
	case c.CSV:
		return r.WriteCSV(w)
	}
	return r.WriteText(w)
}
