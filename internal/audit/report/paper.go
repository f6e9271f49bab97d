package report

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed paper
var paperFiles embed.FS

// tables are those of a paper, in the order in which a reader needs them. Each
// is made by the query that is written beside it.
var tables = []string{"record", "requests", "rules", "coverage", "policies", "hours", "outcomes"}

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
	Sensitivity func(context.Context, Record) ([]Sensitivity, error)
	// Step is told what is being made; nil: nobody asks.
	Step func(what string)
}

// Write writes the tables with the queries behind them, their codebook and a
// paragraph on methods into dir, which must be empty or not there.
func (p *Paper) Write(ctx context.Context, dir string, records []Record) error {
	records, release, err := frozen(ctx, records)
	if err != nil {
		return err
	}
	defer release()
	if err := emptyDir(dir); err != nil {
		return err
	}
	w := &paperWriter{p, ctx, dir, records, make([]*methods, len(records)), make([]string, len(records))}
	for i, r := range records {
		if err := w.bound(i, r); err != nil {
			return err
		}
	}
	for _, table := range tables {
		if err := w.table(table); err != nil {
			return err
		}
	}
	if err := w.sensitivity(); err != nil {
		return err
	}
	codebook, err := paperFiles.ReadFile("paper/codebook.csv")
	return errors.Join(err, w.file("codebook.csv", codebook), w.file("methods.txt", w.methods()))
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
	ctx     context.Context
	dir     string
	records []Record
	told    []*methods
	heads   []string // by record: which commit the tables end with
}

// bound has the tables of a record end where its chain ends now, so that the
// head covers all that they count although a heed goes on writing.
func (w *paperWriter) bound(i int, r Record) error {
	var n, last int64
	err := each(r, "SELECT n, entry FROM commits WHERE n = (SELECT max(n) FROM commits)", func(scan scanner) error { return scan(&n, &last) })
	w.heads[i] = fmt.Sprintf("n = %d", n)
	w.told[i] = &methods{record: r, last: last}
	return err
}

// query returns the query of a table for a record.
func (w *paperWriter) query(table string, i int) (string, error) {
	text, err := paperFiles.ReadFile("paper/" + table + ".sql")
	if err != nil {
		return "", err
	}
	return strings.NewReplacer("{{chosen}}", w.chosen(i), "{{head}}", w.heads[i]).Replace(string(text)), nil
}

// chosen is the condition on the decisions that count.
func (w *paperWriter) chosen(i int) string {
	all := []string{fmt.Sprintf("seq <= %d", w.told[i].last)}
	if q := &w.Query; !q.From.IsZero() {
		all = append(all, fmt.Sprintf("time >= %d", q.From.UnixMicro()))
	}
	if q := &w.Query; !q.To.IsZero() {
		all = append(all, fmt.Sprintf("time < %d", q.To.UnixMicro()))
	}
	if host := strings.ToLower(w.Query.Host); host != "" {
		condition := "host = " + literal(host)
		if below, ok := strings.CutPrefix(host, "*"); ok {
			condition = fmt.Sprintf("substr(host, -length(%s)) = %[1]s", literal(below))
		}
		all = append(all, "site IN (SELECT id FROM site WHERE "+condition+")")
	}
	if name := literal(w.Query.Client); w.Query.Client != "" {
		all = append(all, fmt.Sprintf("asker IN (SELECT id FROM asker WHERE client = %s OR user = %[1]s OR client_name = %[1]s OR EXISTS (SELECT 1 FROM json_each(tokens) WHERE value = %[1]s COLLATE NOCASE))", name))
	}
	return strings.Join(all, " AND ")
}

// literal writes a text as SQL has it.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

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

// methods writes a paragraph about each record.
func (w *paperWriter) methods() []byte {
	var out bytes.Buffer
	for _, m := range w.told {
		m.write(&out, w.Query.Words())
	}
	fmt.Fprintf(&out, "Made with heed audit report --paper on %s. The tables are explained in codebook.csv;\neach .sql makes the .csv of its name: sqlite3 -csv -header audit.db < requests.sql\n", stamp(w.Now))
	return out.Bytes()
}
