package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"heed/internal/audit/store"
)

// AuditBackupCmd is `heed audit backup`.
type AuditBackupCmd struct {
	File string `placeholder:"FILE" help:"The record to copy; this heed's own if none is named."`
	JSON bool   `name:"json" help:"Print what was verified of the copy as a JSON object."`
	To   string `arg:"" name:"to" help:"The new file."`
}

// Help says what is in the copy and how it ends.
func (AuditBackupCmd) Help() string {
	return `Copies a record into one new file that needs no other beside it: as it is at one
moment, with all that was decided before. A heed may go on writing to it. The copy
is verified before it gets its name, and only its owner can read it.

A backup beside its original counts nothing twice: reports and exports of both
read each decision once, and from the backup what the original has pruned since.

Exit status 0 when the copy is there, 1 when the record is damaged and there is no
copy, 2 when it cannot be made.

Example:

    heed audit backup audit-2026-03.db`
}

// Run copies.
func (c *AuditBackupCmd) Run(a *App) error {
	var from recordFiles
	if c.File != "" {
		from.Files = []string{c.File}
	}
	paths, err := from.paths(a)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	progress, end := a.bar("copying " + quoted(paths[0]))
	proof, err := store.Backup(ctx, paths[0], c.To, progress)
	end()
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(a.Stdout, []*store.Proof{proof})
	} else {
		err = printProof(a.Stdout, colours(a.Environ, a.Stdout), proof)
	}
	if err == nil && !proof.Whole {
		fmt.Fprintf(a.Stderr, "heed: the record is damaged, and there is no copy\nCopy its files by hand if you need them as they are\n")
		return Exit(exitNo)
	}
	return err
}
