package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// decode puts the settings of a TOML document over those of c. The library
// stops at the first value of a wrong type and hides unknown keys behind it;
// a person who edits a file wants all of it at once. So the library reads the
// document, and the walk over what it read is ours.
func (c *Config) decode(file string, data []byte) error {
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		return syntaxError(file, err)
	}
	d := &decoder{file: file, lines: keyLines(data)}
	d.table(reflect.ValueOf(c).Elem(), tree, "")
	if len(d.problems) == 0 {
		c.check(d)
	}
	return d.err()
}

func syntaxError(file string, err error) error {
	var at *toml.DecodeError
	if !errors.As(err, &at) {
		return fmt.Errorf("%s: %w", file, err)
	}
	line, column := at.Position()
	return fmt.Errorf("%s:%d:%d: this is not TOML: %s", file, line, column, strings.TrimPrefix(at.Error(), "toml: "))
}

// decoder collects what is wrong with one file.
type decoder struct {
	file     string
	lines    map[string]int // of each key, by its full dotted name
	scope    string         // stands before the names of an array's entry in lines; empty outside
	problems []problem
}

type problem struct {
	line int // 0 when no line of the file is to blame
	text string
}

// problem notes that the key with the full name path is wrong.
func (d *decoder) problem(path, format string, args ...any) {
	line, ok := d.lines[d.scope+path]
	if table, _, _ := cutLast(path); !ok && d.scope != "" {
		line, ok = d.lines[d.scope+table]
		path = table
	}
	if !ok {
		line = d.lines[path]
	}
	d.problems = append(d.problems, problem{line, fmt.Sprintf(format, args...)})
}

// entry returns the scope of an array's entry, counted from 0.
func entry(i int) string { return fmt.Sprintf("%d ", i) }

// err returns all problems as one error, in the order of the file, or nil.
func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var lines []string
	for _, p := range d.problems {
		at := d.file
		if p.line > 0 {
			at = fmt.Sprintf("%s:%d", d.file, p.line)
		}
		lines = append(lines, at+": "+p.text)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// table sets the fields of into that tree names.
func (d *decoder) table(into reflect.Value, tree map[string]any, path string) {
	fields := fieldsByKey(into)
	for _, key := range slices.Sorted(maps.Keys(tree)) { // an order of their own for those on one line
		value, full := tree[key], dotted(path, key)
		field, known := fields[key]
		if !known {
			d.problem(full, "unknown key %q; %s", full, suggest(full, into.Type(), path))
			continue
		}
		d.value(field, value, full)
	}
}

// value sets one field, or says what should have been written.
func (d *decoder) value(field reflect.Value, value any, full string) {
	switch into := field.Addr().Interface().(type) {
	case *string:
		s, ok := value.(string)
		if !ok {
			d.problem(full, "%s must be a text in quotes, not %s", full, kindName(value))
		}
		*into = s
	case *time.Duration:
		d.duration(into, value, full)
	case **time.Duration:
		var v time.Duration
		d.duration(&v, value, full)
		*into = &v
	case *ByteSize:
		d.size(into, value, full)
	case *map[string]string:
		*into = d.texts(value, full)
	case *[]string:
		*into = listOf[string](d, value, full, "texts", `["one", "two"]`, "a text in quotes")
	case *[]int64:
		*into = listOf[int64](d, value, full, "numbers", `[443, 8443]`, "a number without quotes")
	case *int:
		d.count(into, value, full)
	case *Addresses:
		*into = d.addresses(value, full)
	case *bool:
		*into = d.truth(value, full)
	case **bool:
		v := d.truth(value, full)
		*into = &v
	case *Date:
		v, err := dateOf(value)
		if err != nil {
			d.problem(full, "%s %v", full, err)
		}
		*into = v
	case *[]ClientConfig:
		*into = entries[ClientConfig](d, value, full)
	case *[]HostConfig:
		*into = entries[HostConfig](d, value, full)
	default:
		tree, ok := value.(map[string]any)
		if !ok {
			d.problem(full, "%s must be a table, written [%s], not %s", full, full, kindName(value))
			return
		}
		d.table(field, tree, full)
	}
}

func (d *decoder) duration(into *time.Duration, value any, full string) {
	s, ok := value.(string)
	if !ok {
		d.problem(full, `%s must be a duration in quotes with its unit, such as "30s" or "10m", not %s`, full, kindName(value))
		return
	}
	v, err := parseDuration(s)
	if err != nil || v < 0 {
		d.problem(full, `%s = %q is not a duration; write a number and a unit, such as "30s", "10m" or "1h"`, full, s)
	}
	*into = v
}

// maxDays is more than anything lasts, and no overflow follows from it.
const maxDays = 36500

// parseDuration is time.ParseDuration with days: "90d".
func parseDuration(s string) (time.Duration, error) {
	if digits, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.Atoi(digits); err == nil && days >= 0 && days <= maxDays {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(s)
}

func (d *decoder) truth(value any, full string) bool {
	v, ok := value.(bool)
	if !ok {
		d.problem(full, "%s must be true or false without quotes, not %s", full, kindName(value))
	}
	return v
}

func (d *decoder) size(into *ByteSize, value any, full string) {
	s, ok := value.(string)
	if !ok {
		d.problem(full, `%s must be a size in quotes with its unit, such as "64MiB" or "1GiB", not %s`, full, kindName(value))
		return
	}
	v, err := parseByteSize(s)
	if err != nil {
		d.problem(full, "%s = %v", full, err)
	}
	*into = v
}

// count reads a number of things.
func (d *decoder) count(into *int, value any, full string) {
	n, ok := value.(int64)
	if !ok {
		d.problem(full, "%s must be a number without quotes, such as 1000, not %s", full, kindName(value))
		return
	}
	if n < 0 || n > maxCount {
		d.problem(full, "%s = %d is not possible; write a number from 0 to %d", full, n, maxCount)
	}
	*into = int(n)
}

// maxCount is more than any machine has of anything that is counted.
const maxCount = 100_000_000

// list reads a list of texts.
// listOf returns a list of Ts, which people call what and write as in example.
func listOf[T any](d *decoder, value any, full, what, example, each string) []T {
	items, ok := value.([]any)
	if !ok {
		d.problem(full, "%s must be a list of %s, written %s, not %s", full, what, example, kindName(value))
		return nil
	}
	out := make([]T, 0, len(items))
	for i, item := range items {
		v, ok := item.(T)
		if !ok {
			d.problem(element(full, i), "%s: each must be %s, not %s", full, each, kindName(item))
		}
		out = append(out, v)
	}
	return out
}

// element is the full name of an element of a list.
func element(full string, i int) string { return full + "." + strconv.Itoa(i) }

func (d *decoder) texts(value any, full string) map[string]string {
	tree, ok := value.(map[string]any)
	if !ok {
		d.problem(full, `%s must be a table, written { "from" = "to" }, not %s`, full, kindName(value))
		return nil
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		v := tree[key]
		s, ok := v.(string)
		if !ok {
			d.problem(dotted(full, key), "%s: %q must be a text in quotes, not %s", full, key, kindName(v))
		}
		out[key] = s
	}
	return out
}

// entries returns the tables of an array, written [[full]] each.
func entries[T any](d *decoder, value any, full string) []T {
	elements, ok := value.([]any)
	if !ok {
		d.problem(full, "%s can stand there several times, each written [[%s]], not as %s", full, full, kindName(value))
		return nil
	}
	out := make([]T, len(elements))
	defer func() { d.scope = "" }()
	for i, e := range elements {
		d.scope = entry(i)
		tree, ok := e.(map[string]any)
		if !ok {
			d.problem(full, "%s must be a table, written [[%s]], not %s", full, full, kindName(e))
			continue
		}
		d.table(reflect.ValueOf(&out[i]).Elem(), tree, full)
	}
	return out
}

// keyLines returns the line on which each key, table and element of a list of a
// valid document first stands. What stands in the entry of an array of tables has the entry's
// scope before its name.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(data)
	table, scope, seen := "", "", map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table:
			table = noteKeys(lines, &p, e, "", "")
		case unstable.ArrayTable:
			table = noteKeys(lines, &p, e, "", "")
			scope = entry(seen[table])
			seen[table]++
			table = noteKeys(lines, &p, e, "", scope)
		case unstable.KeyValue:
			noteValue(lines, &p, e, table)
		}
	}
	return lines
}

func noteValue(lines map[string]int, p *unstable.Parser, e *unstable.Node, path string) {
	full := noteKeys(lines, p, e, path, "")
	inner := e.Value().Children()
	for i := 0; e.Value().Kind == unstable.Array && inner.Next(); i++ {
		if raw := inner.Node().Raw; raw.Length > 0 {
			lines[element(full, i)] = p.Shape(raw).Start.Line
		}
	}
	for e.Value().Kind == unstable.InlineTable && inner.Next() {
		noteValue(lines, p, inner.Node(), full)
	}
}

// noteKeys notes each part of a dotted key and returns its full name, scope
// included.
func noteKeys(lines map[string]int, p *unstable.Parser, e *unstable.Node, path, scope string) string {
	keys := e.Key()
	for keys.Next() {
		path = dotted(path, string(keys.Node().Data))
		if scope != "" {
			path, scope = scope+path, ""
		}
		if _, seen := lines[path]; !seen {
			lines[path] = p.Shape(keys.Node().Raw).Start.Line
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

// kindName names a TOML value's type as a person would.
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
