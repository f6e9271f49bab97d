package auditcmd

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/check/why"
	"heed/internal/output/console"
)

// AuditListCmd is `heed audit list`.
type AuditListCmd struct {
	recordFiles
	auditWindow
	Verdict string `placeholder:"WORD" help:"Select one verdict: allow, refuse or would-refuse."`
	JSON    bool   `name:"json" help:"Print one JSON object per decision, with every field."`
}

// Run lists the decisions.
func (c *AuditListCmd) Run(a *console.App) error {
	if c.Verdict != "" && !slices.Contains([]string{"allow", "refuse", "would-refuse"}, c.Verdict) {
		return fmt.Errorf("--verdict: %q is not a verdict; write allow, refuse or would-refuse", c.Verdict)
	}
	f, err := c.filter(a.Now())
	if err != nil {
		return err
	}
	f.Verdict = c.Verdict
	records, err := c.open(a)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	gaps, err := replay.Gaps(ctx, records, f)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Stdout)
	encoder, paint := console.NewJSON(out), console.Colours(a.Environ, a.Stdout)
	printGaps := func(before time.Time) (err error) { // those that begin before a time; zero: all
		for ; len(gaps) > 0 && err == nil && (before.IsZero() || gaps[0].Gap.From.Before(before)); gaps = gaps[1:] {
			if c.JSON {
				err = encoder.Encode(gaps[0])
			} else {
				_, err = fmt.Fprintln(out, paint(console.Yellow, console.Printable(gaps[0].Gap.String())))
			}
		}
		return err
	}
	none := len(gaps) == 0
	err = replay.List(ctx, records, f, func(d *replay.Decision) error {
		none = false
		switch err := printGaps(d.Time); {
		case err != nil:
			return err
		case c.JSON:
			return encoder.Encode(d)
		}
		return printLine(out, paint, d)
	})
	if err == nil {
		err = printGaps(time.Time{})
	}
	if err == nil && none {
		fmt.Fprintln(a.Stderr, "heed: no decision was found")
	}
	return errors.Join(err, out.Flush())
}

// printLine writes a decision in one line.
func printLine(w io.Writer, paint console.Painter, d *replay.Decision) error {
	status := "-"
	if d.Outcome != nil {
		status = fmt.Sprint(d.Outcome.Status)
	}
	method := console.Quoted(d.Method)
	if strings.ContainsRune(method, ' ') { // not a token; without quotes it could imitate the other columns
		method = strconv.Quote(d.Method)
	}
	verdict := paint(why.Colour(d.Verdict.Verdict), fmt.Sprintf("%-12s", d.Verdict.Verdict))
	_, err := fmt.Fprintf(w, "%s %s %s %3s %s %s %s  %s\n", d.Time.Format("2006-01-02T15:04:05.000Z"), d.ID, verdict, status,
		console.Quoted(why.ClientName(d)), method, console.Quoted(cmp.Or(d.URL, "-")), why.ReasonText(&d.Verdict, console.ReasonText)+why.ResultText(d, console.ReasonText))
	return err
}
