package config

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/proxy/limit"
)

// kind converts the values of settings of one Go type. A struct without one is a table.
type kind struct {
	decode func(d *decoder, value any, full string) any // from TOML; reports problems to d
	tree   func(v reflect.Value) any                    // for TOML; nil: the key is left out
}

// kinds are those of the types of settings.
var kinds struct {
	once   sync.Once
	byType map[reflect.Type]kind
}

// kindOf returns the kind of a type; ok is false for a table.
func kindOf(t reflect.Type) (k kind, ok bool) {
	kinds.once.Do(func() {
		kinds.byType = map[reflect.Type]kind{}
		addKinds()
	})
	k, ok = kinds.byType[t]
	return k, ok
}

// addKinds is the table of kinds: a new type of settings needs an entry here, and only here.
func addKinds() {
	add(as[string]("a text in quotes"), same)
	add(as[bool]("true or false without quotes"), same)
	add((*decoder).count, same)
	add(listOf[string]("texts", `["one", "two"]`, "a text in quotes"), same)
	add(listOf[int64]("numbers", `[443, 8443]`, "a number without quotes"), same)
	add((*decoder).texts, same)
	add((*decoder).tokens, func(v acl.PurposeTokens) any {
		tree := map[string]any{}
		for p, names := range v {
			tree[string(p)] = names
		}
		return tree
	})
	add((*decoder).duration, func(v time.Duration) any { return shortDuration(v) })
	add((*decoder).size, func(v ByteSize) any { return v.String() })
	add(func(d *decoder, value any, full string) limit.Size { return limit.Size(d.size(value, full)) },
		func(v limit.Size) any { return ByteSize(v).String() })
	add(oneOrMore[Addresses](`["127.0.0.1:3128", "[::1]:3128"]`), func(v Addresses) any { return oneOrList(v) })
	add(like[acl.Purposes](oneOrMore[[]string](`["search", "agent"]`)), func(v acl.Purposes) any { return oneOrList(signal.PurposeNames(v)) })
	add(like[acl.Names](listOf[string]("texts", `["one", "two"]`, "a text in quotes")), func(v acl.Names) any { return []string(v) })
	add((*decoder).date, func(v Date) any {
		if v.IsZero() {
			return nil
		}
		return v.Time
	})
	add((*decoder).sign, func(v *SignConfig) any {
		if v == nil {
			return map[string]any{}
		}
		return keyTree(reflect.ValueOf(*v))
	})
	addPointer[bool]()
	addPointer[time.Duration]()
	add(entries[ClientConfig], entryTrees)
	add(entries[ListenerConfig], entryTrees)
	add(entries[HostConfig], entryTrees)
}

// add adds the kind of type T.
func add[T any](decode func(d *decoder, value any, full string) T, tree func(T) any) {
	kinds.byType[reflect.TypeFor[T]()] = kind{
		func(d *decoder, value any, full string) any { return decode(d, value, full) },
		func(v reflect.Value) any { return tree(v.Interface().(T)) },
	}
}

// addPointer adds the kind of *T, a T that may be missing.
func addPointer[T any]() {
	of := kinds.byType[reflect.TypeFor[T]()]
	add(func(d *decoder, value any, full string) *T { return new(of.decode(d, value, full).(T)) }, func(v *T) any {
		if v == nil {
			return nil
		}
		return of.tree(reflect.ValueOf(*v))
	})
}

func same[T any](v T) any { return v }

// oneOrList returns the only text of a list, or the list.
func oneOrList(texts []string) any {
	if len(texts) == 1 {
		return texts[0]
	}
	return texts
}

// keyed returns the fields of a settings struct that are keys, those of embedded structs
// included, in their order.
func keyed(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return f.Anonymous || !f.IsExported() || f.Tag.Get("toml") == "-"
	})
}

// fieldsByKey returns the fields of a settings struct by their keys.
func fieldsByKey(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for _, f := range keyed(v.Type()) {
		fields[f.Tag.Get("toml")] = v.FieldByIndex(f.Index)
	}
	return fields
}

// keyNames returns the full names of all keys of a settings struct, in its order; a table
// precedes its keys.
func keyNames(t reflect.Type, path string) (names []string) {
	for _, f := range keyed(t) {
		full, of := dotted(path, f.Tag.Get("toml")), f.Type
		names = append(names, full)
		if of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if _, single := kindOf(of); of.Kind() == reflect.Struct && !single {
			names = append(names, keyNames(of, full)...)
		}
	}
	return names
}

// isArray reports whether table is an array of tables.
func isArray(table string) bool {
	field, ok := fieldsByKey(reflect.ValueOf(Config{}))[table]
	return ok && field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct
}
