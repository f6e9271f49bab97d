package auditcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"heed/internal/audit/store"
	"heed/internal/output/console"
)

// AuditVerifyCmd is `heed audit verify`.
type AuditVerifyCmd struct {
	recordFiles
	Head []string `placeholder:"HASH|FILE" help:"Require this head, which may be repeated: a hash, or what seal printed."`
	Key  string   `placeholder:"KEY|FILE" help:"Require that this key signed the heads (heed audit key)."`
	JSON bool     `name:"json" help:"Print one JSON object per file."`
}

// Run verifies the records and prints the results.
func (c *AuditVerifyCmd) Run(a *console.App) error {
	files, err := c.paths(a)
	if err != nil {
		return err
	}
	seals, err := c.heads()
	if err != nil {
		return err
	}
	if seals != nil && len(files) > 1 {
		return errors.New("a head belongs to one record\nName one file with --head")
	}
	return verifyAll(a, files, seals, func(p *store.Proof) error {
		if c.JSON {
			return console.PrintJSON(a.Stdout, []*store.Proof{p})
		}
		return printProof(a.Stdout, console.Colours(a.Environ, a.Stdout), p)
	})
}

// heads reads the values of --head, hashes or names of files.
func (c *AuditVerifyCmd) heads() (seals []*store.Seal, err error) {
	key, err := readKey(c.Key)
	if err != nil {
		return nil, err
	}
	if key != "" && c.Head == nil {
		return nil, errors.New("--key is the key that signed a head\nName what `heed audit seal` printed with --head")
	}
	for _, head := range c.Head {
		text := []byte(head)
		seal, err := store.ReadSeal(text)
		if err != nil {
			if text, err = os.ReadFile(head); err != nil {
				return nil, fmt.Errorf("%s is neither a hash of 64 hexadecimal digits nor a file that can be read: %w", console.Quoted(head), errors.Unwrap(err))
			}
			text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) // as Windows and mail write it
			seal, err = store.ReadSeal(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s is not a seal: %w", console.Quoted(head), err)
		}
		if key != "" {
			if _, err = store.OpenCheckpoint(string(text), key); err != nil {
				return nil, fmt.Errorf("%s does not fit --key: %w\nName with --key what `heed audit key` prints where the record was sealed", console.Quoted(head), err)
			}
		}
		seals = append(seals, seal)
	}
	return seals, nil
}

// verifyAll verifies the records and calls print with each result. The error is the
// exit status when a record is damaged or cannot be read.
func verifyAll(a *console.App, files []string, seals []*store.Seal, print func(*store.Proof) error) error {
	status := 0
	for _, file := range files {
		proof, err := verifyFile(a, file, seals)
		if err != nil {
			a.Complain(err)
			status = console.ExitUsage
			continue
		}
		if !proof.Whole {
			status = max(status, console.ExitNo)
		}
		if err := print(proof); err != nil {
			return err
		}
	}
	if status != 0 {
		return console.Exit(status)
	}
	return nil
}

// verifyFile verifies one record, with a progress bar.
func verifyFile(a *console.App, file string, seals []*store.Seal) (*store.Proof, error) {
	ctx, stop := interruptible()
	defer stop()
	progress, end := a.Bar("verifying " + console.Quoted(file))
	defer end()
	return store.Verify(ctx, file, seals, progress)
}

// printProof writes the result of a verification as text.
func printProof(w io.Writer, paint console.Painter, p *store.Proof) error {
	word := paint(console.Green, "whole  ")
	if !p.Whole {
		word = paint(console.Red, "damaged")
	}
	lines := []string{word + "  " + console.Quoted(p.File)}
	if p.Damage != nil {
		lines = append(lines, p.Damage.Error(), p.Damage.Means)
	}
	lines = append(lines, holds(p))
	if p.Follows != "" {
		lines = append(lines, "continues "+console.Printable(p.Follows))
	}
	if p.Pruned != nil {
		lines = append(lines, "pruned before: "+pruned(p.Pruned))
		if p.Hashes > 0 {
			lines = append(lines, "hashes kept of it: "+console.Plural(uint64(p.Hashes), "octet"))
		}
	}
	for _, s := range p.Sealed {
		where := fmt.Sprintf("in the record: commit %d", s.Commit)
		if s.Commit == 0 {
			where = "that of the record which this one continues"
		}
		if s.Found {
			lines = append(lines, "the sealed head is "+where)
		}
	}
	if p.Head.Commit > 0 {
		lines = append(lines, fmt.Sprintf("good up to commit %d of %s, head %s", p.Head.Commit, p.Head.Time.Format(time.RFC3339), p.Head.Hash))
	}
	if p.Waiting > 0 {
		lines = append(lines, paint(console.Yellow, "waiting")+": "+console.Plural(uint64(p.Waiting), "decision")+" only in its tail; a running heed adds them within a second, the next start otherwise")
	}
	for _, g := range p.Gaps {
		lines = append(lines, paint(console.Yellow, "unrecorded")+": "+console.Printable(g.String()))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n         "))
	return err
}

// holds returns what was read of a record.
func holds(p *store.Proof) string {
	entries, outcomes := console.Plural(uint64(p.Rows["entry"]), "decision"), console.Plural(uint64(p.Rows["outcome"]), "outcome")
	rows := "read: " + entries + " and " + outcomes
	if p.Whole {
		rows = entries + ", " + outcomes + " and " + console.Plural(uint64(p.Files), "distinct robots.txt file")
	}
	return rows + " in " + console.Plural(uint64(p.Commits), "commit") + during(p.From, p.To)
}

// pruned returns what was removed from a record.
func pruned(r *store.Removed) string {
	return fmt.Sprintf("%s and %s in %s", console.Plural(uint64(r.Entries), "decision"), console.Plural(uint64(r.Outcomes), "outcome"), console.Plural(uint64(r.Commits), "commit")) + during(r.From, r.To)
}

// during returns the time of decisions, with a comma before it; empty for none.
func during(from, to time.Time) string {
	if from.IsZero() {
		return ""
	}
	return ", from " + from.Format(time.RFC3339) + " to " + to.Format(time.RFC3339)
}

// AuditSealCmd is `heed audit seal`.
type AuditSealCmd struct {
	recordFiles
	JSON bool `name:"json" help:"Print one JSON object per file."`
}

// Run prints the heads of records that are whole.
func (c *AuditSealCmd) Run(a *console.App) error {
	files, err := c.paths(a)
	if err != nil {
		return err
	}
	for _, file := range files {
		if waiting, err := store.Completed(context.Background(), file); err == nil && waiting > 0 {
			return fmt.Errorf("%s has no head yet: it lacks %s of its tail, and cannot be written to\nRun this again where it can", console.Quoted(file), console.Plural(uint64(waiting), "decision"))
		}
	}
	return verifyAll(a, files, nil, func(p *store.Proof) error {
		h := p.Head
		switch {
		case !p.Whole:
			_, err = fmt.Fprintf(a.Stderr, "heed: %s is damaged and has no head: %v\nSee `heed audit verify`\n", console.Quoted(p.File), p.Damage)
		case p.Layout >= 4:
			err = c.printCheckpoint(a, &h)
		case c.JSON:
			err = console.PrintJSON(a.Stdout, []store.Head{h})
		default:
			_, err = fmt.Fprintf(a.Stdout, "record    %s\ncommit    %d\nhash      %s\ntime      %s\nentries   %d\noutcomes  %d\n",
				h.Store, h.Commit, h.Hash, h.Time.Format(time.RFC3339), h.Entries, h.Outcomes)
		}
		return err
	})
}
