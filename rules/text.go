package rules

import (
	"bytes"
	"cmp"
	"iter"
	"strings"
	"unicode"
	"unicode/utf16"
)

// The limits of reading a file.
const (
	// MaxBytes is how much of a robots.txt is read. RFC 9309 §2.5 requires at
	// least 500 KiB; the largest files seen in the open have nearly 4 MiB.
	MaxBytes = 4 << 20
	// MaxLine is how much of one line is read, in octets; Google's parser has
	// the same limit.
	MaxLine = 16663
)

// read returns the part of a file that is read as text, where it starts after a byte
// order mark, whether it was UTF-16, and whether it was longer than MaxBytes.
// A line that is cut would mean something else ("Allow: /pub" cut to "Allow: /"),
// so it is dropped as well; one longer than MaxLine is kept, since its rest would
// not be read anyway.
func read(body []byte) (text string, start int, utf16, cut bool) {
	cut = len(body) > MaxBytes
	text, start, utf16 = decode(body[:min(len(body), MaxBytes)])
	if last := strings.LastIndexAny(text, "\r\n") + 1; cut && len(text)-last <= MaxLine {
		text = text[:last]
	}
	return text, min(start, len(text)), utf16, cut
}

// decode returns the text of a file and where it starts after an octet order
// mark. A mark in UTF-8 may be incomplete, as Google's parser allows. UTF-16 is
// read only with a mark, and only when the text has a NUL octet, as all UTF-16 of
// a robots.txt has: a mark may be before UTF-8 as well.
func decode(body []byte) (text string, start int, utf bool) {
	if len(body) >= 2 && (body[0] == 0xFF && body[1] == 0xFE || body[0] == 0xFE && body[1] == 0xFF) {
		if bytes.IndexByte(body, 0) < 0 {
			return string(body), 2, false
		}
		return decodeUTF16(body[2:], body[0] == 0xFE), 0, true
	}
	for start < len(body) && start < 3 && body[start] == "\xEF\xBB\xBF"[start] {
		start++
	}
	return string(body), start, false
}

func decodeUTF16(body []byte, bigEndian bool) string {
	units := make([]uint16, 0, len(body)/2)
	for i := 0; i+1 < len(body); i += 2 {
		u := uint16(body[i]) | uint16(body[i+1])<<8
		if bigEndian {
			u = u<<8 | u>>8
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}

// lines walks through a text line by line. CR, LF and CRLF end a line.
type lines struct {
	text   string
	next   int // where the next line begins
	lf     int // 1 + the place of the first LF from next on, or of the end; less than that: not searched yet
	number int // of the line last returned, from 1
}

// line returns the place of the next line without its end.
func (l *lines) line() (from, to int, ok bool) {
	if l.next >= len(l.text) {
		return 0, 0, false
	}
	l.number++
	if from = l.next; l.lf <= from {
		l.lf = 1 + len(l.text)
		if i := strings.IndexByte(l.text[from:], '\n'); i >= 0 {
			l.lf = 1 + from + i
		}
	}
	to = l.lf - 1
	if i := strings.IndexByte(l.text[from:to], '\r'); i >= 0 {
		to = from + i
	}
	l.next = to + 1
	if strings.HasPrefix(l.text[to:], "\r\n") {
		l.next++
	}
	return from, to, true
}

// Lines yields the lines of a text without their ends, with their numbers from 1, as the
// lines of a robots.txt are counted. CR, LF and CRLF end a line (RFC 9309 §2.2).
func Lines(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		l := lines{text: text}
		for from, to, ok := l.line(); ok && yield(l.number, text[from:to]); from, to, ok = l.line() {
		}
	}
}

// blank reports whether c is white space within a line.
func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\v' || c == '\f' }

// Part is a part of a text, in bytes.
type Part struct{ From, To int }

// Of returns the part of text.
func (s Part) Of(text string) string { return text[s.From:s.To] }

func (s Part) empty() bool { return s.From >= s.To }

// trim returns s without white space around it.
func (s Part) trim(text string) Part {
	for s.From < s.To && blank(text[s.From]) {
		s.From++
	}
	for s.From < s.To && blank(text[s.To-1]) {
		s.To--
	}
	return s
}

// hasBlank reports whether there is white space within s.
func (s Part) hasBlank(text string) bool {
	return strings.IndexByte(text[s.From:s.To], ' ') >= 0 || strings.IndexByte(text[s.From:s.To], '\t') >= 0
}

// words returns the places of the words of s.
func (s Part) words(text string) []Part {
	var all []Part
	for i := s.From; i < s.To; {
		if blank(text[i]) {
			i++
			continue
		}
		from := i
		for i < s.To && !blank(text[i]) {
			i++
		}
		all = append(all, Part{from, i})
	}
	return all
}

// lower returns an ASCII letter in lower case and any other octet as it is.
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// prefixFold reports whether s begins with prefix, which is in lower case,
// whatever the case of s.
func prefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// equalFold reports whether s is word, which is in lower case, whatever the case of s.
func equalFold(s, word string) bool { return len(s) == len(word) && prefixFold(s, word) }

// compareFold compares two names whatever their case.
func compareFold(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// Invisible reports whether a character cannot be seen, or looks like a space and is none.
func Invisible(r rune) bool {
	return r >= 0x80 && (unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Cc) || r == '\u2800' || r == '\u3164' || r == '\u115F')
}

// TrimUnseen returns s without the characters around it that cannot be seen, and without spaces.
func TrimUnseen(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || Invisible(r) })
}

// Distance returns the number of letters to change, add or remove to make b of
// a; a number over 2 when the words are too unlike to count.
func Distance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
