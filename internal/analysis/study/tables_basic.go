package study

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"heed/internal/analysis/accesslog"
	"heed/internal/output/figures"
	"heed/internal/output/table"
	"heed/rules"
)

func coverageTable() *Definition {
	return &Definition{
		Name: "coverage", Title: "What was read",
		About:   "Lines of the logs, those that are no requests with the reason, the time that the requests span, and what else limits the other tables.",
		Columns: []Column{{"what", "", table.Text, "What is counted."}, {"value", "", table.Text, "The number, time or name."}},
		build: func(s *Study, t *Table) {
			c := &s.total
			add := func(what string, value any) { t.Rows = append(t.Rows, []any{what, value}) }
			t.Rows = append(t.Rows, c.lines...)
			add("requests", c.requests)
			if c.requests > 0 {
				add("first request", moment(c.first))
				add("last request", moment(c.last))
				add("span", (time.Duration(c.last-c.first) * time.Microsecond).Round(time.Second).String())
			}
			add("time zones", strings.Join(slices.Sorted(maps.Keys(c.zones)), " "))
			add("out of order", c.disordered)
			add("whole seconds only", yesNo(!s.subSecond))
			add("with a User-Agent", c.named)
			add("sites", int64(len(s.siteList)))
			add("bytes", c.bytes)
			t.Notes = append(t.Notes, s.boundNotes()...)
			t.Notes = append(t.Notes, c.notes...)
		},
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func versionsTable() *Definition {
	return &Definition{
		Name: "versions", Title: "The robots.txt files in force",
		About: "Each version of each site's robots.txt, and the time from which it was in force.",
		Columns: []Column{
			siteToken[0], {"version", "version", table.Count, "Number of the version, from 1."}, {"since", "in force from", table.Moment, "Beginning; empty: from the beginning of the log."},
			{"source", "source", table.Text, "Where the file is from."}, {"state", "state", table.Text, "file; no file: an answer that says so (4xx), so that everything is allowed; or unreachable."}, {"status", "status", table.Count, "Status of the answer; empty: not known, or there was none."}, {"bytes", "bytes", table.Bytes, "Size of the file."},
			{"sha256", "SHA-256", table.Digest, "Digest of the file."}, {"requests", "requests", table.Count, "Requests while it was in force."},
		},
		build: func(s *Study, t *Table) {
			for _, site := range s.siteList {
				for _, v := range site.versions() {
					since := any(nil)
					if v.from != math.MinInt64 {
						since = moment(v.from)
					}
					t.Rows = append(t.Rows, []any{site.name, int64(v.number), since, v.Source, stateWords[v.state], statusCell(v.Status), int64(len(v.Body)), v.sha, site.perVersion[v.number]})
				}
			}
			t.noteRules(s)
		},
	}
}

// stateWords are the states of a robots.txt.
var stateWords = map[rules.State]string{rules.Available: "file", rules.Unavailable: "no file", rules.Unreachable: "unreachable"}

// statusCell returns a status as a cell; nil for 0.
func statusCell(status int) any {
	if status == 0 {
		return nil
	}
	return int64(status)
}

func agentsTable() *Definition {
	return &Definition{
		Name: "agents", Title: "Agents",
		About: "Every product token, with those of the built-in list of robots first named by category. (no name) are the User-Agents of browsers and others that name no robot.",
		Columns: columns(
			Column{"category", "category", table.Text, "Category of the built-in list; other robot: not in the list; empty: a browser."},
			Column{"requests", "requests", table.Count, "Requests."},
			Column{"share", "share", table.Share, "Of all requests."},
			Column{"cumulative", "cumulative", table.Share, "Share of this row and all those with more requests (Lorenz), those that are not shown here included."},
			Column{"addresses", "addresses", table.Count, "Different client addresses."},
			Column{"networks", "networks", table.Count, "Different networks: the autonomous system where known, else the IPv4 address or the IPv6 /64."},
			Column{"user_agents", "User-Agents", table.Count, "Different User-Agent strings."},
			Column{"bytes", "bytes", table.Bytes, "Octets sent, as logged."},
		),
		Bars: []Bar{{"requests", "allowed"}}, Of: "requests",
		build: func(s *Study, t *Table) {
			var sum int64
			t.rows(s.byRequests(func(*robot) bool { return true }), func(r *robot) []any {
				sum += r.requests
				return []any{r.category, r.requests, share(r.requests, s.total.requests), share(sum, s.total.requests), r.addresses, r.actors, r.userAgents, r.bytes}
			})
			if n := len(t.Rows); n > 20 {
				t.Notes = append(t.Notes, fmt.Sprintf("the 20 rows with most requests have %.1f %% of all", 100*t.Rows[19][5].(float64)))
			}
		},
	}
}

// askHours are the times within which a robot asks again, in hours, as in queries/asked.sql and queries/reasks.sql.
var askHours = []int64{1, 6, 12, 24, 48, 72, 168}

func askedTable() *Definition {
	d := &Definition{
		Name: "asked", Title: "Who asked for robots.txt, and when",
		About:   "Requests for /robots.txt at the root, with or without a query. A robot that shares a cache of robots.txt files with others need not ask here.",
		Formula: "within h = asks whose next ask of the same token came within h hours / asks with a next ask, or with h hours until the end of the log",
		Source:  "the shares within h hours after Kim et al., IMC 2025, figure 10",
		Columns: columns(
			Column{"requests", "requests", table.Count, "Requests."},
			Column{"asked", "asked", table.Count, "Requests for robots.txt."},
			Column{"first_ask", "first", table.Moment, "Time of the first request for robots.txt."},
			Column{"before", "before others", table.Text, "yes: robots.txt was the first request of all; no: another came before; never: it was not asked for."},
			Column{"statuses", "answers", table.Text, "Statuses of the answers and how often."},
			Column{"median_interval_s", "median interval", table.Seconds, "Median time between two requests for robots.txt."},
		),
		build: func(s *Study, t *Table) {
			t.perRobot(s, func(r *robot) []any { return r.askedRow(s.total.last) })
			t.noteOrder(s)
		},
	}
	for _, h := range askHours {
		d.Columns = append(d.Columns, Column{fmt.Sprintf("within_%dh", h), fmt.Sprintf("≤ %d h", h), table.Share, fmt.Sprintf("Share of asks that were followed by another within %d h.", h)})
	}
	return d
}

func (r *robot) askedRow(end int64) []any {
	before, first, statuses := "never", any(nil), ""
	if r.asks() > 0 {
		if before, first = "no", moment(r.askTimes[0]); r.askFirst {
			before = "yes"
		}
		for _, status := range slices.Sorted(maps.Keys(r.statuses)) {
			statuses += fmt.Sprintf(" %d:%d", status, r.statuses[status])
		}
	}
	var intervals []uint32
	for i := 1; i < len(r.askTimes); i++ {
		intervals = append(intervals, uint32(min((r.askTimes[i]-r.askTimes[i-1])/1000, math.MaxUint32)))
	}
	row := []any{r.requests, r.asks(), first, before, strings.TrimSpace(statuses), middle(intervals, 50)}
	for _, h := range askHours {
		within, of := r.within(h, end)
		row = append(row, share(within, of))
	}
	if !r.site.orderly() {
		row[3] = nil
		if r.asks() == 0 {
			row[3] = "never"
		}
		for i := 5; i < len(row); i++ {
			row[i] = nil
		}
	}
	return row
}

// within returns how many asks were followed by another within h hours, of those for which
// that can be known when the log ends at end.
func (r *robot) within(h, end int64) (n, of int64) {
	limit := h * time.Hour.Microseconds()
	for i, at := range r.askTimes {
		switch {
		case i+1 < len(r.askTimes):
			of++
			if r.askTimes[i+1]-at <= limit {
				n++
			}
		case end-at >= limit:
			of++
		}
	}
	return n, of
}

func reasksTable() *Definition {
	return &Definition{
		Name: "reasks", Title: "How soon robots ask for robots.txt again",
		About: "Of the tokens that asked for robots.txt at all: how many asked again within h hours each time.",
		Columns: []Column{
			{"hours", "within hours", table.Count, "h."}, {"tokens", "agents", table.Count, "Tokens with an ask for which this can be known."},
			{"tokens_within", "each time", table.Count, "Tokens of which every such ask, at every site, was followed by another within h hours."}, {"share", "share", table.Interval, "tokens_within / tokens."},
			{"asks", "asks", table.Count, "Asks for which this can be known."}, {"asks_within", "followed", table.Count, "Asks that were followed by another within h hours."}, {"asks_share", "share of asks", table.Interval, "asks_within / asks."},
		},
		Source: "Kim et al., IMC 2025, figure 10 (share of bots that ask again within N hours)",
		Bars:   []Bar{{"tokens_within", "allowed"}}, Of: "tokens", Needs: "tokens",
		build: func(s *Study, t *Table) {
			for _, h := range askHours {
				var kept, asks, followed int64
				tokens := map[string]bool{} // whether every ask was followed, at all sites
				for _, r := range s.all {
					if n, of := r.within(h, s.total.last); of > 0 && programs(r) && r.site.orderly() {
						each, known := tokens[r.token]
						tokens[r.token] = n == of && (each || !known)
						asks += of
						followed += n
					}
				}
				for _, each := range tokens {
					if each {
						kept++
					}
				}
				all := int64(len(tokens))
				t.Rows = append(t.Rows, []any{h, all, kept, table.RatioOf(kept, all), asks, followed, table.RatioOf(followed, asks)})
			}
			t.noteOrder(s)
		},
	}
}

// coverage is what is counted of the whole log.
type coverage struct {
	lines       [][]any // what the reader of the logs counted
	notes       []string
	requests    int64
	named       int64
	bytes       int64
	disordered  int64
	first, last int64
	zones       map[string]bool
	offset      int
}

// cover counts a request for the table of coverage.
func (s *Study) cover(e *event) {
	c := &s.total
	if c.requests == 0 {
		c.first = e.at
	}
	c.requests++
	c.first, c.last = min(c.first, e.at), max(c.last, e.at)
	c.bytes += e.Bytes
	if e.who.text != "" {
		c.named++
	}
	if e.OutOfOrder {
		c.disordered++
		e.site.disordered++
	}
	if _, offset := e.Time.Zone(); c.requests == 1 || offset != c.offset {
		c.offset = offset
		c.zones[e.Time.Format("-07:00")] = true
	}
	s.subSecond = s.subSecond || e.at%1_000_000 != 0
	e.site.requests++
	if v := e.verdict.version; v > 0 {
		e.site.perVersion[v]++
	}
}

// unparsedLines is the row of the lines that are no requests.
const unparsedLines = "unparsed lines"

// tornFiles is the row of the files that were not read to their end.
const tornFiles = "files that end early or are damaged"

// takeCounts adds what the reader of the logs counted.
func (s *Study) takeCounts(c accesslog.Counts) {
	add := func(what string, value any) { s.total.lines = append(s.total.lines, []any{what, value}) }
	add("lines", c.Lines)
	add(unparsedLines, c.Unparsed)
	for _, p := range c.Problems {
		lines := strings.Join(p.Lines, ", ")
		if p.Count > int64(len(p.Lines)) {
			lines += ", ..."
		}
		add("unparsed: "+p.Reason, fmt.Sprintf("%s (%s)", figures.Commas(p.Count), lines))
	}
	if c.Cut > 0 {
		add("lines cut after 1 MiB", c.Cut)
	}
	add("clock steps back of more than an hour", c.Steps)
	if n := int64(len(c.Truncated)); n > 0 {
		add(tornFiles, n)
	}
	for _, name := range c.Truncated {
		s.total.notes = append(s.total.notes, name+" ends early: what follows the damage was not read")
	}
}
