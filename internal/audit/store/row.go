package store

import (
	"database/sql/driver"
	_ "embed" // schema.sql, views.sql
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heed/internal/judge/reason"
)

//go:embed schema.sql
var schema string

//go:embed views.sql
var viewsText string

var views = reason.InSQL(viewsText)

// table numbers a table of the record, in the order in which a commit covers
// them: a row is after the rows that it refers to.
type table uint8

// The tables of the record. The numbers are part of the tail and of the chain:
// they never change.
const (
	runTable table = 1 + iota
	configurationTable
	askerTable
	siteTable
	bodyTable
	snapshotTable
	policyTable
	groundTable
	entryTable
	outcomeTable
	exemptTable
	eventTable
)

// commits is the table of the chain. Its number is not used in the tail.
const commits table = 0

// reference is a column that refers to a row of another table.
type reference struct {
	column int
	to     table
}

// tables are the tables by their number, with their columns in the order of
// schema.sql, and the references among these.
var tables = [...]struct {
	name       string
	columns    []string
	references []reference
}{
	commits: {"commits", []string{
		"n", "time", "run", "configuration", "asker", "site", "body", "snapshot", "policy", "ground", "entry", "outcomes", "exempt", "pruned", "hash", "marks", "event", "salt", "hashes", "ended",
	}, nil},
	runTable:           {"run", []string{"id", "time", "heed", "engine", "command", "note"}, nil},
	configurationTable: {"configuration", []string{"id", "hash", "text"}, nil},
	askerTable: {"asker", []string{
		"id", "client", "user", "client_name", "mode", "user_agent", "tokens", "declared", "sent", "sent_from", "purpose", "signed_key", "signed_by", "also_obey",
	}, nil},
	siteTable: {"site", []string{"id", "scheme", "host", "port"}, nil},
	bodyTable: {"body", []string{"id", "sha256", "size", "zlib"}, nil},
	snapshotTable: {"snapshot", []string{
		"id", "site", "time", "asked_as", "chain", "status", "headers", "body",
	}, []reference{{1, siteTable}, {7, bodyTable}}},
	policyTable: {"policy", []string{
		"id", "site", "snapshot", "profile", "state", "status", "time", "fresh_until", "stale", "no_connection", "own", "error", "note",
	}, []reference{{1, siteTable}, {2, snapshotTable}}},
	groundTable: {"ground", []string{
		"id", "judged", "verdict", "reason", "token", "group_name", "rule", "line", "variant", "unseen", "settled", "detail", "policy", "configuration", "engine", "signals",
	}, []reference{{12, policyTable}, {13, configurationTable}}},
	entryTable: {"entry", []string{
		"seq", "id", "time", "run", "asker", "port", "site", "ground", "method", "target", "raw", "redacted", "policy_age", "asked", "waited", "part", "page", "revises", "turn",
	}, []reference{{3, runTable}, {4, askerTable}, {6, siteTable}, {7, groundTable}}},
	outcomeTable: {"outcome", []string{
		"entry", "in_commit", "status", "from_site", "bytes_in", "bytes_out", "duration", "truncated", "error", "late", "site_status", "site_answer", "signals",
	}, []reference{{9, groundTable}}},
	exemptTable: {"exempt", []string{"id", "time", "count", "why"}, nil},
	eventTable:  {"event", []string{"id", "time", "kind", "site", "name", "count", "status", "detail"}, []reference{{3, siteTable}}},
}

// String returns the table's name in audit.db.
func (t table) String() string {
	if int(t) < len(tables) {
		return tables[t].name
	}
	return fmt.Sprintf("table %d", uint8(t))
}

// The tags of a row's values.
const (
	tagNull    = 0
	tagInteger = 1
	tagText    = 2
	tagBlob    = 3
)

func appendNull(b []byte) []byte { return append(b, tagNull) }

func appendInteger(b []byte, n int64) []byte { return binary.AppendVarint(append(b, tagInteger), n) }

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(append(b, tagText), uint64(len(s))), s...)
}

// appendSome appends a text; NULL for the empty one.
func appendSome(b []byte, s string) []byte {
	if s == "" {
		return appendNull(b)
	}
	return appendText(b, s)
}

func appendBlob[T string | []byte](b []byte, data T) []byte {
	return append(binary.AppendUvarint(append(b, tagBlob), uint64(len(data))), data...)
}

func appendFlag(b []byte, set bool) []byte {
	if set {
		return appendInteger(b, 1)
	}
	return appendInteger(b, 0)
}

// appendRow appends the encoded row of t with values as database/sql returns them:
// nil, int64, string or []byte. Another type, which heed never writes, is an error.
func appendRow[V any](b []byte, t table, values []V) ([]byte, error) {
	b = append(b, byte(t))
	for i, value := range values {
		switch v := any(value).(type) {
		case nil:
			b = appendNull(b)
		case int64:
			b = appendInteger(b, v)
		case string:
			b = appendText(b, v)
		case []byte:
			b = appendBlob(b, v)
		default:
			return nil, fmt.Errorf("column %s of %s has a value of the type %T, which heed never writes", tables[t].columns[i], t, v)
		}
	}
	return b, nil
}

var errRow = errors.New("these octets are not a row of the record")

// cutRow reads the row of the layout at the start of b: its table, its id, which is 0
// when it is no integer, and the octets after it. It returns errRow for any other than
// the one encoding of a row.
func (l layout) cutRow(b []byte) (t table, id int64, rest []byte, err error) {
	if len(b) == 0 || int(b[0]) >= len(tables) || table(b[0]) == commits {
		return 0, 0, nil, errRow
	}
	if t, rest = table(b[0]), b[1:]; !l.has(t) {
		return 0, 0, nil, errRow
	}
	for i := range l.columns(t) {
		v, size := cutValue(rest)
		if size == 0 {
			return 0, 0, nil, errRow
		}
		if i == 0 {
			id = v.number
		}
		rest = rest[size:]
	}
	return t, id, rest, nil
}

// value is a value of an encoded row, with which it shares memory.
type value struct {
	tag    byte
	number int64  // of tagInteger; else 0
	octets []byte // of tagText and tagBlob; else nil
}

// cutValue reads the value at the start of b, and returns the size of its encoding: 0
// for any other than the one encoding of a value.
func cutValue(b []byte) (v value, size int) {
	if len(b) == 0 {
		return v, 0
	}
	v.tag, b = b[0], b[1:]
	switch v.tag {
	case tagNull:
		return v, 1
	case tagInteger:
		if len(b) > 0 && b[0] < 0x80 { // most are small
			return value{tag: tagInteger, number: int64(b[0]>>1) ^ -int64(b[0]&1)}, 2
		}
		if v.number, size = binary.Varint(b); size <= 0 || size > 1 && b[size-1] == 0 {
			return v, 0
		}
		return v, 1 + size
	case tagText, tagBlob:
		if len(b) > 0 && b[0] < 0x80 && int(b[0]) < len(b) {
			v.octets = b[1 : 1+b[0] : 1+b[0]]
			return v, 2 + int(b[0])
		}
		n, size := binary.Uvarint(b)
		if size <= 0 || size > 1 && b[size-1] == 0 || n > uint64(len(b)-size) {
			return v, 0
		}
		end := size + int(n)
		v.octets = b[size:end:end]
		return v, 1 + end
	}
	return v, 0
}

// set sets *to to v as appendRow takes it. An equal number or text is kept, since
// another needs memory.
func (v value) set(to *driver.Value) {
	switch v.tag {
	case tagInteger:
		if n, ok := (*to).(int64); !ok || n != v.number {
			*to = v.number
		}
	case tagText:
		if s, ok := (*to).(string); !ok || s != string(v.octets) {
			*to = string(v.octets)
		}
	case tagBlob:
		*to = v.octets
	default:
		*to = nil
	}
}

// Schema is the layout of the records that this heed begins. Those of layouts from oldest
// on are read, verified and completed from their tail, and then moved aside.
const (
	Schema layout = 4
	oldest layout = 2
)

// layout numbers a layout of audit.db, and is its PRAGMA user_version. 0 is that of a
// file without tables.
type layout int64

// added are the last columns of tables, with their types, by the layout that added them.
var added = map[layout]map[table][]string{
	3: {askerTable: {"signed_key TEXT", "signed_by TEXT"}},
	4: {askerTable: {"also_obey TEXT"}, entryTable: {"turn INTEGER"}, commits: {"event INTEGER NOT NULL", "salt BLOB NOT NULL", "hashes BLOB NOT NULL", "ended BLOB NOT NULL"}},
}

// created are the tables that are not in the first layout, by the layout that added them.
var created = map[table]layout{eventTable: 4}

// has reports whether the layout has the table t.
func (l layout) has(t table) bool { return l >= created[t] }

// lacks returns the definitions of the last columns of t that the layout lacks, in their order.
func (l layout) lacks(t table) (columns []string) {
	for later := max(l, oldest) + 1; later <= Schema; later++ {
		columns = append(columns, added[later][t]...)
	}
	return columns
}

// columns returns the names of the columns of t in the layout, in the order in which
// rows are encoded; none for a table that it lacks.
func (l layout) columns(t table) []string {
	if !l.has(t) {
		return nil
	}
	names := tables[t].columns
	return names[:len(names)-len(l.lacks(t))]
}

// selection returns the columns of t for queries that name those of Schema: NULL in place of
// those that the layout lacks.
func (l layout) selection(t table) string {
	return strings.Join(append(slices.Clone(l.columns(t)), l.nulls(t)...), ", ")
}

func (l layout) nulls(t table) (columns []string) {
	for _, name := range tables[t].columns[len(l.columns(t)):] {
		columns = append(columns, "NULL AS "+name)
	}
	return columns
}

// present returns statements that give a connection the tables and columns which the layout
// lacks, so that queries name those of Schema; empty when it lacks none.
func (l layout) present() string {
	var b strings.Builder
	for t := runTable; int(t) < len(tables); t++ {
		switch {
		case !l.has(t):
			fmt.Fprintf(&b, "CREATE TEMP VIEW %s AS SELECT %s WHERE FALSE;\n", t, l.selection(t))
		case len(l.lacks(t)) > 0:
			fmt.Fprintf(&b, "CREATE TEMP VIEW %s AS SELECT %s FROM main.%[1]s;\n", t, l.selection(t))
		}
	}
	return b.String()
}

// presentEntries returns statements that replace the table entry by those of its rows that fit
// a condition, with all columns of Schema.
func (l layout) presentEntries(where string) string {
	return fmt.Sprintf("DROP VIEW IF EXISTS temp.entry;\nCREATE TEMP VIEW entry AS SELECT %s FROM main.entry WHERE %s;\n", l.selection(entryTable), where)
}

// objects returns the objects of the layout, tables and views with their statements, by those
// of Schema.
func (l layout) objects(want map[string]string) map[string]string {
	if l == Schema {
		return want
	}
	want = maps.Clone(want)
	for t := range tables {
		name := "table " + table(t).String()
		for _, column := range l.lacks(table(t)) {
			want[name] = strings.Replace(want[name], ", "+column, "", 1)
		}
		if !l.has(table(t)) {
			delete(want, name)
		}
	}
	want["table outcome"] = strings.Replace(want["table outcome"], "from_site INTEGER,", "from_site INTEGER NOT NULL,", 1)
	delete(want, "table hashes")
	if l < counted {
		delete(want, "table counts")
		delete(want, "index revised")
	}
	return want
}
