package report

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"heed/internal/judge/reason"
	"heed/internal/output/table"
)

// cubeColumns are the columns of WriteCSV; the first is named as Report.By is.
var cubeColumns = []string{
	"agent", "site", "judged", "verdict", "reason", "group", "rule", "line", "exception",
	"requests", "site_refused", "outcome_unknown", "bytes", "bytes_in", "waited", "waited_s", "turns_s", "waited_longest_s", "first", "last",
}

// WriteCSV writes one row per agent, site and way of deciding, of which all
// other numbers of the report are sums, but those by purpose; with conduct asked for,
// one row per agent and site instead, and with Query.Use the chapter by purpose.
func (r *Report) WriteCSV(out io.Writer) error {
	var w *table.Writer
	classes, _ := r.Total.byClass()
	switch {
	case r.Query.Use:
		w = table.NewWriter(out, useColumns...)
		r.Use.csv(w)
	case r.Query.Conduct:
		w = table.NewWriter(out, slices.Concat([]string{r.By}, conductColumns[1:], classes)...)
		r.conductCSV(w)
	default:
		w = table.NewWriter(out, slices.Concat([]string{r.By}, cubeColumns[1:], classes)...)
		r.cubeCSV(w)
	}
	return w.Flush()
}

func (r *Report) cubeCSV(w *table.Writer) {
	for i := range r.cube {
		d, n := &r.cube[i].deciding, &r.cube[i].counts
		_, classes := n.byClass()
		_ = w.Row(append([]any{ // Flush has its error
			d.Agent, d.Site, d.Judged, d.Verdict, d.Reason, d.Group, d.Rule, d.Line, d.Settled,
			n.Requests, n.SiteRefused, n.Unknown, n.Bytes, n.BytesIn, n.Waited, n.WaitedTotal.float(), n.TurnsTotal.float(), n.WaitedMost.float(), microStamp(n.First), microStamp(n.Last),
		}, classes...)...)
	}
}

// conductColumns are the columns of WriteCSV when conduct is asked for.
var conductColumns = []string{
	"agent", "site", "requests", "allowed", "refused", "would_refuse", "not_judged",
	"robots_asked", "robots_first", "robots_last", "robots_before_pages", "breach_share",
	"gaps", "gap_asked_median_s", "gap_asked_p5_s", "gap_asked_kept_share",
	"gap_sent_median_s", "gap_sent_p5_s", "gap_sent_kept_share", "crawl_delay_s",
	"fastest_minute", "repeated", "user_agents",
	"pages_judged", "breaches", "breach_low", "breach_high",
	"gap_asked_limited", "gap_asked_kept", "gap_asked_kept_low", "gap_asked_kept_high",
	"gap_sent_limited", "gap_sent_kept", "gap_sent_kept_low", "gap_sent_kept_high",
}

func (r *Report) conductCSV(w *table.Writer) {
	for i := range r.Conduct {
		d := &r.Conduct[i]
		_, classes := d.byClass()
		robots := [2]any{}
		if d.RobotsAsked > 0 {
			robots = [2]any{microStamp(*d.RobotsFirst), microStamp(*d.RobotsLast)}
		}
		_ = w.Row(slices.Concat([]any{
			d.Agent, d.Site, d.Requests, d.Allowed, d.Refused, d.WouldRefuse, d.NotJudged, d.RobotsAsked, robots[0], robots[1], d.RobotsBeforePages, share(d.Breaches, d.Pages),
			d.Asked.N, maybeSeconds(d.Asked.Median), maybeSeconds(d.Asked.P5), share(d.Asked.KeptCount, d.Asked.Limited),
			maybeSeconds(d.Sent.Median), maybeSeconds(d.Sent.P5), share(d.Sent.KeptCount, d.Sent.Limited), maybeSeconds(d.Sent.Delay),
			d.Fastest, d.Repeated, strings.Join(d.Agents, " | "),
		}, countCells(d.Breaches, d.Pages), countCells(d.Asked.KeptCount, d.Asked.Limited), countCells(d.Sent.KeptCount, d.Sent.Limited), classes)...)
	}
}

// countCells returns of how many a share is, its part, and the bounds of its interval.
func countCells(part, all int64) []any {
	return append([]any{all, part}, table.Ratio{Part: part, Of: all}.Cells()[1:]...)
}

// byClass returns the numbers by class, and the names of their columns.
func (c *Counts) byClass() (names []string, cells []any) {
	for _, k := range reason.Classes() {
		names, cells = append(names, "class_"+k.Key()), append(cells, c.Classes[k])
	}
	for _, k := range reason.WouldBeClasses() {
		names, cells = append(names, "would_be_"+k.Key()), append(cells, c.WouldBe[k])
	}
	return names, cells
}

// share returns the share of a part as a cell; nil of none.
func share(part, all int64) any { return table.Ratio{Part: part, Of: all}.Cells()[0] }

func maybeSeconds(s *Seconds) any {
	if s == nil {
		return nil
	}
	return s.float()
}

// microStamp writes a time with its microseconds.
func microStamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// WriteJSON writes the report as one JSON object. What cannot be seen in texts
// of clients and sites is for w to escape.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
