package auditcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/base/safetext"
	"heed/internal/config"
	"heed/internal/output/console"
	"heed/rules"
)

// auditWindow selects decisions.
type auditWindow struct {
	Since  string `placeholder:"TIME" aliases:"from" help:"Select from TIME on: 2026-05-03, 2026-05-03T14:00:00Z, or 36h or 7d ago."`
	Until  string `placeholder:"TIME" aliases:"to" help:"Select before TIME."`
	Client string `placeholder:"NAME" help:"Select one client: address, [[client]], user or product token."`
	Host   string `placeholder:"PATTERN" help:"Select these hosts: example.org, or *.example.org for all below it."`
}

// filter parses the window.
func (w *auditWindow) filter(now time.Time) (f store.Filter, err error) {
	f.Client, f.Host = w.Client, w.Host
	if err = checkHost("--host", w.Host); err != nil {
		return f, err
	}
	if f.From, err = parseTime("--since", w.Since, now); err != nil {
		return f, err
	}
	f.To, err = parseTime("--until", w.Until, now)
	if err == nil && !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		err = errors.New("--since is not before --until: the window is empty\nExchange them")
	}
	return f, err
}

// checkHost returns an error for the value of flag that names more than a host, such as a site of
// a report: nothing would be found.
func checkHost(flag, text string) error {
	host := text
	if _, rest, found := strings.Cut(host, "://"); found {
		host = rest
	}
	host, _, _ = strings.Cut(host, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host != text {
		return fmt.Errorf("%s: %q is more than a host\nWrite %s %s, which selects all its ports, over http and https", flag, text, flag, host)
	}
	return nil
}

// parseTime parses the value of flag: a day (UTC), a time (RFC 3339), or a duration
// before now. An empty text is the zero time.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if ago, err := console.ParseFor(text, 100*366*24*time.Hour); err == nil {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%s: %q is not a time\nWrite a day such as 2026-05-03, a time such as 2026-05-03T14:00:00Z, or how long ago: 36h, 7d", flag, text)
}

// AuditReportCmd is `heed audit report`.
type AuditReportCmd struct {
	recordFiles
	auditWindow
	Conduct bool   `xor:"table" help:"Add the conduct of each client: robots.txt, gaps, repetitions."`
	Use     bool   `xor:"table" help:"With --csv: print what sites state about the use of pages, by purpose."`
	By      string `enum:"agent,address,user" default:"agent" placeholder:"WORD" help:"Count by agent (the judged name), address or user."`
	Paper   string `xor:"form" placeholder:"DIR" help:"Write tables for a paper, queries and a codebook to a new directory."`
	Text    bool   `xor:"form" help:"Print plain text (the default)."`
	HTML    bool   `xor:"form" name:"html" help:"Print one self-contained HTML page."`
	JSON    bool   `xor:"form" name:"json" help:"Print one JSON object with everything."`
	CSV     bool   `xor:"form" name:"csv" help:"Print a CSV table by agent, site, verdict and reason."`
	SQL     bool   `xor:"form" name:"sql" help:"Print the query behind each number, for SQLite's shell."`
}

// Run reads the records and prints the report.
func (c *AuditReportCmd) Run(a *console.App) error {
	f, err := c.filter(a.Now())
	if err != nil {
		return err
	}
	records, err := c.openWhole(a)
	if err != nil {
		return err
	}
	if c.Paper != "" && c.By != report.ByAgent {
		return fmt.Errorf("--by %s does not apply to --paper, whose tables are by agent\nLeave out --by, or print the report as --csv", c.By)
	}
	if c.Paper != "" {
		return c.paper(a, report.Query{Filter: f}, records)
	}
	if c.Use && !c.CSV {
		return errors.New("--use selects a table of --csv; the other forms always have the chapter by purpose\nAdd --csv, or leave out --use")
	}
	q := report.Query{Filter: f, Conduct: c.Conduct, By: c.By, Use: c.Use}
	var done func()
	q.Progress, done = a.Bar("reading decisions")
	r, err := report.New(records, q, a.Now())
	done()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Stdout)
	return errors.Join(c.write(out, r, records), out.Flush())
}

func (c *AuditReportCmd) write(w io.Writer, r *report.Report, records []*store.Record) error {
	switch {
	case c.SQL:
		return report.WriteSQL(w, r, records)
	case c.HTML:
		return r.WriteHTML(w)
	case c.JSON:
		return r.WriteJSON(safetext.EscapingWriter{Writer: w})
	case c.CSV:
		return r.WriteCSV(w)
	}
	return r.WriteText(w)
}

// paper writes the tables of a paper.
func (c *AuditReportCmd) paper(a *console.App, q report.Query, records []*store.Record) error {
	ctx, stop := interruptible()
	defer stop()
	p := &report.Paper{
		Query: q, Now: a.Now(), Step: func(what string) { a.Progress("making " + what) },
		Sensitivity: func(ctx context.Context, r *store.Record) ([]report.Sensitivity, error) {
			return sensitivity(ctx, a, r)
		},
	}
	if err := p.Write(ctx, c.Paper, records); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "the tables are in %s; begin with methods.txt and codebook.csv\n", console.Quoted(c.Paper))
	return nil
}

// sensitivity judges a record again under each profile.
func sensitivity(ctx context.Context, a *console.App, r *store.Record) (list []report.Sensitivity, err error) {
	profiles := []rules.Profile{rules.Standard, rules.Strict, rules.Google, rules.REP1994}
	progress, end := a.Bar("judging again under each profile")
	result, err := replay.Judge(ctx, r, replay.Options{ParseRules: config.RecordedRules, Profiles: profiles, Progress: progress})
	end()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be judged again: %w", console.Quoted(r.Path), err)
	}
	for i, c := range result.Profiles {
		list = append(list, report.Sensitivity{Profile: profiles[i].String(), Judged: c.Judged, Allowed: c.Allowed, Refused: c.Refused, Otherwise: c.Otherwise})
	}
	return list, nil
}
