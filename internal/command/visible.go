package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text of sites and clients may hold what a terminal obeys instead of showing
// it: control characters (C0, DEL, C1), marks that turn the direction of
// writing (bidi), octets that are no UTF-8. Nothing of it is printed as it is.
// Text for people goes through printable, JSON and log lines through visible.

// printable returns s with all that cannot be seen written as escapes of Go.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// printableLines is printable for a text of several lines.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

// complain tells a person what was wrong. An error's text may be a site's.
func (a *App) complain(err error) { fmt.Fprintln(a.Stderr, "heed:", printableLines(err.Error())) }

// visible writes JSON, or log lines, in which all that cannot be seen is written
// as escapes; programs read the same text as before. Each Write must bring whole
// characters, as encoders do. Control characters below U+0020 are the encoder's
// to escape.
type visible struct{ io.Writer }

// Write writes p with escapes.
func (v visible) Write(p []byte) (int, error) {
	_, err := v.Writer.Write(escaped(p))
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// escaped returns p, which is JSON, with what cannot be seen as escapes of
// JSON. It is p itself when there is nothing to escape, as nearly always.
func escaped(p []byte) []byte {
	i := 0
	for i < len(p) && p[i] < 0x7f {
		i++
	}
	if i == len(p) {
		return p
	}
	out := append(make([]byte, 0, len(p)+64), p[:i]...)
	for i < len(p) {
		r, size := utf8.DecodeRune(p[i:])
		switch {
		case r < 0x7f, unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			out = append(out, p[i:i+size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}

// newJSON returns an encoder of lines for programs.
func newJSON(w io.Writer) *json.Encoder {
	e := json.NewEncoder(visible{w})
	e.SetEscapeHTML(false)
	return e
}
