package store

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// Schema is the layout of the records that this heed begins. Those of earlier layouts
// are read, verified and completed from their tail, and then moved aside.
const Schema layout = 2

// layout numbers a layout of audit.db, and is its PRAGMA user_version. 0 is Schema.
type layout int64

// columns returns the names of the columns of t in the layout, in the order in which
// rows are encoded.
func (l layout) columns(t table) []string {
	names := tables[t].columns
	if l == 1 {
		return names[:len(names)-tables[t].added]
	}
	return names
}

// present returns statements that give a connection the columns which the layout
// lacks, so that queries name those of Schema; empty when it lacks none.
func (l layout) present() string {
	var b strings.Builder
	for t, described := range tables {
		missing := described.columns[len(l.columns(table(t))):]
		if len(missing) > 0 {
			fmt.Fprintf(&b, "CREATE TEMP VIEW %s AS SELECT *, NULL AS %s FROM main.%[1]s;\n", described.name, strings.Join(missing, ", NULL AS "))
		}
	}
	return b.String()
}

// schema returns the objects of the layout: tables and views, with their statements.
func (l layout) schema() (map[string]string, error) {
	want, err := expectedSchema()
	if err != nil || l == Schema {
		return want, err
	}
	want = maps.Clone(want)
	for t, described := range tables {
		for _, column := range described.columns[len(l.columns(table(t))):] {
			name := "table " + described.name
			want[name] = regexp.MustCompile(", "+column+" [A-Z]+").ReplaceAllString(want[name], "")
		}
	}
	return want, nil
}
