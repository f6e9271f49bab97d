package study

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"heed/internal/output/table"
)

// WriteJSON writes the tables as one JSON object: for each its rows as objects by the
// names of the columns. Values that are not known or not defined are null.
func (r *Result) WriteJSON(w io.Writer) error {
	type table struct {
		Number int              `json:"number"`
		Name   string           `json:"name"`
		Title  string           `json:"title"`
		Notes  []string         `json:"notes"`
		Rows   []map[string]any `json:"rows"`
	}
	out := struct {
		Made     string   `json:"made"`
		Heed     string   `json:"heed"`
		Partial  bool     `json:"partial"`
		Requests int64    `json:"requests"`
		Sites    []string `json:"sites"`
		Tables   []table  `json:"tables"`
		Methods  string   `json:"methods"`
	}{Made: r.Made.UTC().Format("2006-01-02T15:04:05Z"), Heed: r.Heed, Partial: r.Partial, Requests: r.Requests, Sites: append([]string{}, r.Sites...), Methods: r.Methods()}
	for _, t := range r.Tables {
		x := table{t.Number, t.Name, t.Title, append([]string{}, t.Notes...), []map[string]any{}}
		columns := t.Written()
		for _, row := range t.Rows {
			cells := map[string]any{}
			for i, v := range t.written(row) {
				cells[columns[i].Name] = v
			}
			x.Rows = append(x.Rows, cells)
		}
		out.Tables = append(out.Tables, x)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// Directory writes a study to CSV files.
type Directory struct {
	dir  table.Directory
	file *os.File
	w    *table.Writer
}

// NewDirectory makes dir, which must be empty or not there, and begins requests.csv.
func NewDirectory(path string) (*Directory, error) {
	dir, err := table.NewDirectory(path)
	if err != nil {
		return nil, err
	}
	f, err := dir.Create("requests.csv")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range rowColumns() {
		names = append(names, c.Name)
	}
	return &Directory{dir, f, table.NewWriter(f, names...)}, nil
}

// Row writes a request to requests.csv.
func (d *Directory) Row(values ...any) error { return d.w.Row(values...) }

// Close writes the tables, their queries, the codebook and the methods beside
// requests.csv.
func (d *Directory) Close(r *Result) error {
	err := errors.Join(d.w.Flush(), d.file.Close())
	if r == nil {
		return err
	}
	for _, t := range r.Tables {
		err = errors.Join(err, d.dir.Write(t.Name+".csv", func(w io.Writer) error { return writeTable(w, t) }))
		if t.Query != "" {
			err = errors.Join(err, d.text(t.Name+".sql", t.Query))
		}
	}
	return errors.Join(err, d.text("load.sql", loadScript()), d.dir.Write("codebook.csv", codebook), d.text("methods.txt", r.Methods()+"\n"+MethodsText()))
}

func (d *Directory) text(name, text string) error {
	return d.dir.Write(name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

func writeTable(out io.Writer, t *Table) error {
	w := table.NewWriter(out, table.Names(t.Written())...)
	for _, row := range t.Rows {
		_ = w.Row(t.written(row)...) // Flush has its error
	}
	return w.Flush()
}

// codebook explains every column of every file.
func codebook(out io.Writer) error {
	w := table.NewWriter(out, "file", "column", "unit", "meaning")
	for _, c := range rowColumns() {
		_ = w.Row("requests", c.Name, strings.ToLower(c.Type), c.About)
	}
	for _, d := range Definitions() {
		for _, c := range d.Written() {
			_ = w.Row(d.Name, c.Name, units[c.Kind], c.About)
		}
	}
	return w.Flush()
}

var units = map[table.Kind]string{table.Text: "text", table.Count: "count", table.Share: "share, 0 to 1", table.Seconds: "seconds", table.Bytes: "octets", table.Moment: "RFC 3339, UTC", table.Number: "number", table.Digest: "hexadecimal digits", table.Interval: "share, 0 to 1"}

// loadScript reads requests.csv into a table with types, for sqlite3.
func loadScript() string {
	var b strings.Builder
	b.WriteString("-- In this directory: sqlite3 -csv -header :memory: '.read load.sql' '.read obedience.sql'\n")
	b.WriteString("-- DuckDB needs only: CREATE TABLE requests AS SELECT * FROM 'requests.csv';\n")
	var columns []string
	for _, c := range rowColumns() {
		columns = append(columns, "  "+c.Name+" "+c.Type)
	}
	columns[0] += " PRIMARY KEY" // the number
	b.WriteString("CREATE TABLE requests (\n" + strings.Join(columns, ",\n") + "\n);\n.import --csv --skip 1 requests.csv requests\n")
	return b.String()
}
