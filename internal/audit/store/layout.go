package store

import (
	"fmt"
	"maps"
	"strings"
)

// Schema is the layout of the records that this heed begins. Those of layouts from oldest
// on are read, verified and completed from their tail, and then moved aside.
const (
	Schema layout = 3
	oldest layout = 2
)

// layout numbers a layout of audit.db, and is its PRAGMA user_version. 0 is Schema.
type layout int64

// added are the last columns of tables, which layout 2 lacks.
var added = map[table][]string{askerTable: {"signed_key", "signed_by"}}

// columns returns the names of the columns of t in the layout, in the order in which
// rows are encoded.
func (l layout) columns(t table) []string {
	names := tables[t].columns
	if l == oldest {
		return names[:len(names)-len(added[t])]
	}
	return names
}

// present returns statements that give a connection the columns which the layout
// lacks, so that queries name those of Schema; empty when it lacks none.
func (l layout) present() string {
	if l != oldest {
		return ""
	}
	var b strings.Builder
	for t, columns := range added {
		fmt.Fprintf(&b, "CREATE TEMP VIEW %s AS SELECT *, NULL AS %s FROM main.%[1]s;\n", t, strings.Join(columns, ", NULL AS "))
	}
	return b.String()
}

// objects returns the objects of the layout, tables and views with their statements, by those
// of Schema.
func (l layout) objects(want map[string]string) map[string]string {
	if l != oldest {
		return want
	}
	want = maps.Clone(want)
	for t, columns := range added {
		name := "table " + t.String()
		want[name] = strings.ReplaceAll(want[name], ", "+strings.Join(columns, " TEXT, ")+" TEXT", "")
	}
	delete(want, "table counts")
	delete(want, "index revised")
	return want
}
