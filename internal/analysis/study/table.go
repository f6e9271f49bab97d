package study

import (
	"cmp"
	"embed"
	"slices"
	"time"

	"heed/internal/output/figures"
	"heed/internal/output/table"
	"heed/rules"
)

// Column is a column of a Table.
type Column table.Column

// Table is one of the tables of a study.
type Table struct {
	*Definition
	Rows  [][]any // string, int64, float64 or nil, by Columns
	Notes []string
}

// Definition is what a table contains and how it is computed.
type Definition struct {
	Number  int    // from 1, in their order
	Name    string // of its file
	Title   string
	About   string // what it is, in sentences
	Formula string // empty: the columns explain it
	Source  string // where the definition is from
	Columns []Column
	// Query makes the rows from the table requests; empty where SQL cannot.
	Query string
	// Bars are the columns whose counts a chart shows as one bar per row, with the style of
	// each.
	Bars []Bar
	// Of is the column that Bars are parts of.
	Of string
	// Needs is a column of counts: when all of them are 0, people see nothing of the table.
	Needs string
	// Whole has people see all rows, and not only those of robots of the built-in list and the
	// first of the others. Tables without a token are whole.
	Whole bool
	// Sums has people see the sums of each program over all sites, where rows are left out.
	Sums bool

	build func(*Study, *Table)
}

// Bar is a part of a bar.
type Bar struct{ Column, Style string }

// Definitions returns the definitions of all tables in their order.
func Definitions() []*Definition {
	list := []*Definition{coverageTable(), versionsTable(), agentsTable(), askedTable(), reasksTable(), obedienceTable(), kimTable(),
		delaysTable(), sessionsTable(), shiftsTable(), impostorsTable(), undeclaredTable(), levelsTable(), partsTable(), repeatsTable(), refusedTable()}
	for i, d := range list {
		query, _ := queries.ReadFile("queries/" + d.Name + ".sql") // some have none
		d.Number, d.Query = i+1, string(query)
	}
	return list
}

// queries make the tables, by their names, from the table requests that load.sql reads, in SQLite
// and in DuckDB, which reads empty fields of CSV as NULL. They take the order of requests as it
// is: where a site's lines are too much out of order, the tables leave out what the queries
// compute.
//
//go:embed queries
var queries embed.FS

// siteToken are the first columns of most tables.
var siteToken = []Column{
	{"site", "site", table.Text, "Host of the request, without the ports 80 and 443."},
	{"token", "agent", table.Text, "Product token by which heed identifies the User-Agent."},
}

func columns(more ...Column) []Column { return slices.Concat(siteToken, more) }

// byRequests returns the robots that keep selects, those with most requests first.
func (s *Study) byRequests(keep func(*robot) bool) []*robot {
	var list []*robot
	for _, r := range s.all {
		if keep(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *robot) int {
		return cmp.Or(cmp.Compare(b.requests, a.requests), cmp.Compare(a.site.name, b.site.name), cmp.Compare(a.token, b.token))
	})
	return list
}

// programs reports whether a robot is of programs that name themselves.
func programs(r *robot) bool { return r.category != catNone }

// perRobot adds a row for each robot that is a program.
func (t *Table) perRobot(s *Study, row func(r *robot) []any) {
	t.rows(s.byRequests(programs), row)
}

func (t *Table) rows(list []*robot, row func(r *robot) []any) {
	for _, r := range list {
		t.Rows = append(t.Rows, append([]any{r.site.name, r.token}, row(r)...))
	}
}

// share returns part of all as a cell; nil of none.
func share(part, all int64) any { return table.Ratio{Part: part, Of: all}.Cells()[0] }

// middle returns the value of a percentile in seconds of a list in milliseconds, which it
// sorts; nil for an empty list. The 50th is the median.
func middle(list []uint32, p int) any {
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	if p == 50 {
		return figures.Median(list) / 1000
	}
	return float64(figures.Percentile(list, p)) / 1000
}

// moment writes a time in microseconds; nil for 0.
func moment(t int64) any {
	if t == 0 {
		return nil
	}
	return time.UnixMicro(t).UTC().Format("2006-01-02T15:04:05.999999Z07:00")
}

// maxDisorder is the share of lines out of order from which no order is trusted.
const maxDisorder = 0.1

// orderly reports whether the order of a site's requests can be used. A few lines out of
// order are those of slow answers, and are put in order.
func (s *site) orderly() bool { return float64(s.disordered) <= maxDisorder*float64(s.requests) }

// noteOrder adds a note for each site without a usable order.
func (t *Table) noteOrder(s *Study) {
	for _, site := range s.siteList {
		if !site.orderly() {
			t.Notes = append(t.Notes, site.name+": "+figures.Commas(site.disordered)+" of "+figures.Commas(site.requests)+
				" lines are out of order; values that depend on the order of requests are left out")
		}
	}
}

// noteRules adds a note for each site without rules.
func (t *Table) noteRules(s *Study) {
	for _, site := range s.siteList {
		has := func(state rules.State) bool {
			return slices.ContainsFunc(site.versions(), func(v *Version) bool { return v.state == state })
		}
		switch {
		case has(rules.Available):
		case has(rules.Unavailable), site.observed && site.status == rules.Unavailable:
			t.Notes = append(t.Notes, site.name+" had no robots.txt, so that everything was allowed")
		case has(rules.Unreachable):
			t.Notes = append(t.Notes, "the robots.txt of "+site.name+" could not be read")
		default:
			t.Notes = append(t.Notes, "no rules known for this site: "+site.name+"; name its robots.txt with --robots")
		}
	}
}

// idle reports whether a table has nothing that people should see.
func (t *Table) idle() bool {
	if t.Needs == "" {
		return len(t.Rows) == 0
	}
	at := t.column(t.Needs)
	return !slices.ContainsFunc(t.Rows, func(row []any) bool { n, _ := row[at].(int64); return n > 0 })
}

// Written returns the columns of the table in files: an interval has its bounds beside it.
func (d *Definition) Written() (list []table.Column) {
	for _, c := range d.Columns {
		if list = append(list, table.Column(c)); c.Kind == table.Interval {
			list = append(list, c.bound("low", "Lower"), c.bound("high", "Upper"))
		}
	}
	return list
}

func (c Column) bound(name, word string) table.Column {
	about := word + " bound of the 95 % interval of " + c.Name + " (Wilson); empty where that is."
	return table.Column{Name: c.Name + "_" + name, Head: c.Head + " " + name, Kind: table.Share, About: about}
}

// written returns the cells of a row by Written.
func (d *Definition) written(row []any) (cells []any) {
	for i, c := range d.Columns {
		if c.Kind != table.Interval {
			cells = append(cells, row[i])
			continue
		}
		ratio, _ := row[i].(table.Ratio) // nil: not known
		cells = append(cells, ratio.Cells()...)
	}
	return cells
}

// intervalWords returns the interval of a share after it; nothing for a share of none.
func intervalWords(part, of int64) string {
	if of == 0 {
		return ""
	}
	low, high := figures.Wilson(part, of)
	return ", 95 % interval " + figures.Interval(low, high)
}
