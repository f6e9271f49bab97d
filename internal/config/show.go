package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"heed/internal/output/console"
)

// suggest returns a hint for the unknown key full in the table path of type t, and the
// key that is probably meant, or full.
func suggest(full string, t reflect.Type, path string) (hint, meant string) {
	_, leaf := cutLast(full)
	for _, name := range keyNames(t, path) {
		if table, key := cutLast(name); table == path && (key == leaf+"s" || key+"s" == leaf) {
			return fmt.Sprintf("did you mean %q?", name), name
		}
	}
	all := keyNames(reflect.TypeFor[Config](), "")
	for _, name := range all {
		table, key := cutLast(name)
		isTable := slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(other, name+".") })
		switch {
		case key != leaf || isTable:
		case table == "":
			return fmt.Sprintf("%q belongs above the first [table]", key), name
		case isArray(table):
			return fmt.Sprintf("%q belongs under [[%s]]", key, table), full
		default:
			return fmt.Sprintf("%q belongs under [%s]", key, table), name
		}
	}
	var here []string
	for _, name := range keyNames(t, path) {
		if table, key := cutLast(name); table == path {
			here = append(here, key)
		}
	}
	if near := console.Nearest(leaf, here); near != "" {
		return fmt.Sprintf("did you mean %q?", dotted(path, near)), dotted(path, near)
	}
	return "the keys here are " + strings.Join(here, ", "), full
}

func cutLast(name string) (table, key string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// Redact removes user names and passwords from the URLs in c.
func (c *Config) Redact() {
	c.Upstream.Proxy, c.Fleet.URL = RedactURL(c.Upstream.Proxy), redactFleet(c.Fleet.URL)
	for i := range c.Hosts {
		c.Hosts[i].Upstream = RedactURL(c.Hosts[i].Upstream)
	}
}

// Source returns the path of the file, or a phrase for the built-in settings.
func (c *Config) Source() string {
	return cmp.Or(c.File, "the built-in settings")
}

// ClientNames returns the names of the clients, as a sentence: the answer to a wrong one.
func (c *Config) ClientNames() string {
	const most = 20
	names := make([]string, 0, most)
	for _, cl := range c.Clients[:min(len(c.Clients), most)] {
		names = append(names, cl.Name)
	}
	switch {
	case len(names) == 0:
		return "It has no [[client]]: add one, or name another file with --config"
	case len(c.Clients) > most:
		names = append(names, "...")
	}
	return "Those it has are " + strings.Join(names, ", ")
}

// Tree returns the settings as a JSON object in the form of proxy.toml.
func (c *Config) Tree() map[string]any { return keyTree(reflect.ValueOf(*c)) }

// Changed returns the part of Tree that differs from base.
func (c *Config) Changed(base *Config) map[string]any {
	tree := c.Tree()
	for key, list := range fieldsByKey(reflect.ValueOf(*c)) {
		entries, _ := tree[key].([]map[string]any)
		for i, entry := range entries { // false is the default in an entry; a *bool is there when it is set
			maps.DeleteFunc(entry, func(name string, _ any) bool {
				field := fieldsByKey(list.Index(i))[name]
				return field.Kind() == reflect.Bool && field.IsZero()
			})
		}
	}
	return changed(tree, base.Tree())
}

// changed returns the members of tree that base does not have or has with another value.
func changed(tree, base map[string]any) map[string]any {
	for key, value := range tree {
		inner, ok := value.(map[string]any)
		if before, both := base[key].(map[string]any); ok && both {
			if changed(inner, before); len(inner) == 0 {
				delete(tree, key)
			}
		} else if reflect.DeepEqual(value, base[key]) {
			delete(tree, key)
		}
	}
	return tree
}

// Text returns the settings in the form of proxy.toml.
func (c *Config) Text() string { return TreeText(c.Tree()) }

// TreeText returns a Tree in the form of proxy.toml.
func TreeText(tree map[string]any) string {
	text, err := toml.Marshal(tree)
	if err != nil {
		panic("settings of plain strings and numbers cannot be marshalled: " + err.Error())
	}
	return string(text)
}

// keyTree returns a settings struct as a TOML table, durations as text.
func keyTree(v reflect.Value) map[string]any {
	tree := map[string]any{}
	for key, field := range fieldsByKey(v) {
		if k, ok := kindOf(field.Type()); !ok {
			tree[key] = keyTree(field)
		} else if value := k.tree(field); value != nil {
			tree[key] = value
		}
	}
	return tree
}

// entryTrees returns the entries of an array of tables without keys that have no value; nil
// for none, since client = [] would prevent adding a [[client]].
func entryTrees[T any](entries []T) any {
	if len(entries) == 0 {
		return nil
	}
	trees := make([]map[string]any, len(entries))
	for i := range entries {
		trees[i] = keyTree(reflect.ValueOf(entries[i]))
		maps.DeleteFunc(trees[i], func(_ string, v any) bool { return isUnset(reflect.ValueOf(v)) })
	}
	return trees
}

// isUnset reports whether an entry may leave the value out.
func isUnset(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 || v.Kind() != reflect.Bool && v.IsZero()
}

// shortDuration formats a duration without trailing zero units: 10m, not 10m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ByteSize is a number of octets, written in TOML with a unit: "256MiB".
type ByteSize int64

// byteUnits are the units of sizes. The first four, powers of 1024 in descending order,
// are those that String uses.
var byteUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// maxByteSize is the largest valid size.
const maxByteSize = 1 << 50

// parseByteSize parses a whole number and a unit.
func parseByteSize(s string) (ByteSize, error) {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > maxByteSize/u.bytes {
			break
		}
		return ByteSize(n * u.bytes), nil
	}
	return 0, fmt.Errorf(`%q is not a size; write a whole number and a unit, such as "64MiB" or "1GiB"`, s)
}

// String formats b in the largest unit that gives a whole number.
func (b ByteSize) String() string {
	for _, u := range byteUnits[:4] {
		if int64(b) >= u.bytes && int64(b)%u.bytes == 0 {
			return strconv.FormatInt(int64(b)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Date is a moment in a setting, written as a day (until its end in UTC) or as a day and
// a time. The zero Date is unset.
type Date struct{ time.Time }

// MarshalJSON returns the date in UTC, so that hashes do not depend on the time zone, and
// null for the zero Date.
func (d Date) MarshalJSON() ([]byte, error) {
	if d.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(d.UTC().Format(time.RFC3339))
}

// dateOf converts a TOML date, local or with a zone.
func dateOf(value any) (Date, error) {
	switch v := value.(type) {
	case toml.LocalDate:
		return Date{v.AsTime(time.UTC).AddDate(0, 0, 1)}, nil
	case toml.LocalDateTime:
		return Date{v.AsTime(time.UTC)}, nil
	case time.Time:
		return Date{v.UTC()}, nil
	}
	return Date{}, fmt.Errorf("must be a day without quotes, such as 2027-01-31, or with a time, such as 2027-01-31T18:00:00Z, not %s", kindName(value))
}
