package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"heed/internal/base/safetext"
)

// CSV writes a value of any output. In texts what cannot be seen is written as
// escapes, and one that a program for tables might take for a formula has a ' before it.
func CSV(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	s, is := v.(string)
	if !is {
		s = fmt.Sprint(v)
	}
	if s = safetext.Visible(s); s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// Writer writes rows as CSV.
type Writer struct {
	w     *csv.Writer
	cells []string
}

// NewWriter returns a Writer that has written the names of the columns, if any. It writes to a
// buffer: see Flush.
func NewWriter(w io.Writer, names ...string) *Writer {
	x := &Writer{w: csv.NewWriter(w)}
	if len(names) > 0 {
		_ = x.Head(names) // the writer keeps its error
	}
	return x
}

// Head writes the names of the columns.
func (w *Writer) Head(names []string) error { return w.w.Write(names) }

// Row writes a row. The error is that of any row before.
func (w *Writer) Row(values ...any) error {
	w.cells = w.cells[:0]
	for _, v := range values {
		w.cells = append(w.cells, CSV(v))
	}
	return w.w.Write(w.cells)
}

// Flush writes what is in the buffer. The error is that of any row.
func (w *Writer) Flush() error {
	w.w.Flush()
	return w.w.Error()
}

// Names returns the names of columns.
func Names(columns []Column) (names []string) {
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

// Directory is a new directory for tables.
type Directory string

// NewDirectory makes the directory, which must be empty or not there.
func NewDirectory(path string) (Directory, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return "", fmt.Errorf("the directory for the tables cannot be made: %w", err)
	}
	found, err := os.ReadDir(path)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%s is not empty\nName a new directory", path)
	}
	return Directory(path), err
}

// Create makes a file.
func (d Directory) Create(name string) (*os.File, error) {
	f, err := os.Create(filepath.Join(string(d), name))
	if err != nil {
		if where, ok := errors.AsType[*fs.PathError](err); ok {
			err = where.Err
		}
		return nil, fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return f, nil
}

// Write writes a file.
func (d Directory) Write(name string, write func(io.Writer) error) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return nil
}
