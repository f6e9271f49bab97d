// Package parquetfile writes tables as Apache Parquet, which DuckDB, Spark, pandas and
// others read at any size.
//
// Outside package: github.com/parquet-go/parquet-go.
package parquetfile

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Type is the type of a column.
type Type uint8

// The types of columns, and of their values in Row. Any value may be nil.
const (
	Text  Type = iota // string
	Int               // int64
	Float             // float64
	Flag              // int64: 0 or 1
	Time              // int64: microseconds since 1970, or string: RFC 3339
)

// Column is a column of a table.
type Column struct {
	Name string // lower-case letters, digits and _
	Type Type
}

// rowsPerGroup bounds the rows that are kept in memory before they are written.
const rowsPerGroup = 100_000

// Writer writes one table. It is not safe for concurrent use.
type Writer struct {
	w       *parquet.GenericWriter[any]
	columns []Column
	row     parquet.Row
	rows    int
}

// NewWriter begins a table in w. Close ends it; without that the file is not valid.
func NewWriter(w io.Writer, columns []Column) *Writer {
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		tag, kind := ",optional", reflect.TypeFor[string]()
		switch c.Type {
		case Int:
			kind = reflect.TypeFor[int64]()
		case Float:
			kind = reflect.TypeFor[float64]()
		case Flag:
			kind = reflect.TypeFor[bool]()
		case Time:
			kind, tag = reflect.TypeFor[int64](), ",optional,timestamp(microsecond)"
		default:
			tag += ",dict"
		}
		fields[i] = reflect.StructField{Name: "C" + fmt.Sprint(i), Type: kind, Tag: reflect.StructTag(`parquet:"` + c.Name + tag + `"`)}
	}
	schema := parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface())
	return &Writer{w: parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("heed", "", "")), columns: columns}
}

// Row writes a row: one value for each column.
func (p *Writer) Row(values []any) error {
	p.row = p.row[:0]
	for i, v := range values {
		value, err := p.columns[i].value(v)
		if err != nil {
			return err
		}
		defined := 1
		if value.IsNull() {
			defined = 0
		}
		p.row = append(p.row, value.Level(0, defined, i))
	}
	if _, err := p.w.WriteRows([]parquet.Row{p.row}); err != nil {
		return err
	}
	if p.rows++; p.rows%rowsPerGroup == 0 {
		return p.w.Flush()
	}
	return nil
}

// value returns v as a value of the column.
func (c Column) value(v any) (parquet.Value, error) {
	switch v := v.(type) {
	case nil:
		return parquet.NullValue(), nil
	case string:
		if c.Type == Time {
			t, err := time.Parse(time.RFC3339Nano, v)
			return parquet.Int64Value(t.UnixMicro()), err
		}
		if c.Type == Text {
			return parquet.ByteArrayValue([]byte(strings.ToValidUTF8(v, "\uFFFD"))), nil
		}
	case int64:
		switch c.Type {
		case Int, Time:
			return parquet.Int64Value(v), nil
		case Flag:
			return parquet.BooleanValue(v != 0), nil
		case Float:
			return parquet.DoubleValue(float64(v)), nil
		case Text:
			return parquet.ByteArrayValue(fmt.Append(nil, v)), nil
		}
	case float64:
		switch c.Type {
		case Float:
			return parquet.DoubleValue(v), nil
		case Text:
			return parquet.ByteArrayValue(fmt.Append(nil, v)), nil
		}
	case bool:
		if c.Type == Flag {
			return parquet.BooleanValue(v), nil
		}
	}
	return parquet.Value{}, fmt.Errorf("column %s: a value of type %T does not fit", c.Name, v)
}

// Close writes the end of the table.
func (p *Writer) Close() error { return p.w.Close() }
