package report

import (
	"context"
	_ "embed" // codebook.csv
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/store"
	"heed/internal/judge/reason"
	"heed/internal/output/table"
)

//go:embed codebook.csv
var codebookText string

// codebook writes the explanation of every column, and of each class and reason. The
// table of purposes is explained if there is one.
func codebook(out io.Writer, purposes bool) error {
	for line := range strings.Lines(codebookText) {
		if !purposes && strings.HasPrefix(line, purposesTable+",") {
			continue
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	t := table.NewWriter(out)
	for _, of := range []string{"agents", "requests", "hours"} {
		for _, c := range reason.Classes() {
			_ = t.Row(of, "class_"+c.Key(), "requests", c.Sentence()) // Flush has its error
		}
		for _, c := range reason.WouldBeClasses() {
			_ = t.Row(of, "would_be_"+c.Key(), "requests", "Only observed, and counted in class_allowed or class_failed. Otherwise: "+c.Sentence())
		}
	}
	for _, c := range reason.Classes() {
		_ = t.Row("class", c, nil, c.Sentence())
	}
	for _, info := range reason.All() {
		_ = t.Row("reason", info.Reason, nil, info.Words+": "+info.Sentence)
	}
	return t.Flush()
}

// tables are those of a paper, in the order in which a reader needs them. Each
// is made by the query that is written beside it (store.Reader.Table).
var tables = []string{"record", "agents", "requests", "rules", "coverage", "policies", "hours", "outcomes", "times", "redirects", "events"}

// purposesTable is the table that is made of the records of clients with a purpose.
const purposesTable = "purposes"

// Sensitivity is how the decisions of a record would have been others under a
// profile.
type Sensitivity struct {
	Profile                             string
	Judged, Allowed, Refused, Otherwise int64 // Allowed: would have been, and were not; Refused alike
}

// Paper is what a paper about crawls needs beyond the records.
type Paper struct {
	Query Query
	Now   time.Time
	// Sensitivity judges the record again under each profile; nil leaves that
	// table out.
	Sensitivity func(context.Context, *store.Record) ([]Sensitivity, error)
	// Step, if not nil, is called with the name of each file before it is made.
	Step func(what string)
}

// Write writes the tables with the queries behind them, their codebook and a
// paragraph on methods into dir, which must be empty or not there.
func (p *Paper) Write(ctx context.Context, dir string, records []*store.Record) error {
	all, release, err := readers(ctx, records)
	if err != nil {
		return err
	}
	defer release()
	to, err := table.NewDirectory(dir)
	if err != nil {
		return err
	}
	w := &paperWriter{Paper: p, dir: to, sum: methods{row: map[string]string{}, agents: map[string]bool{}, sites: map[string]bool{}, sums: map[string]int64{}}}
	for _, r := range all {
		f, err := r.File()
		if err != nil {
			return err
		}
		m := &tabled{reader: r, commit: f.Commit, filter: p.Query.Filter}
		m.filter.Last = max(1, f.CommittedTo)
		if err := m.readPurposes(); err != nil {
			return err
		}
		if w.records = append(w.records, m); len(m.purposes) > 0 {
			w.purposes = append(w.purposes, m)
		}
	}
	for _, name := range tables {
		if err := w.table(name, w.records); err != nil {
			return err
		}
	}
	if len(w.purposes) > 0 {
		if err := w.table(purposesTable, w.purposes); err != nil {
			return err
		}
	}
	if err := w.sensitivity(ctx, records); err != nil {
		return err
	}
	return errors.Join(to.Write("codebook.csv", func(out io.Writer) error { return codebook(out, len(w.purposes) > 0) }), to.Write("methods.txt", w.methods))
}

type paperWriter struct {
	*Paper
	dir      table.Directory
	records  []*tabled
	purposes []*tabled // of these: those of clients with a purpose
	sum      methods
}

// methods writes one paragraph about all records.
func (w *paperWriter) methods(out io.Writer) error {
	if len(w.sum.heads) > 0 {
		w.sum.write(out, w.Query.Words())
	}
	for _, name := range w.sum.empty {
		fmt.Fprintf(out, "The record %s holds no requests%s.\n\n", name, comma(w.Query.Words()))
	}
	_, err := fmt.Fprintf(out, "Made with heed audit report --paper on %s. The tables are explained in codebook.csv;\neach .sql makes the .csv of its name, or of several records the rows of one of them\n(requests-1.sql of the first): sqlite3 -csv -header audit.db < requests.sql\n", stamp(w.Now))
	return err
}

// table writes the rows of records, and beside them the query of each.
func (w *paperWriter) table(name string, records []*tabled) error {
	if w.Step != nil {
		w.Step(name + ".csv")
	}
	return w.dir.Write(name+".csv", func(out io.Writer) error {
		var t *table.Writer
		for i, m := range records {
			file := name + ".sql"
			if len(w.records) > 1 {
				file = fmt.Sprintf("%s-%d.sql", name, slices.Index(w.records, m)+1)
			}
			rows, query, err := m.reader.Table(name, &m.filter, m.commit)
			if err != nil {
				return err
			}
			if i == 0 {
				t = table.NewWriter(out, rows.Columns...)
			}
			sql := func(out io.Writer) error { _, err := io.WriteString(out, query); return err }
			if err := errors.Join(w.dir.Write(file, sql), w.read(m, name, rows, t)); err != nil {
				return err
			}
		}
		return t.Flush()
	})
}

// read writes the rows of a table and notes what they contain.
func (w *paperWriter) read(m *tabled, name string, rows *store.Rows, t *table.Writer) error {
	defer rows.Close()
	for {
		values, err := rows.Next()
		if err != nil || values == nil {
			return err
		}
		row := map[string]string{}
		for i, v := range values {
			row[rows.Columns[i]] = table.CSV(v)
		}
		w.sum.note(m, name, row)
		if err := t.Row(values...); err != nil {
			return err
		}
	}
}

// sensitivity writes what would have been otherwise under each profile.
func (w *paperWriter) sensitivity(ctx context.Context, records []*store.Record) error {
	if w.Sensitivity == nil {
		return nil
	}
	return w.dir.Write("sensitivity.csv", func(out io.Writer) error {
		t := table.NewWriter(out, "record", "profile", "judged", "would_be_allowed", "would_be_refused", "for_another_reason", "another_verdict_share", "another_verdict_low", "another_verdict_high")
		for i, r := range records {
			if w.Step != nil {
				w.Step("sensitivity.csv")
			}
			list, err := w.Sensitivity(ctx, r)
			if err != nil {
				return err
			}
			for _, s := range list {
				_ = t.Row(append([]any{w.records[i].row["record"], s.Profile, s.Judged, s.Allowed, s.Refused, s.Otherwise}, table.Ratio{Part: s.Allowed + s.Refused, Of: s.Judged}.Cells()...)...)
			}
			w.sum.judged(w.records[i], list)
		}
		return t.Flush()
	})
}
