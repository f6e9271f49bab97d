package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
)

// table writes the rows of all records, and beside them the query of each.
func (w *paperWriter) table(name string) error {
	if w.Step != nil {
		w.Step(name + ".csv")
	}
	var out bytes.Buffer
	t := csv.NewWriter(&out)
	for i := range w.records {
		text, err := w.query(name, i)
		if err != nil {
			return err
		}
		file := name + ".sql"
		if len(w.records) > 1 {
			file = fmt.Sprintf("%s-%d.sql", name, i+1)
		}
		if err := errors.Join(w.file(file, []byte(text)), w.rows(t, name, text, i)); err != nil {
			return err
		}
	}
	t.Flush()
	return errors.Join(t.Error(), w.file(name+".csv", out.Bytes()))
}

// rows runs the query on one record; the first record's has the heads.
func (w *paperWriter) rows(t *csv.Writer, table, query string, i int) error {
	rows, err := w.records[i].query(w.ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	if i == 0 {
		_ = t.Write(columns) // the writer keeps its error
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for c := range into {
		into[c] = &values[c]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		cells := make([]string, len(values))
		for c, v := range values {
			cells[c] = csvCell(v)
		}
		_ = t.Write(cells)
		w.told[i].note(table, columns, cells)
	}
	return rows.Err()
}

// sensitivity writes what would have been otherwise under each profile.
func (w *paperWriter) sensitivity() error {
	if w.Sensitivity == nil {
		return nil
	}
	var out bytes.Buffer
	t := csv.NewWriter(&out)
	_ = t.Write([]string{"record", "profile", "judged", "would_be_allowed", "would_be_refused", "for_another_reason"})
	for i, r := range w.records {
		if w.Step != nil {
			w.Step("sensitivity.csv")
		}
		list, err := w.Sensitivity(w.ctx, r)
		if err != nil {
			return err
		}
		for _, s := range list {
			_ = t.Write([]string{w.told[i].store, s.Profile, whole(s.Judged), whole(s.Allowed), whole(s.Refused), whole(s.Otherwise)})
		}
		w.told[i].sensitivity = list
	}
	t.Flush()
	return errors.Join(t.Error(), w.file("sensitivity.csv", out.Bytes()))
}
