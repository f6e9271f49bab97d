package store

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func TestHeed_RowsAreSpeltInTheOrderOfTheSchema(t *testing.T) {
	db, err := connect(filepath.Join(t.TempDir(), "audit.db"), "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(schema); err != nil {
		t.Fatal(err)
	}
	for number := range tables {
		rows, err := db.Query("SELECT * FROM " + Table(number).String())
		if err != nil {
			t.Fatal(err)
		}
		names, err := rows.Columns()
		rows.Close()
		if err != nil || !slices.Equal(names, Table(number).columns()) {
			t.Errorf("%v has the columns %v in SQLite (%v), %v here", Table(number), names, err, Table(number).columns())
		}
	}
}

func TestHeed_RowsReadBackAsWritten(t *testing.T) {
	values := []any{int64(-1), "h\x00\xffost", []byte{}, nil}
	row, err := appendRow(nil, Site, values)
	if err != nil {
		t.Fatal(err)
	}
	table, got, rest, err := cutRow(append(row, 9, 9))
	if err != nil || table != Site || !reflect.DeepEqual(got, values) || !bytes.Equal(rest, []byte{9, 9}) {
		t.Errorf("got %v %#v, rest %v, %v", table, got, rest, err)
	}
	if _, err := appendRow(nil, Site, []any{1.5}); err == nil {
		t.Error("a number with a fraction was spelt")
	}
}

// FuzzRow finds octets that read as a row and are not its one spelling.
func FuzzRow(f *testing.F) {
	f.Add([]byte{byte(Site), tagInteger, 2, tagText, 1, 'a', tagBlob, 0, tagNull})
	f.Add([]byte{byte(Site), tagInteger, 0x82, 0, tagText, 0x81, 0, 'a', tagBlob, 0, tagNull})
	f.Fuzz(func(t *testing.T, data []byte) {
		table, values, rest, err := cutRow(data)
		if err != nil {
			return
		}
		again, err := appendRow(nil, table, values)
		if err != nil || !bytes.Equal(again, data[:len(data)-len(rest)]) {
			t.Errorf("%x reads as %v %#v and is spelt %x (%v)", data, table, values, again, err)
		}
	})
}
