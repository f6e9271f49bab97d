package command

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/signal"

	"heed/internal/audit/report"
)

// AuditExportCmd is `heed audit export`.
type AuditExportCmd struct {
	recordFiles
	auditWindow
	JSONL bool `xor:"form" required:"" name:"jsonl" help:"One JSON object per line and decision; fields without a value are left out."`
	CSV   bool `xor:"form" required:"" name:"csv" help:"A table with every field."`
}

// Help says what is written.
func (AuditExportCmd) Help() string {
	return `Writes every decision with every field that is recorded of it, by time, for other
programs: the columns are those of the view "decisions" in the record. Times are
RFC 3339 in UTC, to the microsecond; what was not kept of clients and queries
([audit] clients, redact) is not there either. In CSV a text that a program for
tables might take for a formula has a ' before it.

  heed audit export --jsonl --from 1d | gzip > yesterday.jsonl.gz`
}

// Run writes the decisions to stdout.
func (c *AuditExportCmd) Run(a *App) error {
	q, err := c.query(a.Now())
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
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	to := report.Lines(visible{out})
	if c.CSV {
		to = report.Table(out)
	}
	progress, end := a.bar("writing decisions")
	defer end()
	if q.Progress = progress; isTerminal(a.Stdout) {
		q.Progress = nil // the lines are progress enough
	}
	return errors.Join(report.Export(ctx, records, q, to), out.Flush())
}
