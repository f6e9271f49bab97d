package http1

import (
	"strings"
)

// Field is a line of a head or of a trailer section.
type Field struct {
	Name  string // as it came, without blanks around it
	Key   string // Name as http.CanonicalHeaderKey writes it
	Value string // as it came, without blanks around it
}

// Head is the head of a request or of an answer. Its strings share one copy of the text.
// A Head may be used again for another message, which reuses Fields.
type Head struct {
	Method string // of a request
	Target string // of a request, as it came
	Status int    // of an answer; 0 for a request
	Phrase string // of an answer, as it came

	Proto        string // the version as it came; empty: none
	Major, Minor int
	Fields       []Field // in the order in which they came

	Framing Framing // of the body
	Length  int64   // that Content-Length declares, also where no body follows; -1: not known
	Close   bool    // the connection ends with this message

	Expects bool // a request that waits for 100 (RFC 9110 §10.1.1)

	// Mended is the first fault of an answer that was mended; 0: none. Blanks before
	// a colon were removed, lines of one value joined, equal lengths made one, a length
	// beside a coding left out, or a coding "identity" ignored.
	Mended Kind

	// Odd is the name of the first field of an answer that HTTP/1 can carry and HTTP/2
	// cannot: with a name that is not a token, or a control character in its value.
	// Empty: no field is.
	Odd string
}

// AtLeast11 reports whether h is of HTTP/1.1 or later.
func (h *Head) AtLeast11() bool { return h.Major > 1 || h.Major == 1 && h.Minor >= 1 }

// Get returns the value of the first field with a canonical name; empty when there is none.
func (h *Head) Get(key string) string {
	for i := range h.Fields {
		if h.Fields[i].Key == key {
			return h.Fields[i].Value
		}
	}
	return ""
}

// reset makes h an empty head of a request or an answer.
func (h *Head) reset() {
	clear(h.Fields)
	*h = Head{Fields: h.Fields[:0], Length: -1}
}

// Reset makes h empty. It keeps the memory of Fields, unless that is large.
func (h *Head) Reset() {
	if h.reset(); cap(h.Fields) > keptFields {
		h.Fields = nil
	}
}

// keptFields is how many Fields the memory is kept of.
const keptFields = 64

// parseRequestLine reads the first line of a request. On a fault h has the parts that
// could be told apart.
func (h *Head) parseRequestLine(line string) *Fault {
	method, rest, _ := strings.Cut(line, " ")
	h.Method, h.Target = method, rest
	at := strings.LastIndex(rest, " "+protocol)
	version := ""
	if at >= 0 {
		h.Target, version = rest[:at], rest[at+1:]
	}
	major, minor, ok := parseVersion(version)
	if ok {
		h.Proto, h.Major, h.Minor = version, major, minor
	}
	kind := Kind(0)
	switch {
	case !isToken(method) && line != "":
		kind = BadMethod
	case at < 0 && strings.IndexByte(rest, ' ') < 0, h.Target == "":
		kind = BadRequestLine
	case at >= 0 && hasBlank(h.Target):
		kind = BadTarget
	case !ok:
		kind = BadVersion
	case major == 2 && method == "PRI":
		kind = Preface
	case major != 1:
		kind = UnknownVersion
	default:
		return nil
	}
	return newFault(kind, false, "")
}

// parseStatusLine reads the first line of an answer.
func (h *Head) parseStatusLine(line string) *Fault {
	version, rest, found := strings.Cut(line, " ")
	major, minor, ok := parseVersion(version)
	if !ok || !found {
		return newFault(NotHTTP, true, "")
	}
	h.Proto, h.Major, h.Minor = version, major, minor
	rest = strings.TrimLeft(rest, " ")
	code, phrase, _ := strings.Cut(rest, " ")
	if len(code) != 3 {
		return newFault(BadStatus, true, "")
	}
	status := 0
	for i := range len(code) {
		if code[i] < '0' || code[i] > '9' {
			return newFault(BadStatus, true, "")
		}
		status = status*10 + int(code[i]-'0')
	}
	if h.Status, h.Phrase = status, phrase; status < 100 {
		return newFault(BadStatus, true, "")
	}
	return nil
}

// parseVersion reads "HTTP/" and two digits with a point between them.
func parseVersion(text string) (major, minor int, ok bool) {
	if len(text) != len("HTTP/1.1") || text[:len(protocol)] != protocol || text[6] != '.' {
		return 0, 0, false
	}
	major, minor = int(text[5])-'0', int(text[7])-'0'
	if major < 0 || major > 9 || minor < 0 || minor > 9 {
		return 0, 0, false
	}
	return major, minor, true
}

// protocol is what a status line begins with.
const protocol = "HTTP/"
