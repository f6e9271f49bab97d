package store

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_RowsAreSpeltInTheOrderOfTheSchema(t *testing.T) {
	t.Parallel()
	db := must.Get(connect(filepath.Join(t.TempDir(), "a file.db"), "rwc"))(t)
	defer db.Close()
	must.Get(db.Exec(schema))(t)
	for number := range tables {
		rows := must.Get(db.Query("SELECT * FROM " + table(number).String()))(t)
		rows.Close()
		if columns := rows.Columns(); !slices.Equal(columns, Schema.columns(table(number))) {
			t.Errorf("%v has the columns %v in SQLite, %v here", table(number), columns, Schema.columns(table(number)))
		}
	}
}

// cut reads the row at the start of b as cutRow does, and returns its values.
func cut(b []byte) (t table, values []any, rest []byte, err error) {
	t, id, rest, err := Schema.cutRow(b)
	if err != nil {
		return 0, nil, nil, err
	}
	for b = b[1 : len(b)-len(rest)]; len(b) > 0; {
		v, size := cutValue(b)
		var next driver.Value
		v.set(&next)
		values, b = append(values, next), b[size:]
	}
	if first, _ := values[0].(int64); first != id || len(values) != len(Schema.columns(t)) {
		err = fmt.Errorf("the id is %d, the values %v", id, values)
	}
	return t, values, rest, err
}

func TestHeed_RowsReadBackAsWritten(t *testing.T) {
	t.Parallel()
	values := []any{int64(-1), "h\x00\xffost", []byte{}, nil}
	row := must.Get(appendRow(nil, siteTable, values))(t)
	table, got, rest, err := cut(append(row, 9, 9))
	must.True(t, err == nil && table == siteTable && reflect.DeepEqual(got, values) && bytes.Equal(rest, []byte{9, 9}),
		"got %v %#v, rest %v, %v", table, got, rest, err)
	_, err = appendRow(nil, siteTable, []any{1.5})
	must.True(t, err != nil, "a number with a fraction was spelt")
}

// FuzzRow finds octets that read as a row and are not its one spelling.
func FuzzRow(f *testing.F) {
	f.Add([]byte{byte(siteTable), tagInteger, 2, tagText, 1, 'a', tagBlob, 0, tagNull})
	f.Add([]byte{byte(siteTable), tagInteger, 0x82, 0, tagText, 0x81, 0, 'a', tagBlob, 0, tagNull})
	f.Fuzz(func(t *testing.T, data []byte) {
		table, values, rest, err := cut(data)
		if errors.Is(err, errRow) {
			return
		}
		must.OK(t, err)
		again, err := appendRow(nil, table, values)
		must.True(t, err == nil && bytes.Equal(again, data[:len(data)-len(rest)]),
			"%x reads as %v %#v and is spelt %x (%v)", data, table, values, again, err)
	})
}

// While audit.db cannot be written, rows wait in memory up to maxQueued. Adding
// them takes a small multiple of that.
func TestHeed_TheRowsOfACommitTakeLittleMemory(t *testing.T) {
	var rows []byte
	for id := int64(1); len(rows) < 4<<20; id++ {
		values := make([]any, len(Schema.columns(entryTable)))
		for i := range values {
			values[i] = id * 1000
		}
		values[0], values[8], values[9], values[10] = id, "GET", []byte("/a/page/of/the/site.html"), nil
		rows, _ = appendRow(rows, entryTable, values)
		rows, _ = appendRow(rows, outcomeTable, []any{id, int64(0), int64(200), int64(1), int64(0), int64(12345), int64(83_000), int64(0), nil, nil, nil, nil, nil})
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var all rowsByTable
	must.Get(all.split(Schema, rows, 1))(t)
	taken := heap() - before
	must.True(t, taken <= 3*int64(len(rows)), "%d octets of rows take %d", len(rows), taken)
	runtime.KeepAlive(all.of)
}
