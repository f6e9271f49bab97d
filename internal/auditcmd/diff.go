package auditcmd

import (
	"cmp"
	"errors"
	"io"

	"heed/internal/audit/compare"
	"heed/internal/audit/store"
	"heed/internal/check"
	"heed/internal/console"
	"heed/internal/why"
)

// AuditDiffCmd is `heed audit diff`.
type AuditDiffCmd struct {
	JSON bool `name:"json" help:"Print one JSON object with every difference."`

	A string `arg:"" name:"a" help:"The first record."`
	B string `arg:"" name:"b" help:"The second record."`
}

// Help describes what is compared and the exit status.
func (AuditDiffCmd) Help() string {
	return `Compares the requests of two records, such as one crawl on two days. Requests are the
same by agent, method and URL; repeated ones are compared in their order. Verdict,
reason, group and rule must be equal. Times, lines of robots.txt, the answers of
sites and hidden values in URLs are not compared.

Exit status: 0 when the records are equal, 1 when they differ, 2 when one cannot be
read.

  heed audit diff monday.db tuesday.db
  heed audit diff --json before.db after.db`
}

// Run compares the records and prints the differences.
func (c *AuditDiffCmd) Run(a *console.App) error {
	var records [2]*store.Record
	for i, file := range []string{c.A, c.B} {
		opened, err := (&recordFiles{Files: []string{file}}).openWhole(a)
		if err != nil {
			return err
		}
		if len(opened) == 0 {
			return errors.New(console.Quoted(file) + " has no decisions")
		}
		records[i] = opened[0]
	}
	ctx, stop := interruptible()
	defer stop()
	_, end := a.Bar("comparing")
	r, err := compare.Records(ctx, records[0], records[1])
	end()
	if err != nil {
		return err
	}
	if c.JSON {
		err = console.NewJSON(a.Stdout).Encode(r)
	} else {
		err = printDiff(a.Stdout, console.Colours(a.Environ, a.Stdout), r)
	}
	if err == nil && !r.EqualRecords() {
		err = console.Exit(console.ExitNo)
	}
	return err
}

// printDiff writes a comparison as text.
func printDiff(w io.Writer, paint console.Painter, r *compare.Result) error {
	p := &replayPrinter{paint: paint}
	word := paint(console.Green, "equal")
	if !r.EqualRecords() {
		word = paint(console.Red, "different")
	}
	p.line("%s  %s: %s, %s: %s", word, console.Quoted(r.A.File), console.Plural(uint64(r.A.Requests), "request"),
		console.Quoted(r.B.File), console.Plural(uint64(r.B.Requests), "request"))
	p.count(r.Equal, "have the same verdict, reason, group and rule")
	p.count(int64(len(r.Different)), "are decided differently")
	p.count(int64(len(r.OnlyA)), "only in "+console.Quoted(r.A.File))
	p.count(int64(len(r.OnlyB)), "only in "+console.Quoted(r.B.File))
	listed(p, r.Different, func(x *compare.Change) {
		p.request("~", &x.Request)
		p.line("      - %s", why.VerdictText(&x.A))
		p.line("      + %s", why.VerdictText(&x.B))
	})
	for i, singles := range [][]compare.Single{r.OnlyA, r.OnlyB} {
		listed(p, singles, func(x *compare.Single) {
			p.request([]string{"-", "+"}[i], &x.Request)
			p.line("        %s", why.VerdictText(&x.Verdict))
		})
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// listed prints the first of a list, and the number of the others.
func listed[T any](p *replayPrinter, all []T, print func(*T)) {
	for i := range all {
		if i == check.MaxListed {
			p.line("  and %d more; --json lists them", len(all)-i)
			return
		}
		print(&all[i])
	}
}

func (p *replayPrinter) request(mark string, q *compare.Request) {
	p.line("  %s %s %s %s", mark, console.Quoted(q.Agent), console.Quoted(q.Method), console.Quoted(cmp.Or(q.URL, "(unknown host)")))
}
