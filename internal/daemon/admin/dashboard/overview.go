package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/audit/replay"
	"heed/internal/base/memo"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/output/figures"
)

// overview is what the first page shows.
type overview struct {
	Live *overviewLive
	Most *totals // nil: it cannot be read
	Why  string  // Most is nil

	Exempt bool // the settings have clients that are exempt, whose requests are only counted
}

// overviewLive is the part of the first page that is kept up to date.
type overviewLive struct {
	*control.Status
	Alerts   []string
	Spans    []timeSpan
	Coverage string // of the last hour
	Chart    *chart
	Troubles []trouble
	Latest   []row
}

// timeSpan is a column of figures.
type timeSpan struct {
	Name    string
	Classes reason.Counts
	Would   string // what those that were only observed would be; empty: none, or it is not known
}

// Requests returns their number.
func (s *timeSpan) Requests() int64 { return s.Classes.Sum() }

// trouble is a site or an upstream proxy that fails.
type trouble struct {
	Name, State, Err string
	Seen, Retry      time.Time // zero: not known
	Site             bool
}

// latestShown is how many decisions the first page lists.
const latestShown = 8

func (d *Dashboard) overview(r *http.Request) (*view, error) {
	live, _ := d.liveNow(r.Context()) // o.Why is the error
	o := &overview{Live: live}
	o.Exempt = slices.ContainsFunc(d.Heed.Config().Clients, func(c config.ClientConfig) bool { return c.Mode == "exempt" })
	var err error
	if o.Most, err = d.record.day(r.Context()); err != nil && d.Record != "" {
		o.Why = err.Error()
	}
	return &view{Page: "overview", Title: "Overview", Data: o}, nil
}

// overviewLive renders the part of the first page that is kept up to date.
func (d *Dashboard) overviewLive(ctx context.Context) ([]byte, error) {
	live, err := d.liveNow(ctx)
	if err != nil {
		return nil, err
	}
	return fragment("overview", "live", live)
}

// fragment renders one template of a page.
func fragment(page, name string, data any) ([]byte, error) {
	var out bytes.Buffer
	err := pages()[page].ExecuteTemplate(&out, name, data)
	return out.Bytes(), err
}

// liveNow returns the live part of the first page, without the last decisions when there is
// an error.
func (d *Dashboard) liveNow(ctx context.Context) (*overviewLive, error) {
	s := d.Heed.Status()
	minute, periods := d.Heed.Recent()
	o := &overviewLive{Status: s, Alerts: alerts(s, d.Record != ""), Coverage: coverage(&s.Hour), Troubles: troubles(s)}
	before, err := d.record.before(ctx, s.Since)
	columns := make([]column, len(periods))
	var day reason.Counts
	for i := range periods {
		c := &columns[i]
		c.from, c.classes = periods[i].From, periods[i].Classes
		if b := before[c.from.UnixMicro()]; b != nil {
			c.classes.Add(b)
		}
		day.Add(&c.classes)
	}
	o.Spans = []timeSpan{{"last minute", minute.Classes, would(&minute)}, {"last 5 minutes", s.Five.Classes, would(&s.Five)}, {"last hour", s.Hour.Classes, would(&s.Hour)}, {Name: "last 24 hours", Classes: day}}
	columns = sinceStart(columns, s.Since)
	if o.Chart = drawn(columns, counts.PeriodLength); o.Chart != nil && len(columns) < len(periods) {
		o.Chart.Title = "Requests since the start of heed"
	}
	latest, err2 := d.latest(ctx, latestShown)
	if o.Latest = latest; errors.Is(err2, errNoRecord) {
		err2 = nil
	}
	return o, cmp.Or(err, err2)
}

// latest returns the last decisions of the record.
func (d *Dashboard) latest(ctx context.Context, limit int) (rows []row, err error) {
	r, release, err := d.record.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	found, err := replay.Latest(ctx, r, replay.Search{Limit: limit})
	if err != nil {
		return nil, err
	}
	for _, x := range found.Decisions {
		rows = append(rows, rowOf(x))
	}
	return rows, nil
}

// would returns what requests that were only observed would be; empty: there were none.
func would(c *counts.Counts) string {
	return c.WouldBe.OnlyWords(func(n int64) string { return c.Share(uint64(n)) })
}

// alerts are what an operator has to know before the numbers.
func alerts(s *control.Status, recorded bool) (all []string) {
	add := func(when bool, text string) {
		if when {
			all = append(all, text)
		}
	}
	for _, why := range s.NotReady() {
		add(true, "Not ready: "+why)
	}
	for _, why := range s.Unwell() {
		add(true, "Not well: "+why)
	}
	add(s.Unrecorded > 0, figures.Number(s.Unrecorded, "request")+" went on although the record could not be written ([audit] on_failure).")
	add(!recorded, "Decisions are not recorded ([audit] enabled = false), so that the pages show only what heed has in memory.")
	for _, b := range s.Breaks {
		add(true, "Requests are only observed until "+stamp(b.Until)+": "+b.Reason)
	}
	return all
}

// troubles are the sites that fail, each once.
func troubles(s *control.Status) (all []trouble) {
	listed := map[string]bool{}
	for i := range s.Troubles {
		t := &s.Troubles[i]
		words := "nothing is allowed until its robots.txt can be read"
		if t.State == "stale" {
			words = "judged by an old copy of its robots.txt"
		}
		listed[t.Origin] = true
		all = append(all, trouble{t.Origin, failed(t.Err) + ": " + words, t.Err, t.Seen, t.Retry, true})
	}
	for _, x := range s.Reach.Sites {
		if !listed[x.Origin] {
			all = append(all, trouble{Name: x.Origin, State: failed(x.Err), Err: x.Err, Seen: x.Seen, Site: true})
		}
	}
	return all[:min(len(all), mostTroubles)]
}

// answered finds the status in the text of an error about a robots.txt.
var answered = memo.Expression(`\banswered(?: with status)? (\d{3})\b`)

// failed puts into words how a site failed: it was reached when it answered anything.
func failed(err string) string {
	if m := answered().FindStringSubmatch(err); m != nil {
		return "answered " + m[1]
	}
	switch lower := strings.ToLower(err); {
	case strings.Contains(lower, "no such host"):
		return "its name is not known"
	case strings.Contains(lower, "timeout"), strings.Contains(lower, "deadline exceeded"), strings.Contains(lower, "timed out"):
		return "gave no answer in time"
	case strings.Contains(lower, "refused"):
		return "refused the connection"
	case strings.Contains(lower, "certificate"), strings.Contains(lower, "tls"):
		return "no TLS connection could be made"
	case strings.Contains(lower, "malformed"), strings.Contains(lower, "eof"), strings.Contains(lower, "reset"):
		return "gave no complete answer"
	}
	return "failed"
}

// mostTroubles is how many sites in trouble the first page lists.
const mostTroubles = 20

// coverage puts into words by what the requests were judged.
func coverage(c *counts.Counts) string {
	all := int64(c.Requests)
	switch {
	case all == 0:
		return "No requests in the last hour."
	case c.NotJudged+c.ByHost == 0:
		return "All requests of the last hour were judged by their path."
	}
	text := "Of the requests of the last hour, " + figures.Percent(int64(c.ByPath), all) + " were judged by their path"
	if c.ByHost > 0 {
		text += ", " + figures.Percent(int64(c.ByHost), all) + " by their host alone"
	}
	if c.NotJudged > 0 {
		text += "; " + figures.Percent(int64(c.NotJudged), all) + " could not be judged at all"
	}
	return text + "."
}

// column is a period of a chart.
type column struct {
	from    time.Time
	classes reason.Counts
}

// leastColumns is how many periods a chart has at least.
const leastColumns = 8

// sinceStart leaves out the periods before the start of heed that have no requests, at the
// beginning. The chart of a young heed has room for what comes.
func sinceStart(columns []column, start time.Time) []column {
	for len(columns) > 1 && columns[0].classes.Sum() == 0 && !columns[0].from.Add(counts.PeriodLength).After(start) {
		columns = columns[1:]
	}
	for len(columns) < leastColumns {
		columns = append(columns, column{from: columns[len(columns)-1].from.Add(counts.PeriodLength)})
	}
	return columns
}

// chart is requests over time.
type chart struct {
	*figures.Chart
	Title string
}

// drawn returns the chart of columns that follow one another; nil when they have no
// requests.
func drawn(columns []column, each time.Duration) *chart {
	periods := make([][]figures.Part, len(columns))
	for i := range columns {
		periods[i] = figures.Parts(&columns[i].classes)
	}
	c := &chart{figures.NewChart(columns[0].from.UTC(), each, clockForm, periods), "Requests in the last 24 hours"}
	if c.Busiest.All == 0 {
		return nil
	}
	return c
}
