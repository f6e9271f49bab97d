package store

import (
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"heed/internal/audit"
	"heed/internal/judge/reason"
)

//go:embed tables
var tableQueries embed.FS

// Table returns the rows of one of the tables for papers (the files in tables, but counted, request and uncounted) about the decisions that filter
// selects, the same for all tables of a Reader, with the head at a commit, and the
// query, which returns the same table in any SQLite. What tables/counted.sql counts is counted
// once, for all of them.
func (r *Reader) Table(name string, filter *Filter, commit int64) (rows *Rows, query string, err error) {
	begun, err := r.begun()
	if err != nil {
		return nil, "", err
	}
	text := func(name string) string {
		text, err2 := tableQueries.ReadFile("tables/" + name + ".sql")
		err = errors.Join(err, err2)
		return strings.NewReplacer("{{chosen}}", filter.Condition(), "{{exempt}}", filter.Counted(), "{{events}}", filter.events(), "{{created}}", fmt.Sprint(begun), "{{head}}", fmt.Sprintf("n = %d", commit),
			"{{refused_share}}", shareColumns("refused_by_rule_", fmt.Sprintf("sum(c.requests * (c.class = '%s'))", reason.RefusedByRule), "sum(c.requests)"),
			"{{share}}", shareColumns("", "sum(c.requests)", "(SELECT sum(requests) FROM counted)")).Replace(reason.InSQL(string(text)))
	}
	query, counted := text(name), text("counted")
	if err == nil && !r.hasCounted {
		if rows, err = r.viewRows("CREATE TEMP TABLE counted AS " + counted + "\nSELECT * FROM counted"); err == nil {
			rows.Close()
			r.hasCounted = true
		}
	}
	if err == nil {
		rows, err = r.viewRows(strings.NewReplacer("{{counted}},", "WITH", "{{counted}}", "").Replace(query))
	}
	query = strings.ReplaceAll(query, "{{counted}}", counted)
	if r.record.begin != "" { // decisions are left out, in the views of the query too
		query = r.record.begin + tempViews() + query
	}
	return rows, query, err
}

// begun returns when the record was begun, in microseconds: the table about has the second, and
// the id the millisecond.
func (r *Reader) begun() (int64, error) {
	at, err := r.integer("SELECT coalesce(1000000 * strftime('%s', (SELECT value FROM about WHERE key = 'created')), 0)")
	id, _ := hex.DecodeString(strings.ReplaceAll(r.record.Store, "-", ""))
	if t, ok := audit.TimeOf(id); ok && micro(t)/second == at/second {
		at = micro(t)
	}
	return at, err
}

// shareColumns returns the columns of a share and of the bounds of its 95 % interval
// (figures.Wilson), whose names begin with prefix.
func shareColumns(prefix, part, all string) string {
	const z2 = "3.841458820694124" // the square of the 97.5th percentile of the normal distribution
	bound := func(sign string) string {
		return fmt.Sprintf("(%[1]s + %[3]s / 2 %[4]s sqrt(%[3]s * (%[1]s * 1.0 * (%[2]s - %[1]s) / %[2]s + %[3]s / 4))) / (%[2]s + %[3]s)", part, all, z2, sign)
	}
	column := func(name, value string) string {
		return fmt.Sprintf("printf('%%.6f', %s) AS %s%s", value, prefix, name)
	}
	return column("share", part+" * 1.0 / "+all) + ",\n    " + column("low", "max(0.0, "+bound("-")+")") + ",\n    " + column("high", "min(1.0, "+bound("+")+")")
}

// Counted is a number of requests that are no decisions.
type Counted struct {
	ID    string // the same in another copy of the record
	Count int64
	What  string     // exempt, unrecorded, gaps or robots_asked_as_clients, as in reports
	Gap   *audit.Gap // of gaps
}

// Counted calls row with the numbers of the query in tables/uncounted.sql.
func (r *Reader) Counted(filter *Filter, row func(*Counted)) error {
	return r.each(filter.uncounted(), func(f *fields) {
		n := &Counted{ID: f.text() + " " + f.text(), Count: f.integer(), What: f.text()}
		if g, ok := audit.ParseGap(f.text(), n.Count); ok {
			n.Gap = &g
		}
		row(n)
	})
}

// uncounted returns the query in tables/uncounted.sql.
func (f *Filter) uncounted() string {
	text, _ := tableQueries.ReadFile("tables/uncounted.sql") // it is embedded
	return strings.NewReplacer("{{counted}}", f.Counted(), "{{window}}", f.window()).Replace(string(text))
}

// window returns the condition on the column time.
func (f *Filter) window() string { return strings.Join(append(f.Window(), "TRUE"), " AND ") }

// Script returns statements, for SQLite's shell, that make the table request of the requests in
// records that filter selects, with an expression on the rows of asker as the agent, and the table
// uncounted of what was only counted. The shell has the only record open, or attaches each of
// several.
func Script(records []*Record, filter *Filter, agent string) string {
	text, _ := tableQueries.ReadFile("tables/request.sql") // it is embedded
	query := strings.NewReplacer("{{who}}", agent, "{{chosen}}", filter.Condition()).Replace(reason.InSQL(string(text)))
	clock, _ := tableQueries.ReadFile("tables/clock.sql")
	known := "TRUE"
	if filter.Client != "" || filter.Host != "" {
		known = "FALSE" // of the other requests neither is known
	}
	uncounted := "SELECT * FROM (" + filter.uncounted() + ") WHERE " + known + "\nUNION ALL\n" + strings.ReplaceAll(string(clock), "{{window}}", filter.window())
	var b strings.Builder
	for i, r := range records {
		begin, end := r.begin, ""
		if len(records) > 1 {
			begin = fmt.Sprintf("ATTACH DATABASE %s AS record;\n", literal((&url.URL{Scheme: "file", Opaque: (&url.URL{Path: r.at}).EscapedPath(), RawQuery: "mode=ro"}).String())) + begin
			for _, view := range regexp.MustCompile("CREATE TEMP (VIEW|TABLE) [a-z]+").FindAllString(begin, -1) {
				end += strings.Replace(view, "CREATE TEMP", "DROP", 1) + ";\n"
			}
			end += "DETACH DATABASE record;\n"
		}
		to := [...]string{"CREATE TEMP TABLE request AS\n", "CREATE TEMP TABLE uncounted AS\n"}
		if i > 0 {
			to = [...]string{"INSERT INTO request\n", "INSERT INTO uncounted\n"}
		}
		part := begin + to[0] + query + to[1] + uncounted + end
		if len(records) > 1 {
			part = strings.ReplaceAll(part, "main.", "record.")
		}
		b.WriteString(part)
	}
	return b.String()
}
