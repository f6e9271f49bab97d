package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/measure"
	"heed/internal/reason"
	"heed/internal/safetext"
)

// cubeColumns are the columns of WriteCSV; the first is named as Report.By is.
var cubeColumns = []string{
	"agent", "site", "judged", "verdict", "reason", "group", "rule", "line", "exception",
	"requests", "site_refused", "outcome_unknown", "bytes", "bytes_in", "waited", "waited_s", "waited_longest_s", "first", "last",
}

// WriteCSV writes one row per agent, site and way of deciding, of which all
// other numbers of the report are sums, but those by purpose; with conduct asked for,
// one row per agent and site instead, and with Query.Use the chapter by purpose.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	switch {
	case r.Query.Use:
		r.Use.csv(c)
	case r.Query.Conduct:
		r.conductCSV(c)
	default:
		r.cubeCSV(c)
	}
	c.Flush()
	return c.Error()
}

func (r *Report) cubeCSV(c *csv.Writer) {
	_ = c.Write(append([]string{r.By}, append(cubeColumns[1:], classColumns()...)...)) // the writer keeps its error
	for i := range r.cube {
		d, n := &r.cube[i].deciding, &r.cube[i].counts
		_ = c.Write(append([]string{
			plain(d.Agent), plain(d.Site), plain(d.Judged), plain(d.Verdict), plain(d.Reason), plain(d.Group), plain(d.Rule), whole(d.Line), plain(d.Settled),
			whole(n.Requests), whole(n.SiteRefused), whole(n.Unknown), whole(n.Bytes), whole(n.BytesIn), whole(n.Waited), decimal(n.WaitedTotal.float()), decimal(n.WaitedMost.float()),
			microStamp(n.First), microStamp(n.Last),
		}, n.classCells()...))
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

func (r *Report) conductCSV(c *csv.Writer) {
	_ = c.Write(append([]string{r.By}, append(conductColumns[1:], classColumns()...)...))
	for i := range r.Conduct {
		d := &r.Conduct[i]
		robots := [2]string{}
		if d.RobotsAsked > 0 {
			robots = [2]string{microStamp(*d.RobotsFirst), microStamp(*d.RobotsLast)}
		}
		counts := slices.Concat(countCells(d.Breaches, d.Pages), countCells(d.Asked.KeptCount, d.Asked.Limited), countCells(d.Sent.KeptCount, d.Sent.Limited))
		_ = c.Write(slices.Concat([]string{
			plain(d.Agent), plain(d.Site), whole(d.Requests), whole(d.Allowed), whole(d.Refused), whole(d.WouldRefuse), whole(d.NotJudged),
			whole(d.RobotsAsked), robots[0], robots[1], strconv.FormatBool(d.RobotsBeforePages), maybe(d.BreachShare),
			whole(d.Asked.N), maybeSeconds(d.Asked.Median), maybeSeconds(d.Asked.P5), maybe(d.Asked.Kept),
			maybeSeconds(d.Sent.Median), maybeSeconds(d.Sent.P5), maybe(d.Sent.Kept), maybeSeconds(d.Sent.Delay),
			whole(d.Fastest), whole(d.Repeated), plain(strings.Join(d.Agents, " | ")),
		}, counts, d.classCells()))
	}
}

// countCells returns of how many a share is, its part, and the bounds of its interval.
func countCells(part, all int64) []string {
	if all == 0 {
		return []string{"0", "0", "", ""}
	}
	return append([]string{whole(all), whole(part)}, shareCells(part, all)[1:]...)
}

// shareCells returns a share and the bounds of its interval; they are empty where all is 0.
func shareCells(part, all int64) []string {
	if all == 0 {
		return []string{"", "", ""}
	}
	low, high := measure.Wilson(part, all)
	return []string{decimal(float64(part) / float64(all)), decimal(low), decimal(high)}
}

// classColumns returns the names of the columns of classCells.
func classColumns() (all []string) {
	for _, k := range reason.Classes() {
		all = append(all, "class_"+k.Key())
	}
	for _, k := range reason.WouldBeClasses() {
		all = append(all, "would_be_"+k.Key())
	}
	return all
}

// classCells returns the numbers by class.
func (c *Counts) classCells() (all []string) {
	for _, k := range reason.Classes() {
		all = append(all, whole(c.Classes[k]))
	}
	for _, k := range reason.WouldBeClasses() {
		all = append(all, whole(c.WouldBe[k]))
	}
	return all
}

// plain keeps a text of a client or a site from being taken for a formula by a
// program that opens tables, and its control characters from being obeyed.
func plain(s string) string {
	s = safetext.Visible(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// maybe writes a number; nothing for nil.
func maybe(f *float64) string {
	if f == nil {
		return ""
	}
	return decimal(*f)
}

func maybeSeconds(s *Seconds) string {
	if s == nil {
		return ""
	}
	return decimal(s.float())
}

// microStamp writes a time with its microseconds.
func microStamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
