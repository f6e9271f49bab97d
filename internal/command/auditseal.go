package command

import (
	"fmt"
	"time"

	"heed/internal/audit/store"
)

// AuditSealCmd is `heed audit seal`.
type AuditSealCmd struct {
	recordFiles
	JSON bool `name:"json" help:"Print one JSON object per file."`
}

// Help says what a head is good for and how it ends.
func (AuditSealCmd) Help() string {
	return `Verifies each record and prints its head: the hash of its last commit, from which
all that the record holds follows. Keep it where whoever could change the record
cannot: print it in a paper, mail it, sign it, have it timestamped. Later
heed audit verify --head shows that nothing up to there was changed or removed.

Exit status 0 when every record is whole, 1 when one is not, 2 when one cannot be
examined.

Example:

    heed audit seal audit.db > seal-2026-03.txt`
}

// Run prints the heads of records that are whole.
func (c *AuditSealCmd) Run(a *App) error {
	files, err := c.paths(a)
	if err != nil {
		return err
	}
	status := 0
	for _, file := range files {
		proof, err := prove(a, file, nil)
		switch {
		case err != nil:
			a.complain(err)
			status = exitUsage
			continue
		case !proof.Whole:
			fmt.Fprintf(a.Stderr, "heed: %s is damaged and has no head: %v\nSee `heed audit verify`\n", quoted(file), proof.Damage)
			status = max(status, exitNo)
			continue
		}
		if err := c.print(a, proof.Head); err != nil {
			return err
		}
	}
	if status != 0 {
		return Exit(status)
	}
	return nil
}

func (c *AuditSealCmd) print(a *App, h store.Head) error {
	if c.JSON {
		return printJSON(a.Stdout, []store.Head{h})
	}
	_, err := fmt.Fprintf(a.Stdout, "record    %s\ncommit    %d\nhash      %s\ntime      %s\nentries   %d\noutcomes  %d\n",
		h.Store, h.Commit, h.Hash, h.Time.Format(time.RFC3339), h.Entries, h.Outcomes)
	return err
}
