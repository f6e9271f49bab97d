package command

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fieldsByKey returns the fields of a settings struct by their TOML keys.
func fieldsByKey(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			maps.Copy(fields, fieldsByKey(v.Field(i)))
		} else if key := v.Type().Field(i).Tag.Get("toml"); key != "-" {
			fields[key] = v.Field(i)
		}
	}
	return fields
}

// keyNames returns the full names of all keys under t, in the order of the
// struct; tables come before what they hold.
func keyNames(t reflect.Type, path string) []string {
	var names []string
	for i := range t.NumField() {
		key := t.Field(i).Tag.Get("toml")
		if t.Field(i).Anonymous {
			names = append(names, keyNames(t.Field(i).Type, path)...)
			continue
		}
		if key == "-" {
			continue
		}
		names = append(names, dotted(path, key))
		f := t.Field(i).Type
		if f.Kind() == reflect.Slice {
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct && f != reflect.TypeFor[Date]() {
			names = append(names, keyNames(f, dotted(path, key))...)
		}
	}
	return names
}

// suggest says what the writer of the unknown key full, in the table path of
// type t, may have meant.
func suggest(full string, t reflect.Type, path string) string {
	_, leaf, _ := cutLast(full)
	for _, name := range keyNames(reflect.TypeFor[Config](), "") {
		table, key, _ := cutLast(name)
		switch {
		case key != leaf:
		case table == "":
			return fmt.Sprintf("%q stands above the first [table]", key)
		case isArray(table):
			return fmt.Sprintf("%q belongs under [[%s]]", key, table)
		default:
			return fmt.Sprintf("%q belongs under [%s]", key, table)
		}
	}
	var here []string
	for _, name := range keyNames(t, path) {
		if table, key, _ := cutLast(name); table == path {
			here = append(here, key)
		}
	}
	if near := nearest(leaf, here); near != "" {
		return fmt.Sprintf("did you mean %q?", dotted(path, near))
	}
	return "the keys here are " + strings.Join(here, ", ")
}

// isArray reports whether a table of the settings can stand there several times.
func isArray(table string) bool {
	field, ok := fieldsByKey(reflect.ValueOf(&Config{}).Elem())[table]
	return ok && field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct
}

func cutLast(name string) (table, key string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}

// nearest returns the candidate that is few keystrokes from word, or "".
func nearest(word string, candidates []string) string {
	if len(candidates) == 0 {
		return ""
	}
	best := slices.MinFunc(candidates, func(a, b string) int { return distance(word, a) - distance(word, b) })
	if distance(word, best) > max(1, len(best)/3) {
		return ""
	}
	return best
}

// distance is Levenshtein's: insertions, deletions and substitutions.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
