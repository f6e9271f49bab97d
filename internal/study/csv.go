package study

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"heed/internal/table"
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
	}{Made: r.Made.UTC().Format("2006-01-02T15:04:05Z"), Heed: r.Heed, Partial: r.Partial, Requests: r.Requests, Sites: nonNil(r.Sites), Methods: r.Methods()}
	for _, t := range r.Tables {
		x := table{t.Number, t.Name, t.Title, nonNil(t.Notes), []map[string]any{}}
		for _, row := range t.Rows {
			cells := map[string]any{}
			for i, c := range t.Columns {
				cells[c.Name] = row[i]
			}
			x.Rows = append(x.Rows, cells)
		}
		out.Tables = append(out.Tables, x)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Directory writes a study to CSV files.
type Directory struct {
	dir   string
	file  *os.File
	w     *csv.Writer
	cols  []RowColumn
	cells []string
}

// NewDirectory makes dir, which must be empty or not there, and begins requests.csv.
func NewDirectory(dir string) (*Directory, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the directory for the tables cannot be made: %w", err)
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%s is not empty\nName a new directory", dir)
	}
	f, err := os.Create(filepath.Join(dir, "requests.csv"))
	if err != nil {
		return nil, fmt.Errorf("requests.csv cannot be written: %w", err)
	}
	d := &Directory{dir: dir, file: f, w: csv.NewWriter(f), cols: RowColumns()}
	for _, c := range d.cols {
		d.cells = append(d.cells, c.Name)
	}
	return d, d.w.Write(d.cells)
}

// Row writes a request to requests.csv.
func (d *Directory) Row(r *Row) error {
	for i, c := range d.cols {
		d.cells[i] = table.CSV(c.value(r))
	}
	return d.w.Write(d.cells)
}

// Close writes the tables, their queries, the codebook and the methods beside
// requests.csv.
func (d *Directory) Close(r *Result) error {
	d.w.Flush()
	err := errors.Join(d.w.Error(), d.file.Close())
	if r == nil {
		return err
	}
	for _, t := range r.Tables {
		err = errors.Join(err, d.table(t))
		if t.Query != "" {
			err = errors.Join(err, d.text(t.Name+".sql", t.Query))
		}
	}
	return errors.Join(err, d.text("load.sql", loadScript()), d.text("codebook.csv", codebook()), d.text("methods.txt", r.Methods()+"\n"+MethodsText()))
}

func (d *Directory) text(name, text string) error {
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o666); err != nil {
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return nil
}

func (d *Directory) table(t *Table) error {
	var out strings.Builder
	w := csv.NewWriter(&out)
	var head []string
	for _, c := range t.Columns {
		head = append(head, c.Name)
	}
	_ = w.Write(head)
	for _, row := range t.Rows {
		var cells []string
		for _, v := range row {
			cells = append(cells, table.CSV(v))
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return d.text(t.Name+".csv", out.String())
}

// codebook explains every column of every file.
func codebook() string {
	var out strings.Builder
	w := csv.NewWriter(&out)
	_ = w.Write([]string{"file", "column", "unit", "meaning"})
	for _, c := range RowColumns() {
		_ = w.Write([]string{"requests", c.Name, strings.ToLower(c.Type), c.About})
	}
	for _, d := range Definitions() {
		for _, c := range d.Columns {
			_ = w.Write([]string{d.Name, c.Name, units[c.Kind], c.About})
		}
	}
	w.Flush()
	return out.String()
}

var units = map[Kind]string{Text: "text", Count: "count", Share: "share, 0 to 1", Seconds: "seconds", Bytes: "octets", Moment: "RFC 3339, UTC", Number: "number", Digest: "hexadecimal digits", Bound: "share, 0 to 1"}

// loadScript reads requests.csv into a table with types, for sqlite3.
func loadScript() string {
	var b strings.Builder
	b.WriteString("-- In this directory: sqlite3 -csv -header :memory: '.read load.sql' '.read obedience.sql'\n")
	b.WriteString("-- DuckDB needs only: CREATE TABLE requests AS SELECT * FROM 'requests.csv';\n")
	b.WriteString("CREATE TABLE requests (\n")
	cols := RowColumns()
	for i, c := range cols {
		comma := ","
		if i == len(cols)-1 {
			comma = ""
		}
		if c.Name == "n" {
			comma = " PRIMARY KEY" + comma
		}
		fmt.Fprintf(&b, "  %s %s%s\n", c.Name, c.Type, comma)
	}
	b.WriteString(");\n.import --csv --skip 1 requests.csv requests\n")
	return b.String()
}
