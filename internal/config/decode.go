package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"heed/internal/base/memo"
	"heed/internal/output/console"
)

// decode overwrites the settings of c with those of a TOML document. The error lists
// all problems. The library would stop at the first value of a wrong type, so it only
// parses the document, and decoder sets the fields by the table of kinds.
func (c *Config) decode(file string, data []byte) error {
	var tree map[string]any
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // a byte order mark, as editors on Windows write it
	if err := toml.Unmarshal(data, &tree); err != nil {
		return syntaxError(file, data, err)
	}
	d := &decoder{file: file, lines: keyLines(data), wrong: map[string]map[string]bool{}}
	d.table(reflect.ValueOf(c).Elem(), tree, "")
	d.checking = true
	c.check(d)
	if len(d.problems) > 0 && c.File != "" {
		c.checkFiles(d)
	}
	c.lines = d.lines
	return d.err()
}

// octet matches the library's name of a character, which is that of its first octet.
var octet = memo.Expression(`U\+00[89A-F][0-9A-F] '.'`)

func syntaxError(file string, data []byte, err error) error {
	var at *toml.DecodeError
	if !errors.As(err, &at) {
		return fmt.Errorf("%s: %w", file, err)
	}
	line, column := at.Position()
	text := "this is not TOML: " + strings.TrimPrefix(at.Error(), "toml: ")
	if rows := bytes.Split(data, []byte("\n")); line <= len(rows) && column <= len(rows[line-1]) {
		r, _ := utf8.DecodeRune(rows[line-1][column-1:])
		text = octet().ReplaceAllString(text, fmt.Sprintf("%#U", r))
	}
	if strings.Contains(text, "escape character") {
		text += `; write two backslashes, or the text in single quotes`
	}
	return Mistakes{{File: file, Line: line, Column: column, Text: text}}
}

// decoder decodes one file and collects its problems.
type decoder struct {
	file     string
	lines    map[string]int // of each key, by its full dotted name
	scope    string         // prefix in lines of the keys of the current array entry; empty outside of one
	problems Mistakes

	checking bool                       // the values are decoded, and are checked
	wrong    map[string]map[string]bool // keys, by their scope, whose values could not be decoded
}

// problem records a problem of the key with the full name path, unless its value could not
// be decoded: that has been recorded.
func (d *decoder) problem(path, format string, args ...any) {
	switch {
	case d.checking && d.isWrong(path):
		return
	case !d.checking:
		d.setWrong(path)
	}
	d.problems = append(d.problems, Finding{File: d.file, Line: lineOf(d.lines, d.scope, path), Key: path, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) setWrong(path string) {
	if d.wrong[d.scope] == nil {
		d.wrong[d.scope] = map[string]bool{}
	}
	d.wrong[d.scope][path] = true
}

// isWrong reports whether the value of one of the keys, of their tables or of their
// elements could not be decoded, so that nothing follows from it.
func (d *decoder) isWrong(paths ...string) bool {
	for wrong := range d.wrong[d.scope] {
		for _, path := range paths {
			if wrong == path || strings.HasPrefix(wrong, path+".") || strings.HasPrefix(path, wrong+".") {
				return true
			}
		}
	}
	return false
}

// entry returns the scope of the i-th entry of an array, from 0.
func entry(i int) string { return fmt.Sprintf("%d ", i) }

// err returns all problems as one error, in the order of the file, or nil.
func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return d.problems
}

// table sets the fields of into that tree names.
func (d *decoder) table(into reflect.Value, tree map[string]any, path string) {
	fields := fieldsByKey(into)
	for _, key := range slices.Sorted(maps.Keys(tree)) { // a fixed order for keys on one line
		value, full := tree[key], dotted(path, key)
		field, known := fields[key]
		if !known {
			hint, meant := suggest(full, into.Type(), path)
			d.problem(full, "unknown key %q; %s", full, hint)
			if _, set := d.lines[d.scope+meant]; !set { // else that one is checked as well
				d.setWrong(meant)
			}
			continue
		}
		if k, ok := kindOf(field.Type()); ok {
			field.Set(reflect.ValueOf(k.decode(d, value, full)))
		} else if inner, ok := typed[map[string]any](d, value, full, "a table, written ["+full+"]"); ok {
			d.table(field, inner, full)
		}
	}
}

// typed returns the value as a T. A value of another type is a problem that names the
// expected form.
func typed[T any](d *decoder, value any, full, form string) (v T, ok bool) {
	if v, ok = value.(T); !ok {
		d.problem(full, "%s must be %s, not %s", full, form, kindName(value))
	}
	return v, ok
}

// as decodes a value of the TOML type T, whose form is for messages.
func as[T any](form string) func(*decoder, any, string) T {
	return func(d *decoder, value any, full string) T {
		v, _ := typed[T](d, value, full, form)
		return v
	}
}

func (d *decoder) duration(value any, full string) time.Duration {
	s, ok := typed[string](d, value, full, `a duration in quotes with its unit, such as "30s" or "10m"`)
	v, err := console.ParseDuration(s)
	if ok && (err != nil || v < 0) {
		d.problem(full, `%s = %q is not a duration; write a number and a unit, such as "30s", "10m" or "1h"`, full, s)
	}
	return v
}

func (d *decoder) size(value any, full string) ByteSize {
	s, ok := typed[string](d, value, full, `a size in quotes with its unit, such as "64MiB" or "1GiB"`)
	v, err := parseByteSize(s)
	if ok && err != nil {
		d.problem(full, "%s = %v", full, err)
	}
	return v
}

// count decodes an integer from 0 to MaxCount.
func (d *decoder) count(value any, full string) int {
	n, _ := typed[int64](d, value, full, "a number without quotes, such as 1000")
	if n < 0 || n > MaxCount {
		d.problem(full, "%s = %d is not possible; write a number from 0 to %d", full, n, MaxCount)
	}
	return int(n)
}

// MaxCount is the largest integer that a setting accepts.
const MaxCount = 100_000_000

func (d *decoder) date(value any, full string) Date {
	v, err := dateOf(value)
	if err != nil {
		d.problem(full, "%s %v", full, err)
	}
	return v
}

func (d *decoder) sign(value any, full string) *SignConfig {
	tree, ok := typed[map[string]any](d, value, full, `a table, written { key = "file:news.key", agent = "https://bots.example/keys.json" }`)
	if !ok {
		return nil
	}
	s := &SignConfig{}
	d.table(reflect.ValueOf(s).Elem(), tree, full)
	return s
}

// listOf decodes a list of Ts. Problems call the elements what, one element each, and
// show example.
func listOf[T any](what, example, each string) func(*decoder, any, string) []T {
	return func(d *decoder, value any, full string) []T {
		items, ok := typed[[]any](d, value, full, "a list of "+what+", written "+example)
		if !ok {
			return nil
		}
		out := make([]T, len(items))
		for i, item := range items {
			if out[i], ok = item.(T); !ok {
				d.problem(element(full, i), "%s: each must be %s, not %s", full, each, kindName(item))
			}
		}
		return out
	}
}

// like decodes a list of texts of another type.
func like[L ~[]E, E ~string](decode func(*decoder, any, string) []string) func(*decoder, any, string) L {
	return func(d *decoder, value any, full string) (list L) {
		for _, text := range decode(d, value, full) {
			list = append(list, E(text))
		}
		return list
	}
}

// oneOrMore decodes a text or a list of them, of which example is one.
func oneOrMore[L ~[]string](example string) func(*decoder, any, string) L {
	list := listOf[string]("texts", example, "a text in quotes")
	return func(d *decoder, value any, full string) L {
		if text, ok := value.(string); ok {
			return L{text}
		}
		if _, ok := typed[[]any](d, value, full, "a text in quotes, or a list of them"); !ok {
			return nil
		}
		return list(d, value, full)
	}
}

// element returns the full name of the i-th element of a list.
func element(full string, i int) string { return full + "." + strconv.Itoa(i) }

func (d *decoder) texts(value any, full string) map[string]string {
	tree, ok := typed[map[string]any](d, value, full, `a table, written { "from" = "to" }`)
	if !ok {
		return nil
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if out[key], ok = tree[key].(string); !ok {
			d.problem(dotted(full, key), "%s: %q must be a text in quotes, not %s", full, key, kindName(tree[key]))
		}
	}
	return out
}

// entries decodes an array of tables, each written [[full]].
func entries[T any](d *decoder, value any, full string) []T {
	form := "written [[" + full + "]]"
	elements, ok := typed[[]any](d, value, full, "an array of tables, each "+form)
	if !ok {
		return nil
	}
	out := make([]T, len(elements))
	defer func() { d.scope = "" }()
	for i, e := range elements {
		d.scope = entry(i)
		if tree, ok := typed[map[string]any](d, e, full, "a table, "+form); ok {
			d.table(reflect.ValueOf(&out[i]).Elem(), tree, full)
		}
	}
	return out
}

// keyLines returns the first line of each key, table and list element of a valid
// document. The names of keys in an array of tables begin with the scope of their entry.
func keyLines(data []byte) map[string]int {
	k := keyNotes{lines: map[string]int{}}
	for i, c := range data {
		if c == '\n' {
			k.ends = append(k.ends, i)
		}
	}
	var p unstable.Parser
	p.Reset(data)
	table, scope, seen := "", "", map[string]int{}
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			table = k.keys(e, "", "")
		case unstable.ArrayTable:
			table = k.keys(e, "", "")
			scope = entry(seen[table])
			seen[table]++
			table = k.keys(e, "", scope)
		case unstable.KeyValue:
			k.value(e, table)
		}
	}
	return k.lines
}

// keyNotes are the lines of keys, and the ends of all lines, since the parser would count
// them from the beginning for each key.
type keyNotes struct {
	lines map[string]int
	ends  []int
}

// line returns the line of a part of the document.
func (k *keyNotes) line(at unstable.Range) int {
	before, _ := slices.BinarySearch(k.ends, int(at.Offset))
	return before + 1
}

// value records the lines of a key, and of what its value has.
func (k *keyNotes) value(e *unstable.Node, path string) {
	full := k.keys(e, path, "")
	inner := e.Value().Children()
	for i := 0; e.Value().Kind == unstable.Array && inner.Next(); i++ {
		if raw := inner.Node().Raw; raw.Length > 0 {
			k.lines[element(full, i)] = k.line(raw)
		}
	}
	for e.Value().Kind == unstable.InlineTable && inner.Next() {
		k.value(inner.Node(), full)
	}
}

// maxParts bounds the parts of a key of which the lines are noted: settings have three, and
// the part after an unknown one is not looked at.
const maxParts = 8

// keys records the line of each part of a dotted key, up to maxParts, and returns its
// full name with the scope.
func (k *keyNotes) keys(e *unstable.Node, path, scope string) string {
	keys := e.Key()
	for parts := strings.Count(path, ".") + 1; keys.Next() && parts <= maxParts; parts++ {
		path = dotted(path, string(keys.Node().Data))
		if scope != "" {
			path, scope = scope+path, ""
		}
		if _, seen := k.lines[path]; !seen {
			k.lines[path] = k.line(keys.Node().Raw)
		}
	}
	return path
}

func dotted(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// kindName returns the name of a TOML value's type for messages.
func kindName(value any) string {
	switch value.(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case map[string]any:
		return "a table"
	case []any:
		return "a list"
	default:
		return "a date or time"
	}
}
