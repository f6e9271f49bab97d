package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The octets and characters at which some server ends or cuts a target. This is the only
// list of them. A request line contains no control character and no space; an octet that
// only some servers take for a blank is part of a target, which is sent unchanged, and
// judged in the readings
//
//	v6  without the blanks at its end, and at the end of its path
//	v7  with the octets that are not UTF-8 read as ISO 8859-1
//
// Python's http.server reads a request line as ISO 8859-1 and splits it at the blanks of
// that (str.split), so that it serves "/a.pdf" for "/a.pdf\xA0" and "/caf%C3%A9" for
// "/caf\xE9". Other servers decode a path as UTF-8, and trim it.

// IsBlank reports whether some server splits a request line at c: RFC 9112 §3 names those
// up to 0x20, and the others are the blanks of ISO 8859-1 in Unicode.
func IsBlank(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r' || c >= 0x1c && c <= 0x1f || c >= utf8.RuneSelf && unicode.IsSpace(rune(c))
}

// IsControl reports whether c is a control character of ASCII.
func IsControl(c byte) bool { return c < ' ' || c == 0x7f }

// Sendable reports whether a request line can contain text: it has no space and no control
// character.
func Sendable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c == ' ' || IsControl(c) {
			return false
		}
	}
	return true
}

// trimmed reports whether a server may cut r from the end of a path: white space and
// controls, and the characters without width that are or were white space somewhere
// (U+FEFF in JavaScript, U+180E and U+200B in older Unicode).
func trimmed(r rune) bool {
	return r <= ' ' || r == 0x7f || r >= utf8.RuneSelf && (unicode.IsSpace(r) || r == 0x180e || r == 0x200b || r == 0xfeff)
}

// mayEnd reports whether the last octet of a target, or of a path, may be the end of a
// character that a server cuts.
var mayEnd = func() (set [256]bool) {
	for r := range rune(0x10000) {
		if trimmed(r) {
			text := string(r)
			set[text[len(text)-1]] = true
			if r < 0x100 {
				set[r] = true
			}
		}
	}
	return set
}()

// lastOctet returns the last octet of text and how long it is: with escapes, an escape is one
// octet.
func lastOctet(text string, escapes bool) (c byte, size int) {
	if escapes && len(text) >= len("%00") {
		if v, ok := unescape(text[len(text)-len("%00"):]); ok {
			return v, len("%00")
		}
	}
	return text[len(text)-1], 1
}

// lastRune returns the last character of text and how long it is. An octet that is not
// UTF-8 is the character of ISO 8859-1.
func lastRune(text string, escapes bool) (r rune, size int) {
	var octets [utf8.UTFMax]byte
	var ends [utf8.UTFMax + 1]int // the length of the last n octets
	n := 0
	for n < len(octets) && ends[n] < len(text) {
		c, size := lastOctet(text[:len(text)-ends[n]], escapes)
		n++
		octets[len(octets)-n], ends[n] = c, ends[n-1]+size
	}
	r, width := utf8.DecodeLastRune(octets[len(octets)-n:])
	if r == utf8.RuneError && width == 1 {
		r = rune(octets[len(octets)-1])
	}
	return r, ends[width]
}

// trimBlanks returns text without the characters at its end that a server may cut.
func trimBlanks(text string, escapes bool) string {
	for text != "" {
		if c, _ := lastOctet(text, escapes); !mayEnd[c] {
			break
		}
		r, size := lastRune(text, escapes)
		if !trimmed(r) {
			break
		}
		text = text[:len(text)-size]
	}
	return text
}

// trimOctets returns text without the octets at its end that are blanks of ISO 8859-1,
// whether or not they are part of a character of UTF-8.
func trimOctets(text string) string {
	for text != "" && text[len(text)-1] >= utf8.RuneSelf && IsBlank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

// oneEnd reports whether a target has no reading by its end or by its octets that are not
// UTF-8.
func oneEnd(target string) bool {
	path, _, _ := strings.Cut(target, "?")
	return trimBlanks(path, true) == path && trimBlanks(target, true) == target && trimOctets(target) == target && utf8.ValidString(target)
}

// endings calls judge with each reading of a target by its end, or by its octets that are not
// UTF-8, until judge returns false.
func (s *scratch) endings(target string, judge func(name, target string) bool) bool {
	if oneEnd(target) {
		return true
	}
	if cut := trimOctets(target); cut != target && (!judge(readV6, cut) || !s.latin(cut, judge)) {
		return false
	}
	path, query := target, ""
	if at := strings.IndexByte(target, '?'); at >= 0 {
		path, query = target[:at], target[at:]
	}
	shortPath, shortQuery := trimBlanks(path, true), trimBlanks(query, true)
	for _, cut := range [...][2]string{{shortPath, query}, {path, shortQuery}, {shortPath, shortQuery}} {
		if len(cut[0])+len(cut[1]) == len(target) {
			continue
		}
		s.ended = append(append(s.ended[:0], cut[0]...), cut[1]...)
		if !judge(readV6, view(s.ended)) || !s.latin(view(s.ended), judge) {
			return false
		}
	}
	return s.latin(target, judge)
}

// latin calls judge with a target in which each octet above ASCII is a character of
// ISO 8859-1, if it is not UTF-8.
func (s *scratch) latin(target string, judge func(name, target string) bool) bool {
	if utf8.ValidString(target) {
		return true
	}
	s.wide = s.wide[:0]
	for i := range len(target) {
		s.wide = utf8.AppendRune(s.wide, rune(target[i]))
	}
	return judge(readV7, view(s.wide))
}
