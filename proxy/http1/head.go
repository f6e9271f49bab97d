package http1

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"heed/rules"
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

// Last returns the value of the last field with a canonical name, and how many there are.
func (h *Head) Last(key string) (value string, lines int) {
	for i := range h.Fields {
		if h.Fields[i].Key == key {
			value = h.Fields[i].Value
			lines++
		}
	}
	return value, lines
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
	case at >= 0 && !rules.Sendable(h.Target):
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
	status, err := strconv.ParseUint(code, 10, 16)
	if len(code) != 3 || err != nil {
		return newFault(BadStatus, true, "")
	}
	if h.Status, h.Phrase = int(status), phrase; status < 100 {
		return newFault(BadStatus, true, "")
	}
	return nil
}

// parseVersion reads "HTTP/" and two digits with a point between them.
func parseVersion(text string) (major, minor int, ok bool) {
	if len(text) != len("HTTP/1.1") || text[:len(protocol)] != protocol || text[6] != '.' {
		return 0, 0, false
	}
	if major, minor = int(text[5])-'0', int(text[7])-'0'; major < 0 || major > 9 || minor < 0 || minor > 9 {
		return 0, 0, false
	}
	return major, minor, true
}

// protocol is what a status line begins with.
const protocol = "HTTP/"

// maxFields is how many lines a head may have.
const maxFields = 10000

// parseFields reads the lines of a head into h. It goes on after a fault, so that h has
// what could be read, and returns the first one. A last line without its end is left out.
func (h *Head) parseFields(text string, answer bool) (first *Fault) {
	if n := strings.Count(text, "\n"); n > cap(h.Fields) {
		h.Fields = make([]Field, 0, min(n, maxFields))
	}
	note := func(kind Kind, field string) {
		if first == nil {
			first = newFault(kind, answer, field)
		}
	}
	lines := 0
	var value strings.Builder // of a field with several lines
	for {
		line, rest, found := nextLine(text)
		if text = rest; !found || line == "" {
			return first
		}
		if lines++; lines > maxFields {
			note(ManyFields, "")
			return first
		}
		if isBlank(line[0]) {
			if kind, name := h.fold(&value, line, answer); kind != 0 {
				note(kind, name)
			}
			continue
		}
		value.Reset()
		f, kind := parseField(line)
		if kind != 0 && answer {
			kind = h.mend(&f, kind)
		}
		if kind != 0 {
			note(kind, f.Name)
		}
		if kind != NoColon {
			h.Fields = append(h.Fields, f)
		}
	}
}

// nextLine splits text after its first line, which is returned without its end.
func nextLine(text string) (line, rest string, found bool) {
	i := strings.IndexByte(text, '\n')
	if i < 0 {
		return text, "", false
	}
	if line, rest = text[:i], text[i+1:]; i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	return line, rest, true
}

// parseField reads a line. The fault is the one of the line alone; 0: none. A name that
// is followed by a blank is trimmed.
func parseField(line string) (f Field, fault Kind) {
	name, value, found := strings.Cut(line, ":")
	if !found {
		return Field{}, NoColon
	}
	trimmed := trimRight(name)
	f = Field{Name: trimmed, Key: http.CanonicalHeaderKey(trimmed), Value: trimBlanks(value)}
	switch {
	case trimmed == "":
		return f, NoName
	case !isToken(trimmed):
		return f, BadName
	case len(trimmed) < len(name):
		return f, BlankBeforeColon
	case hasControl(f.Value):
		return f, BadValue
	}
	return f, 0
}

// fold takes a line that continues the one before (obs-fold, RFC 9112 §5.2): in an answer
// its end becomes a blank. value has what came so far of a value with several lines, so that
// many lines are not copied as often.
func (h *Head) fold(value *strings.Builder, line string, answer bool) (fault Kind, name string) {
	if len(h.Fields) == 0 {
		return FoldFirst, ""
	}
	f := &h.Fields[len(h.Fields)-1]
	switch {
	case !answer || isFraming(f.Key):
		return Fold, f.Name
	case hasBreak(line):
		return BadValue, f.Name
	}
	if value.Len() == 0 {
		value.WriteString(f.Value)
	}
	if more := trimBlanks(line); more != "" {
		if value.Len() > 0 {
			value.WriteByte(' ')
		}
		value.WriteString(more)
	}
	if f.Value = value.String(); hasControl(line) && h.Odd == "" {
		h.Odd = f.Name
	}
	h.mended(Fold)
	return 0, ""
}

// mend takes a faulty field of an answer. It returns the fault that cannot be mended; 0:
// f can be passed on.
func (h *Head) mend(f *Field, kind Kind) Kind {
	framing := isFraming(f.Key) || looksProtected(f.Name)
	switch {
	case kind == NoColon, kind == NoName, framing:
		return kind
	case hasControl(f.Name):
		return BadName
	case hasBreak(f.Value):
		return BadValue
	case kind == BlankBeforeColon:
		h.mended(kind)
		if !hasControl(f.Value) {
			return 0
		}
	}
	h.Odd = cmp.Or(h.Odd, f.Name)
	return 0
}

func (h *Head) mended(kind Kind) {
	h.Mended = cmp.Or(h.Mended, kind)
}

// isFraming reports whether the field with a canonical name decides where a message ends.
func isFraming(key string) bool { return key == contentLength || key == transferEncoding }

// looksProtected reports whether a recipient that leaves out the octets of name which no
// name has would read a field of the framing, or Proxy-Status, which says whose answer it is.
func looksProtected(name string) bool {
	if isToken(name) {
		return false
	}
	key := http.CanonicalHeaderKey(strings.Map(func(c rune) rune {
		if httpguts.IsTokenRune(c) {
			return c
		}
		return -1
	}, name))
	return isFraming(key) || key == proxyStatus
}

// Canonical names of fields that the package itself reads.
const (
	connection       = "Connection"
	contentLength    = "Content-Length"
	expect           = "Expect"
	host             = "Host"
	proxyStatus      = "Proxy-Status"
	trailer          = "Trailer"
	transferEncoding = "Transfer-Encoding"
)

// Octets of messages.

// isToken reports whether text is a token (RFC 9110 §5.6.2).
func isToken(text string) bool { return httpguts.ValidHeaderFieldName(text) }

// hasControl reports whether text contains a character that no field value may (RFC 9110
// §5.5).
func hasControl(text string) bool { return !httpguts.ValidHeaderFieldValue(text) }

// hasBreak reports whether text contains an octet that some recipient takes for the end
// of a line or of a text.
func hasBreak(text string) bool { return strings.ContainsAny(text, "\r\n\x00") }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// trimBlanks removes blanks around text (OWS, RFC 9110 §5.6.3).
func trimBlanks(text string) string {
	for text != "" && isBlank(text[0]) {
		text = text[1:]
	}
	return trimRight(text)
}

func trimRight(text string) string {
	for text != "" && isBlank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

// hasMember reports whether the comma-separated list contains token, in upper or lower
// case.
func hasMember(list, token string) bool {
	return httpguts.HeaderValuesContainsToken([]string{list}, token)
}
