package report

import (
	"bytes"
	"context"
	_ "embed" // codebook.csv
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/store"
	"heed/internal/reason"
)

//go:embed codebook.csv
var codebookText string

// codebook returns the explanation of every column, and of each class and reason. The
// table of purposes is explained if there is one.
func codebook(purposes bool) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(codebookText) {
		if purposes || !strings.HasPrefix(line, purposesTable+",") {
			out.WriteString(line)
		}
	}
	t := csv.NewWriter(&out)
	for _, table := range []string{"requests", "hours"} {
		for _, c := range reason.Classes() {
			_ = t.Write([]string{table, "class_" + c.Key(), "requests", c.Sentence()})
		}
		for _, c := range reason.WouldBeClasses() {
			_ = t.Write([]string{table, "would_be_" + c.Key(), "requests", "Only observed, and counted in class_allowed or class_failed. Otherwise: " + c.Sentence()})
		}
	}
	for _, c := range reason.Classes() {
		_ = t.Write([]string{"class", c.String(), "", c.Sentence()})
	}
	for _, info := range reason.All() {
		_ = t.Write([]string{"reason", string(info.Reason), "", info.Words + ": " + info.Sentence})
	}
	t.Flush()
	return out.Bytes()
}

// tables are those of a paper, in the order in which a reader needs them. Each
// is made by the query that is written beside it (store.Reader.Table).
var tables = []string{"record", "requests", "rules", "coverage", "policies", "hours", "outcomes"}

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
	if err := emptyDir(dir); err != nil {
		return err
	}
	w := &paperWriter{Paper: p, dir: dir}
	for _, r := range all {
		f, err := r.File()
		if err != nil {
			return err
		}
		w.records = append(w.records, &methods{reader: r, last: f.CommittedTo, commit: f.Commit})
	}
	for _, table := range tables {
		if err := w.table(table, w.records); err != nil {
			return err
		}
	}
	var purposes []*methods
	for _, m := range w.records {
		if err := m.readPurposes(w.filter(m)); err != nil {
			return err
		}
		if len(m.purposes) > 0 {
			purposes = append(purposes, m)
		}
	}
	if len(purposes) > 0 {
		if err := w.table(purposesTable, purposes); err != nil {
			return err
		}
	}
	if err := w.sensitivity(ctx, records); err != nil {
		return err
	}
	return errors.Join(w.file("codebook.csv", codebook(len(purposes) > 0)), w.file("methods.txt", w.methods()))
}

// emptyDir makes dir, or sees that nothing in it would be written over.
func emptyDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("the directory for the tables cannot be made: %w", err)
	}
	found, err := os.ReadDir(dir)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%s is not empty\nName a new directory", dir)
	}
	return err
}

type paperWriter struct {
	*Paper
	dir     string
	records []*methods
}

// filter returns the decisions that count: those that the last commit of the
// record covers, so that its head proves all that the tables count although a
// heed goes on writing.
func (w *paperWriter) filter(m *methods) *store.Filter {
	f := w.Query.filter()
	f.Last = max(1, m.last)
	return f
}

func (w *paperWriter) file(name string, text []byte) error {
	if err := os.WriteFile(filepath.Join(w.dir, name), text, 0o666); err != nil {
		var where *fs.PathError
		if errors.As(err, &where) {
			err = where.Err
		}
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return nil
}

// methods writes one paragraph about all records.
func (w *paperWriter) methods() []byte {
	var out bytes.Buffer
	m, empty := joint(w.records)
	if len(m.heads) > 0 {
		m.write(&out, w.Query.Words())
	}
	for _, name := range empty {
		fmt.Fprintf(&out, "The record %s holds no requests%s.\n\n", name, comma(w.Query.Words()))
	}
	fmt.Fprintf(&out, "Made with heed audit report --paper on %s. The tables are explained in codebook.csv;\neach .sql makes the .csv of its name: sqlite3 -csv -header audit.db < requests.sql\n", stamp(w.Now))
	return out.Bytes()
}

// table writes the rows of records, and beside them the query of each.
func (w *paperWriter) table(name string, records []*methods) error {
	if w.Step != nil {
		w.Step(name + ".csv")
	}
	var out bytes.Buffer
	t := csv.NewWriter(&out)
	for i, m := range records {
		file := name + ".sql"
		if len(w.records) > 1 {
			file = fmt.Sprintf("%s-%d.sql", name, slices.Index(w.records, m)+1)
		}
		rows, query, err := m.reader.Table(name, w.filter(m), m.commit)
		if err != nil {
			return err
		}
		if i == 0 {
			_ = t.Write(rows.Columns) // the writer keeps its error
		}
		if err := errors.Join(w.file(file, []byte(query)), m.read(name, rows, t)); err != nil {
			return err
		}
	}
	t.Flush()
	return errors.Join(t.Error(), w.file(name+".csv", out.Bytes()))
}

// read writes the rows of a table and notes what they contain.
func (m *methods) read(table string, rows *store.Rows, t *csv.Writer) error {
	defer rows.Close()
	for {
		values, err := rows.Next()
		if err != nil || values == nil {
			return err
		}
		cells := make([]string, len(values))
		for c, v := range values {
			cells[c] = csvCell(v)
		}
		_ = t.Write(cells)
		m.note(table, rows.Columns, cells)
	}
}

// sensitivity writes what would have been otherwise under each profile.
func (w *paperWriter) sensitivity(ctx context.Context, records []*store.Record) error {
	if w.Sensitivity == nil {
		return nil
	}
	var out bytes.Buffer
	t := csv.NewWriter(&out)
	_ = t.Write([]string{"record", "profile", "judged", "would_be_allowed", "would_be_refused", "for_another_reason", "another_verdict_share", "another_verdict_low", "another_verdict_high"})
	for i, r := range records {
		if w.Step != nil {
			w.Step("sensitivity.csv")
		}
		list, err := w.Sensitivity(ctx, r)
		if err != nil {
			return err
		}
		for _, s := range list {
			_ = t.Write(append([]string{w.records[i].row["record"], s.Profile, whole(s.Judged), whole(s.Allowed), whole(s.Refused), whole(s.Otherwise)}, shareCells(s.Allowed+s.Refused, s.Judged)...))
		}
		w.records[i].sensitivity = list
	}
	t.Flush()
	return errors.Join(t.Error(), w.file("sensitivity.csv", out.Bytes()))
}
