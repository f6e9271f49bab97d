package auditcmd

import (
	"cmp"
	"errors"
	"io"

	"heed/internal/audit/compare"
	"heed/internal/audit/store"
	"heed/internal/check/why"
	"heed/internal/output/console"
)

// AuditDiffCmd is `heed audit diff`.
type AuditDiffCmd struct {
	IgnoreAgent bool `xor:"by" help:"Compare the requests of different agents, by method and URL."`
	ByURL       bool `xor:"by" name:"by-url" help:"Compare by the URL alone, each once, whatever agents and methods."`
	JSON        bool `name:"json" help:"Print one JSON object with every difference."`

	A string `arg:"" name:"a" help:"The first record."`
	B string `arg:"" name:"b" help:"The second record."`
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
	r, err := compare.Records(ctx, records[0], records[1], compare.Options{IgnoreAgent: c.IgnoreAgent, ByURL: c.ByURL})
	end()
	if err != nil {
		return err
	}
	if c.JSON {
		err = console.NewJSON(a.Stdout).Encode(r)
	} else {
		err = printDiff(a.Stdout, console.Colours(a.Environ, a.Stdout), r, c.IgnoreAgent || c.ByURL)
	}
	if err == nil && !r.EqualRecords() {
		err = console.Exit(console.ExitNo)
	}
	return err
}

// printDiff writes a comparison as text.
func printDiff(w io.Writer, paint console.Painter, r *compare.Result, byVerdict bool) error {
	p := &replayPrinter{paint: paint}
	word := paint(console.Green, "equal")
	if !r.EqualRecords() {
		word = paint(console.Red, "different")
	}
	p.line("%s  %s: %s, %s: %s", word, console.Quoted(r.A.File), console.Plural(uint64(r.A.Requests), "request"),
		console.Quoted(r.B.File), console.Plural(uint64(r.B.Requests), "request"))
	p.line("  %9d  in both, of these %d allowed to one and refused to the other", r.Both, r.AllowedA+r.AllowedB)
	p.count(r.AllowedA, "allowed only in "+console.Quoted(r.A.File))
	p.count(r.AllowedB, "allowed only in "+console.Quoted(r.B.File))
	equal := "have the same verdict, reason, group and rule"
	if byVerdict {
		equal = "have the same verdict"
	}
	p.count(r.Equal, equal)
	p.count(int64(len(r.Different)), "are decided differently")
	p.count(int64(len(r.OnlyA)), "only in "+console.Quoted(r.A.File))
	p.count(int64(len(r.OnlyB)), "only in "+console.Quoted(r.B.File))
	if r.Both == 0 && len(r.OnlyA) > 0 && len(r.OnlyB) > 0 && !byVerdict {
		p.line("  Requests are compared by agent, method and URL; --ignore-agent leaves the agent out")
	}
	more := func(n int) { p.line("  and %d more; --json lists them", n) }
	why.Listed(r.Different, func(_ int, x *compare.Change) {
		p.request("~", &x.Request)
		p.line("      - %s", verdictText(&x.A))
		p.line("      + %s", verdictText(&x.B))
	}, more)
	for i, singles := range [][]compare.Single{r.OnlyA, r.OnlyB} {
		why.Listed(singles, func(_ int, x *compare.Single) {
			p.request([]string{"-", "+"}[i], &x.Request)
			p.line("        %s", verdictText(&x.Verdict))
		}, more)
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// verdictText returns a verdict in one line.
func verdictText(v *store.Verdict) string {
	if v.Verdict == compare.Mixed {
		return "allowed at times and refused at others"
	}
	return why.VerdictText(v, console.ReasonText)
}

func (p *replayPrinter) request(mark string, q *compare.Request) {
	text := "  " + mark
	for _, part := range []string{q.Agent, q.Method, cmp.Or(q.URL, "(unknown host)")} {
		if part != "" {
			text += " " + console.Quoted(part)
		}
	}
	p.line("%s", text)
}
