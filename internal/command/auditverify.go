package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"heed/internal/audit/store"
)

// AuditVerifyCmd is `heed audit verify`.
type AuditVerifyCmd struct {
	recordFiles
	Head string `placeholder:"HASH|FILE" help:"A head that was noted down, or a file with what heed audit seal printed: it has to be in the chain."`
	JSON bool   `name:"json" help:"Print one JSON object per file."`
}

// Help says what is proved and how it ends.
func (AuditVerifyCmd) Help() string {
	return `Reads each record whole and holds it against its chain of hashes: every row, every
value, the bytes of every robots.txt, what rows refer to, and the layout. A value
that was changed, a row that was added, exchanged or removed is found and named,
with all that follows from it. A heed may be writing to the record meanwhile.

Two things the chain alone cannot show: that its end was cut off, and that all of
it was made anew. A head that was noted down elsewhere in time shows both: see
heed audit seal, and --head.

Exit status 0 when every record is whole, 1 when one is not, 2 when one cannot be
examined.

Examples:

    heed audit verify
    heed audit verify --head seal-2026-03.txt audit.db`
}

// Run verifies, and says what was found.
func (c *AuditVerifyCmd) Run(a *App) error {
	files, err := c.paths(a)
	if err != nil {
		return err
	}
	seal, err := readHead(c.Head)
	if err != nil {
		return err
	}
	if seal != nil && len(files) > 1 {
		return errors.New("a head belongs to one record\nName one file with --head")
	}
	status := 0
	for _, file := range files {
		proof, err := prove(a, file, seal)
		switch {
		case err != nil:
			a.complain(err)
			status = exitUsage
			continue
		case !proof.Whole && status == 0:
			status = exitNo
		}
		if err := c.print(a, proof); err != nil {
			return err
		}
	}
	if status != 0 {
		return Exit(status)
	}
	return nil
}

// readHead reads what --head names: a hash, else a file; nil: nothing.
func readHead(head string) (*store.Seal, error) {
	if head == "" {
		return nil, nil
	}
	if seal, err := store.ReadSeal([]byte(head)); err == nil {
		return seal, nil
	}
	text, err := os.ReadFile(head)
	if err != nil {
		return nil, fmt.Errorf("%s is neither a hash of 64 hexadecimal digits nor a file that can be read: %w", quoted(head), errors.Unwrap(err))
	}
	seal, err := store.ReadSeal(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no seal: %w", quoted(head), err)
	}
	return seal, nil
}

// prove verifies one record, with a bar.
func prove(a *App, file string, seal *store.Seal) (*store.Proof, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	progress, end := a.bar("verifying " + quoted(file))
	defer end()
	return store.Verify(ctx, file, seal, progress)
}

func (c *AuditVerifyCmd) print(a *App, p *store.Proof) error {
	if c.JSON {
		return printJSON(a.Stdout, []*store.Proof{p})
	}
	return printProof(a.Stdout, colours(a.Environ, a.Stdout), p)
}

// printProof writes for a person.
func printProof(w io.Writer, paint painter, p *store.Proof) error {
	word := paint(green, "whole  ")
	if !p.Whole {
		word = paint(red, "damaged")
	}
	lines := []string{word + "  " + quoted(p.File)}
	if p.Damage != nil {
		lines = append(lines, p.Damage.Error(), p.Damage.Means)
	}
	lines = append(lines, holds(p))
	if p.Pruned != nil {
		lines = append(lines, "pruned before: "+pruned(p.Pruned))
	}
	if p.Sealed != nil && p.Sealed.Found {
		lines = append(lines, fmt.Sprintf("the sealed head is in the chain: commit %d", p.Sealed.Commit))
	}
	if p.Head.Commit > 0 {
		lines = append(lines, fmt.Sprintf("good up to commit %d of %s, head %s", p.Head.Commit, p.Head.Time.Format(time.RFC3339), p.Head.Hash))
	}
	for _, remark := range p.Remarks {
		lines = append(lines, paint(yellow, "note")+": "+remark)
	}
	for i, line := range lines {
		if i > 0 {
			line = "         " + line
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// holds says what was read of a record.
func holds(p *store.Proof) string {
	text := fmt.Sprintf("%s, %s and %s in %s", plural(uint64(p.Rows["entry"]), "decision"), plural(uint64(p.Rows["outcome"]), "outcome"),
		plural(uint64(p.Rows["body"]), "robots.txt file"), plural(uint64(p.Commits), "commit"))
	if !p.From.IsZero() {
		text += ", from " + p.From.Format(time.RFC3339) + " to " + p.To.Format(time.RFC3339)
	}
	if !p.Whole {
		text = "read: " + text
	}
	return text
}

// pruned says what was removed from a record.
func pruned(r *store.Removed) string {
	text := fmt.Sprintf("%s and %s in %s", plural(uint64(r.Entries), "decision"), plural(uint64(r.Outcomes), "outcome"), plural(uint64(r.Commits), "commit"))
	if !r.From.IsZero() {
		text += ", from " + r.From.Format(time.RFC3339) + " to " + r.To.Format(time.RFC3339)
	}
	return text
}
