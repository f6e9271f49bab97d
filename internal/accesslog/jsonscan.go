package accesslog

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep values are looked for in an object.
const maxDepth = 32

// walk calls emit with each value of the object s that is a string or a number, by its path:
// names in lower case without what separates their words, with dots between them. Of an array
// only the first value counts, with the path of the array. It reports whether s is an object.
//
// A server that writes its escapes of lines into JSON, as nginx does without escape=json, has
// \xHH in it for an octet, which is undone too.
func walk(s string, scratch []byte, emit func(path []byte, value string)) bool {
	octets := !json.Valid([]byte(s))
	if octets {
		if s = strings.ReplaceAll(s, `\x`, `\u00`); !json.Valid([]byte(s)) {
			return false
		}
	}
	j := &jsonText{rest: s, octets: octets, emit: emit}
	if j.next() != '{' {
		return false
	}
	j.value(scratch[:0], 0, true)
	return true
}

// jsonText is the rest of a valid JSON text.
type jsonText struct {
	rest   string
	octets bool // characters below U+0100 are octets
	emit   func(path []byte, value string)
}

// next returns the first character of what follows: a value, a name, or an end.
func (j *jsonText) next() byte {
	for strings.IndexByte(" \t\r\n,:", j.rest[0]) >= 0 {
		j.rest = j.rest[1:]
	}
	return j.rest[0]
}

// text reads a string.
func (j *jsonText) text() (s string) {
	if s, j.rest, _ = quoted(j.rest); j.octets {
		s = asOctets(s)
	}
	return s
}

// asOctets returns s with an octet in place of each character below U+0100.
func asOctets(s string) string {
	all := make([]byte, 0, len(s))
	for _, r := range s {
		if r < 0x100 {
			all = append(all, byte(r))
		} else {
			all = utf8.AppendRune(all, r)
		}
	}
	return string(all)
}

// value reads the value with a path. It is emitted, or what it has, if it counts.
func (j *jsonText) value(path []byte, depth int, counts bool) {
	var text string
	switch c := j.next(); c {
	case '{':
		if len(path) > 0 {
			path = append(path, '.')
		}
		for j.rest = j.rest[1:]; j.next() != '}'; {
			j.value(appendName(path, j.text()), depth+1, counts && depth <= maxDepth)
		}
		j.rest = j.rest[1:]
		return
	case '[':
		for j.rest = j.rest[1:]; j.next() != ']'; counts = false {
			j.value(path, depth, counts && j.rest[0] != '[')
		}
		j.rest = j.rest[1:]
		return
	case '"':
		text = j.text()
	default:
		end := strings.IndexAny(j.rest, " \t\r\n,]}")
		text, j.rest = j.rest[:end], j.rest[end:]
		counts = counts && (c == '-' || c >= '0' && c <= '9') // not true, false and null
	}
	if counts {
		j.emit(path, text)
	}
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
