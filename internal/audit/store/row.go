package store

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// commits is the table of the chain itself. Its number is no table's in the tail.
const commits Table = 0

// tables are the tables by their number, with their columns in the order of
// schema.sql.
var tables = [...]struct {
	name    string
	columns []string
}{
	commits: {"commits", []string{
		"n", "time", "run", "configuration", "asker", "site", "body", "snapshot", "policy", "ground", "entry", "outcomes", "exempt", "pruned", "hash", "marks",
	}},
	Run:           {"run", []string{"id", "time", "heed", "engine", "command", "note"}},
	Configuration: {"configuration", []string{"id", "hash", "text"}},
	Asker: {"asker", []string{
		"id", "client", "user", "client_name", "mode", "user_agent", "tokens", "declared", "sent", "sent_from",
	}},
	Site:     {"site", []string{"id", "scheme", "host", "port"}},
	Body:     {"body", []string{"id", "sha256", "size", "zlib"}},
	Snapshot: {"snapshot", []string{"id", "site", "time", "asked_as", "chain", "status", "headers", "body"}},
	Policy: {"policy", []string{
		"id", "site", "snapshot", "profile", "state", "status", "time", "fresh_until", "stale", "no_connection", "own", "error", "note",
	}},
	Ground: {"ground", []string{
		"id", "judged", "verdict", "reason", "token", "group_name", "rule", "line", "variant", "unseen", "settled", "detail", "policy", "configuration", "engine",
	}},
	Entry: {"entry", []string{
		"seq", "id", "time", "run", "asker", "port", "site", "ground", "method", "target", "raw", "redacted", "policy_age", "asked", "waited", "part", "page", "revises",
	}},
	Outcome: {"outcome", []string{
		"entry", "in_commit", "status", "from_site", "bytes_in", "bytes_out", "duration", "truncated", "error", "late",
	}},
	Exempt: {"exempt", []string{"id", "time", "count", "why"}},
}

// String returns the table's name in audit.db.
func (t Table) String() string {
	if int(t) < len(tables) {
		return tables[t].name
	}
	return fmt.Sprintf("table %d", uint8(t))
}

// columns returns the names of the table's columns, in the order in which its
// rows are spelt.
func (t Table) columns() []string { return tables[t].columns }

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

// appendSome is appendText for a text that is NULL when there is none.
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

// appendRow spells a row of t with values as database/sql has them: nil, int64,
// string or []byte. Another type is an error: heed writes none.
func appendRow[V any](b []byte, t Table, values []V) ([]byte, error) {
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
			return nil, fmt.Errorf("column %s of %s has a value of the type %T, which heed never writes", t.columns()[i], t, v)
		}
	}
	return b, nil
}

var errRow = errors.New("what stands there is no row of the record")

// cutRow reads the row at the start of b: its table, its values as appendRow
// takes them, and what comes after it. Blobs share memory with b. It takes nothing
// but the one spelling of a row.
func cutRow(b []byte) (t Table, values []any, rest []byte, err error) {
	if len(b) == 0 || int(b[0]) >= len(tables) || Table(b[0]) == commits {
		return 0, nil, nil, errRow
	}
	t, b = Table(b[0]), b[1:]
	values = make([]any, 0, len(t.columns()))
	for range t.columns() {
		var v any
		if v, b, err = cutValue(b); err != nil {
			return 0, nil, nil, err
		}
		values = append(values, v)
	}
	return t, values, b, nil
}

func cutValue(b []byte) (value any, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errRow
	}
	tag, b := b[0], b[1:]
	switch tag {
	case tagNull:
		return nil, b, nil
	case tagInteger:
		n, size := binary.Varint(b)
		if size <= 0 || size > 1 && b[size-1] == 0 {
			return nil, nil, errRow
		}
		return n, b[size:], nil
	case tagText, tagBlob:
		n, size := binary.Uvarint(b)
		if size <= 0 || size > 1 && b[size-1] == 0 || n > uint64(len(b)-size) {
			return nil, nil, errRow
		}
		data := b[size : size+int(n)]
		if tag == tagText {
			return string(data), b[size+int(n):], nil
		}
		return data[:len(data):len(data)], b[size+int(n):], nil
	}
	return nil, nil, errRow
}

// measureRow returns the table and the number of the row at the start of b, and
// its length. Of what cutRow takes, it does not look whether numbers are spelt
// as they should be.
func measureRow(b []byte) (t Table, id int64, length int, err error) {
	if len(b) == 0 || int(b[0]) >= len(tables) || Table(b[0]) == commits {
		return 0, 0, 0, errRow
	}
	t = Table(b[0])
	at := 1
	for column := range t.columns() {
		size := measureValue(b[at:])
		if size == 0 || column == 0 && b[at] != tagInteger {
			return 0, 0, 0, errRow
		}
		if column == 0 {
			id, _ = binary.Varint(b[at+1:])
		}
		at += size
	}
	return t, id, at, nil
}

// measureValue returns the length of the value at the start of b; 0 when there
// is none.
func measureValue(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case tagNull:
		return 1
	case tagInteger:
		if _, size := binary.Varint(b[1:]); size > 0 {
			return 1 + size
		}
	case tagText, tagBlob:
		if n, size := binary.Uvarint(b[1:]); size > 0 && n <= uint64(len(b)-1-size) {
			return 1 + size + int(n)
		}
	}
	return 0
}
