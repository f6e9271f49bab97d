package auditcmd

import (
	"bufio"
	"errors"
	"fmt"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/base/safetext"
	"heed/internal/config"
	"heed/internal/output/console"
	"heed/internal/output/table"
)

// AuditBackupCmd is `heed audit backup`.
type AuditBackupCmd struct {
	config.FileFlags
	File string `placeholder:"FILE" help:"Copy this record (default: this heed's own)."`
	JSON bool   `name:"json" help:"Print the verification of the copy as a JSON object."`
	To   string `arg:"" name:"to" help:"The new file."`
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
	JSONL bool `xor:"form" required:"" name:"jsonl" help:"Print one JSON object per decision, without empty fields."`
	CSV   bool `xor:"form" required:"" name:"csv" help:"Print a CSV table with every field."`
}

// Run writes the decisions to stdout.
func (c *AuditExportCmd) Run(a *console.App) error {
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
