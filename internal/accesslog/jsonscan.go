package accesslog

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// maxDepth is how deep values are looked for in an object.
const maxDepth = 32

// walk calls emit with each value of the object s that is a string or a number, by its path:
// names in lower case without what separates their words, with dots between them. Of an array
// only the first value counts, with the path of the array. It reports whether s is an object.
//
// A server that writes its escapes of lines into JSON, as nginx does without escape=json, has
// \xHH in it, which is undone too.
func walk(s string, scratch []byte, emit func(path []byte, value string)) bool {
	if !json.Valid([]byte(s)) {
		if s = strings.ReplaceAll(s, `\x`, `\u00`); !json.Valid([]byte(s)) {
			return false
		}
	}
	object := gjson.Parse(s)
	if !object.IsObject() {
		return false
	}
	walkObject(object, scratch[:0], 0, emit)
	return true
}

// walkObject calls emit with the values of an object whose path is given.
func walkObject(object gjson.Result, path []byte, depth int, emit func(path []byte, value string)) {
	object.ForEach(func(name, value gjson.Result) bool {
		of := path
		if len(of) > 0 {
			of = append(of, '.')
		}
		of = appendName(of, name.Str)
		if value.IsArray() {
			value.ForEach(func(_, first gjson.Result) bool {
				value = first
				return false
			})
		}
		switch {
		case value.IsObject() && depth < maxDepth:
			walkObject(value, of, depth+1, emit)
		case value.Type == gjson.String:
			emit(of, value.Str)
		case value.Type == gjson.Number:
			emit(of, value.Raw)
		}
		return true
	})
}

// appendName adds a name in lower case without what separates its words.
func appendName(path []byte, name string) []byte {
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '_' || c == '-' || c == '@' || c == ' ' || c == '$':
		case c >= 'A' && c <= 'Z':
			path = append(path, c|0x20)
		default:
			path = append(path, c)
		}
	}
	return path
}
