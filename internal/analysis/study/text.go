package study

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"heed/internal/output/figures"
	"heed/internal/output/table"
)

// othersInText is how many rows a table on a terminal has beyond those of the built-in
// list.
const othersInText = 20

// WriteText writes the tables for a terminal: of every agent of the built-in list a row,
// however few its requests, and those of the others with most requests.
func (r *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, r.headline())
	for _, finding := range r.Findings() {
		fmt.Fprintln(&b, "-", strings.ReplaceAll(table.Wrap(finding, ""), "\n", "\n  "))
	}
	for _, t := range r.Tables {
		if !t.idle() {
			t.print(&b, len(r.Sites) > 1)
		}
	}
	if text := r.Empty(); text != "" {
		fmt.Fprintf(&b, "\n%s\n", table.Wrap(text, ""))
	}
	fmt.Fprintf(&b, "\n%d. Methods\n\n%s\n", r.MethodsNumber(), r.Methods())
	_, err := io.WriteString(w, b.String())
	return err
}

// headline sums the study up in two lines.
func (r *Result) headline() string {
	if r.Requests == 0 {
		return "No requests were read."
	}
	text := fmt.Sprintf("%s to %s from %s to %s UTC.", figures.Number(r.Requests, "request"), figures.Number(int64(len(r.Sites)), "site"),
		r.First.Format("2006-01-02 15:04:05"), r.Last.Format("2006-01-02 15:04:05"))
	text += fmt.Sprintf("\n%s are of %s by name", figures.Commas(r.Robots), figures.Number(r.Agents, "program"))
	if r.Unnamed > 0 {
		text += fmt.Sprintf(", %s without a User-Agent", figures.Commas(r.Unnamed))
	}
	switch {
	case r.WithRules:
	case r.Known:
		text += "; no robots.txt could be read that would allow or disallow anything"
	default:
		text += "; no rules known for " + map[bool]string{true: "this site", false: "these sites"}[len(r.Sites) == 1]
	}
	return text + "."
}

// print writes a table.
func (t *Table) print(b *strings.Builder, sites bool) {
	fmt.Fprintf(b, "\n%d. %s\n\n", t.Number, t.Title)
	for _, note := range t.Notes {
		fmt.Fprintf(b, "   note: %s\n", table.Text.Cell(note))
	}
	x := t.people(othersInText, sites)
	for _, line := range x.Lines() {
		fmt.Fprintf(b, "   %s\n", line)
	}
	if x.More > 0 {
		fmt.Fprintf(b, "   and %s more: --csv, --json and --html have them\n", figures.Commas(x.More))
	}
}

// people returns what people see of a table: the rows of the built-in list and others, and the
// columns that show something.
func (t *Table) people(others int, sites bool) *table.Table {
	rows, more := t.shown(others)
	x := &table.Table{More: int64(more)}
	if t.Sums && more > 0 && sites {
		rows = slices.Concat(rows, t.sums(others))
	}
	var show []int
	for i, c := range t.Columns {
		if t.seen(i, sites) {
			show = append(show, i)
			x.Columns = append(x.Columns, table.Column(c))
		}
	}
	x.BarAfter = min(1, len(show)-1)
	most := t.most(rows)
	for _, row := range rows {
		cells := make([]any, len(show))
		for n, i := range show {
			cells[n] = row[i]
		}
		x.Rows = append(x.Rows, cells)
		if t.Bars != nil {
			x.Bars = append(x.Bars, t.bar(row, most))
		}
	}
	for _, b := range t.Bars {
		x.Key = append(x.Key, figures.Piece{Class: b.Style, Name: t.head(b.Column)})
	}
	return x
}

// shown returns the rows of the built-in list and the first of the others, in their order, in
// which cumulative shares are; more is how many are left out.
func (t *Table) shown(others int) (rows [][]any, more int) {
	token := t.column("token")
	if t.Whole || token < 0 {
		return t.Rows, 0
	}
	for _, row := range t.Rows {
		_, listed := known()[row[token].(string)]
		switch {
		case listed:
			rows = append(rows, row)
		case others > 0:
			rows = append(rows, row)
			others--
		default:
			more++
		}
	}
	return rows, more
}

// sums returns a row for each program that is in several rows, at most limit, those with most
// rows first: the sums of them.
func (t *Table) sums(limit int) (rows [][]any) {
	count, place := map[any]int64{}, map[any]int{}
	token := t.column("token")
	for _, row := range t.Rows {
		if count[row[token]]++; count[row[token]] == 1 {
			place[row[token]] = len(rows)
			rows = append(rows, slices.Clone(row))
			continue
		}
		at := place[row[token]]
		for i, cell := range row {
			switch was := rows[at][i].(type) {
			case int64:
				rows[at][i] = was + cell.(int64)
			case table.Ratio:
				if more, some := cell.(table.Ratio); some {
					rows[at][i] = table.Ratio{Part: was.Part + more.Part, Of: was.Of + more.Of}
				}
			case nil:
				rows[at][i] = cell
			}
		}
	}
	rows = slices.DeleteFunc(rows, func(sum []any) bool { return count[sum[token]] == 1 })
	slices.SortStableFunc(rows, func(a, b []any) int { return cmp.Compare(count[b[token]], count[a[token]]) })
	for _, sum := range rows {
		sum[t.column("site")] = fmt.Sprintf("all %d sites", count[sum[token]])
	}
	return rows[:min(limit, len(rows))]
}

// rare are the columns that people do not miss when they are 0 in every row.
var rare = map[string]bool{"no_file": true, "unreachable": true, "unknown": true, "no_path": true, "s401": true, "s402": true, "s403": true, "s429": true, "s503": true, "undecidable": true, "within_cache_life": true}

// blank reports whether a column has nothing to show in any row; it is left out for people.
func (t *Table) blank(i int) bool {
	if i == 0 || t.Columns[i].Kind == table.Text || t.Columns[i].Kind == table.Digest {
		return false
	}
	return len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(row []any) bool {
		return row[i] != nil && (row[i] != int64(0) || !rare[t.Columns[i].Name])
	})
}

// seen reports whether people see a column of its own.
func (t *Table) seen(i int, sites bool) bool {
	return (t.Columns[i].Name != "site" || sites) && !t.blank(i)
}
