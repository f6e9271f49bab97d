package studycmd

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"heed/internal/parquetfile"
	"heed/internal/study"
)

// outputs are the files that a study writes.
type outputs struct {
	csv     *study.Directory
	file    *os.File
	buffer  *bufio.Writer
	parquet *parquetfile.Writer
	columns []study.RowColumn
	values  []any
}

// open begins the files of --csv and --parquet.
func (c *StudyCmd) open(o *study.Options) (out *outputs, err error) {
	out = &outputs{}
	if c.CSV != "" {
		if out.csv, err = study.NewDirectory(c.CSV); err != nil {
			return nil, err
		}
		o.Rows = out.csv.Row
	}
	if c.Parquet == "" {
		return out, nil
	}
	if out.file, err = os.OpenFile(c.Parquet, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		return nil, fmt.Errorf("--parquet: the file cannot be made: %w\nName a new file", err)
	}
	out.buffer = bufio.NewWriterSize(out.file, 1<<20)
	out.columns = study.RowColumns()
	columns := make([]parquetfile.Column, len(out.columns))
	for i, column := range out.columns {
		columns[i] = parquetfile.Column{Name: column.Name, Type: parquetType(column)}
	}
	out.parquet, out.values = parquetfile.NewWriter(out.buffer, columns), make([]any, len(columns))
	o.Rows = out.row
	return out, nil
}

func parquetType(c study.RowColumn) parquetfile.Type {
	switch {
	case c.Name == "time":
		return parquetfile.Time
	case c.Type == "INTEGER":
		return parquetfile.Int
	case c.Type == "REAL":
		return parquetfile.Float
	}
	return parquetfile.Text
}

// row writes a request to all files.
func (o *outputs) row(r *study.Row) error {
	for i := range o.columns {
		o.values[i] = o.columns[i].Value(r)
	}
	err := o.parquet.Row(o.values)
	if o.csv != nil {
		err = errors.Join(err, o.csv.Row(r))
	}
	return err
}

// close ends the files; r is nil when the study failed.
func (o *outputs) close(r *study.Result) (err error) {
	if o.csv != nil {
		err = o.csv.Close(r)
	}
	if o.file != nil {
		err = errors.Join(err, o.parquet.Close(), o.buffer.Flush(), o.file.Close())
	}
	return err
}
