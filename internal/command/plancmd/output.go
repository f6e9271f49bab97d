package plancmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"heed/internal/analysis/plan"
	"heed/internal/check/why"
	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/output/console"
	"heed/internal/output/figures"
	"heed/internal/output/table"
)

// output prints a plan: sites as they are done, and the total.
type output struct {
	*PlanCmd
	w      *bufio.Writer
	csv    *table.Writer
	layout *table.Layout
	stderr io.Writer

	beside func(func()) // prints beside the progress
	end    func()       // of the progress
}

// summary is what is printed at the end.
type summary struct {
	Totals []plan.Total `json:"total"`
	plan.Progress
	Left        int64          `json:"not_judged"` // pages
	Interrupted bool           `json:"interrupted"`
	Problems    []plan.Problem `json:"problems"`
}

func (c *PlanCmd) output(a *console.App) *output {
	o := &output{PlanCmd: c, w: bufio.NewWriter(a.Stdout), stderr: a.Stderr}
	shown, widths := o.shown(), []int{30}
	if len(c.Agent) > 1 {
		widths = append(widths, 16)
	}
	o.layout = table.NewLayout(shown...).AtLeast(append(widths, 12, 9, 9, 9, 7, 8)...)
	return o
}

// columns are those of --csv.
var columns = []table.Column{
	{Name: "site", Head: "site"}, {Name: "agent", Head: "agent"}, {Name: "robots", Head: "robots.txt"},
	{Name: "pages", Head: "pages", Kind: table.Count}, {Name: "allowed", Head: "allowed", Kind: table.Count}, {Name: "refused", Head: "refused", Kind: table.Count},
	{Name: "delay", Head: "delay", Kind: table.Seconds}, {Name: "time", Head: "time", Kind: table.Seconds},
	{Name: "refused_by_rule", Kind: table.Count}, {Name: "refused_by_statement", Kind: table.Count}, {Name: "refused_by_operator", Kind: table.Count},
	{Name: "rules_unavailable", Kind: table.Count}, {Name: "failed", Kind: table.Count}, {Name: "requested", Kind: table.Count},
	{Name: "delay_by"}, {Name: "max_wait", Kind: table.Seconds}, {Name: "age", Kind: table.Seconds}, {Name: "robots_url"}, {Name: "causes"},
}

// lastShown is how many of columns people see.
const lastShown = 8

// row returns the values of columns.
func row(s *plan.Site, c *plan.Column) []any {
	d := delayOf(c)
	causes, _ := c.Causes()
	var each []string
	for i := range causes {
		each = append(each, fmt.Sprintf("%d: %s", causes[i].Pages, causeText(&causes[i])))
	}
	n := func(k reason.Class) int64 { return c.Counts[k] }
	return []any{
		s.Origin, c.Agent, robotsText(c), c.Pages(), c.Pages() - c.Refused(), c.Refused(), unlessZero(c.Delay()), unlessZero(c.Seconds()),
		n(reason.RefusedByRule), n(reason.RefusedByStatement), n(reason.RefusedByOperator),
		n(reason.RulesUnavailable), n(reason.Failed), c.Requested(),
		why.DelayBy(c.First), d.MaxWait, tidy(c.First.Age), c.First.Robots, strings.Join(each, "; "),
	}
}

// unlessZero returns seconds as a cell; nil for none.
func unlessZero(s float64) any {
	if s == 0 {
		return nil
	}
	return tidy(s)
}

// tidy rounds seconds to thousandths.
func tidy(s float64) float64 { return math.Round(s*1000) / 1000 }

// selected returns the values that people see: without the agent when there is one.
func selected[T any](o *output, all []T) []T {
	if all = all[:lastShown]; len(o.Agent) == 1 {
		return append([]T{all[0]}, all[2:]...)
	}
	return all
}

func (o *output) shown() []table.Column { return selected(o, columns) }

// head prints the heads of the columns.
func (o *output) head() {
	switch {
	case o.JSON, o.Quiet:
	case o.CSV:
		o.csv = table.NewWriter(o.w, table.Names(columns)...)
	default:
		fmt.Fprintln(o.w, o.layout.Head())
	}
}

// siteLine is a line of --json.
type siteLine struct {
	Site        string         `json:"site"`
	Agent       string         `json:"agent"`
	Robots      string         `json:"robots,omitempty"` // its URL; empty: it was not needed
	State       string         `json:"state,omitempty"`
	By          string         `json:"by,omitempty"`
	Age         float64        `json:"age"`
	Stale       bool           `json:"stale,omitempty"`
	Unavailable string         `json:"unavailable,omitempty"`
	Partial     bool           `json:"partial,omitempty"` // interrupted: not all pages were judged
	Pages       int64          `json:"pages"`
	Allowed     int64          `json:"allowed"`
	Refused     int64          `json:"refused"`
	Observed    bool           `json:"observed,omitempty"`
	Counts      reason.Counts  `json:"counts"`
	Causes      []plan.Cause   `json:"causes"`
	Others      int64          `json:"other_causes,omitempty"` // pages
	Delay       *control.Delay `json:"delay,omitempty"`
	Requested   int64          `json:"requested"`
	Seconds     float64        `json:"seconds"`
}

// site prints a site that is done.
func (o *output) site(s *plan.Site) (err error) {
	if o.Quiet {
		return nil
	}
	var above []string // the lines about the agent before
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case o.JSON:
			causes, others := c.Causes()
			err = console.NewJSON(o.w).Encode(siteLine{
				s.Origin, c.Agent, c.First.Robots, c.First.State, c.First.By, c.First.Age, c.First.Stale, c.Unavailable, s.Partial, c.Pages(),
				c.Pages() - c.Refused(), c.Refused(), c.Observed, c.Counts, append([]plan.Cause{}, causes...), others, c.First.Delay, c.Requested(), tidy(c.Seconds()),
			})
		case o.CSV:
			err = o.csv.Row(row(s, c)...)
		default:
			above, err = o.text(s, i, above)
		}
		if err != nil {
			return err
		}
	}
	o.beside(func() {
		if o.CSV {
			err = o.csv.Flush()
		}
		err = errors.Join(err, o.w.Flush())
	})
	return err
}

// total prints the end.
func (o *output) total(s *summary) error {
	var err error
	switch {
	case o.Quiet:
		return nil
	case o.JSON:
		err = console.NewJSON(o.w).Encode(s)
	case o.CSV:
		problemsText(o.stderr, "heed: ", s)
		err = o.csv.Flush()
	default:
		o.totalText(s)
	}
	return errors.Join(err, o.w.Flush())
}

// words describes the progress. waiting is what is waited for; empty: nothing.
func words(p plan.Progress, waiting string) string {
	text := fmt.Sprintf("%s read, %s judged; %s of %s done", figures.Number(p.URLs, "page"), figures.Commas(p.Judged), figures.Commas(p.Done), figures.Number(p.Sites, "site"))
	if waiting != "" {
		text += "; " + waiting
	}
	if p.Sites == 0 || p.Done == 0 {
		return text
	}
	const width = 20
	filled := int(width * p.Done / p.Sites)
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", width-filled) + "] " + text
}
