package http1

import (
	"net/http"
	"strings"
)

// parseFields reads the lines of a head into h. It goes on after a fault, so that h has
// what could be read, and returns the first one. A last line without its end is left out.
func (h *Head) parseFields(text string, answer bool, most int) (first *Fault) {
	if n := strings.Count(text, "\n"); n > cap(h.Fields) {
		h.Fields = make([]Field, 0, min(n, max(most, keptFields)))
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
		if lines++; lines > most {
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
	line, rest = text[:i], text[i+1:]
	if i > 0 && line[i-1] == '\r' {
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
	case !tokens.contain(trimmed):
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
	if h.Odd == "" {
		h.Odd = f.Name
	}
	return 0
}

func (h *Head) mended(kind Kind) {
	if h.Mended == 0 {
		h.Mended = kind
	}
}

// isFraming reports whether the field with a canonical name decides where a message ends.
func isFraming(key string) bool { return key == contentLength || key == transferEncoding }

// looksProtected reports whether a recipient that leaves out the octets of name which no
// name has would read a field of the framing, or Proxy-Status, which says whose answer it is.
func looksProtected(name string) bool {
	if tokens.contain(name) {
		return false
	}
	key := http.CanonicalHeaderKey(strings.Map(func(c rune) rune {
		if c < 0x80 && tokens[c] {
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
