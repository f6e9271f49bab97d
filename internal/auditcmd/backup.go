package auditcmd

import (
	"bufio"
	"errors"
	"fmt"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/config"
	"heed/internal/console"
	"heed/internal/safetext"
	"heed/internal/table"
)

// AuditBackupCmd is `heed audit backup`.
type AuditBackupCmd struct {
	config.FileFlags
	File string `placeholder:"FILE" help:"Copy this record (default: this heed's own)."`
	JSON bool   `name:"json" help:"Print the verification of the copy as a JSON object."`
	To   string `arg:"" name:"to" help:"The new file."`
}

// Help describes the copy and the exit status.
func (AuditBackupCmd) Help() string {
	return `Copies a record into one new file with no files beside it. The copy holds every
decision made before the backup; heed may continue to write. The copy is verified
before it gets its name. Only its owner can read it.

A backup and its original can be read together: reports and exports count each
decision once, and read pruned decisions from the backup.

Exit status: 0 when the copy was made, 1 when it lacks decisions in the tail of a
record that cannot be written to, or when the record is damaged and no copy was made, 2 when the copy cannot be written.

  heed audit backup audit-2026-03.db`
}

// Run copies the record and verifies the copy.
func (c *AuditBackupCmd) Run(a *console.App) error {
	from := recordFiles{FileFlags: c.FileFlags}
	if c.File != "" {
		from.Files = []string{c.File}
	}
	paths, err := from.paths(a)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	progress, end := a.Bar("copying " + console.Quoted(paths[0]))
	proof, err := store.Backup(ctx, paths[0], c.To, progress)
	end()
	if err != nil {
		return err
	}
	if c.JSON {
		err = console.PrintJSON(a.Stdout, []*store.Proof{proof})
	} else {
		err = printProof(a.Stdout, console.Colours(a.Environ, a.Stdout), proof)
	}
	if err == nil && proof.Whole && proof.Waiting > 0 {
		fmt.Fprintln(a.Stderr, "heed: the copy lacks decisions that wait in the tail of the record, which cannot be written")
		return console.Exit(console.ExitNo)
	}
	if err == nil && !proof.Whole {
		fmt.Fprintf(a.Stderr, "heed: the record is damaged, and there is no copy\nCopy its files by hand if you need them as they are\n")
		return console.Exit(console.ExitNo)
	}
	return err
}

// AuditExportCmd is `heed audit export`.
type AuditExportCmd struct {
	recordFiles
	auditWindow
	JSONL   bool   `xor:"form" required:"" name:"jsonl" help:"Print one JSON object per decision, without empty fields."`
	CSV     bool   `xor:"form" required:"" name:"csv" help:"Print a CSV table with every field."`
	Parquet string `xor:"form" required:"" hidden:""`
}

// Help describes the output.
func (AuditExportCmd) Help() string {
	return `Writes every decision with every recorded field, ordered by time. The columns are
those of the view "decisions" in the record. Times are RFC 3339 in UTC, to the
microsecond. Values that the record does not store ([audit] clients, redact) are
not exported. In CSV, a text that a spreadsheet could read as a formula is
preceded by an apostrophe.

  heed audit export --jsonl --since 1d | gzip > yesterday.jsonl.gz`
}

// Run writes the decisions to stdout.
func (c *AuditExportCmd) Run(a *console.App) error {
	if c.Parquet != "" {
		return errors.New("heed writes no Parquet\nWrite --csv or --jsonl, which DuckDB, pandas and R read and convert")
	}
	f, err := c.filter(a.Now())
	if err != nil {
		return err
	}
	records, err := c.openWhole(a)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	to := report.Lines(safetext.EscapingWriter{Writer: out})
	if c.CSV {
		to = table.NewWriter(out)
	}
	progress, end := a.Bar("writing decisions")
	defer end()
	if console.IsTerminal(a.Stdout) {
		progress = nil // the lines are progress enough
	}
	return errors.Join(report.Export(ctx, records, report.Query{Filter: f, Progress: progress}, to), out.Flush())
}
