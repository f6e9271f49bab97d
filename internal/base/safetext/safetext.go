// Package safetext makes text of clients, sites and errors fit for a status
// line, a field value, a log and a terminal. It imports the standard library
// only.
package safetext

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxQuoted bounds the text of Quote, maxError that of Error, in octets.
const (
	maxQuoted = 80
	maxError  = 300
)

// Printable returns s as printable ASCII of at most limit octets. Any other
// character becomes "?", and a text that is cut ends with "...". limit must be
// at least 3.
func Printable(s string, limit int) string {
	if len(s) <= limit-3 && isPrintable(s) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if b.Len() >= limit-3 {
			b.WriteString("...")
			break
		}
		if c < ' ' || c > '~' {
			c = '?'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Visible returns s with all invisible characters written as escapes of Go, for
// people: a terminal obeys some of them.
func Visible(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Quote returns s as Printable does, at most 80 octets of it, between quotation
// marks. It escapes nothing.
func Quote(s string) string { return `"` + Printable(s, maxQuoted) + `"` }

// MaxExcerpt bounds the text of Excerpt, in octets.
const MaxExcerpt = 400

// Excerpt returns text of a site with its white space joined, at most MaxExcerpt octets of
// it. It escapes nothing.
func Excerpt(s string) string {
	return Clip(strings.Join(strings.Fields(s[:min(len(s), 4*MaxExcerpt)]), " "), MaxExcerpt)
}

// Clip returns s as valid text of at most limit octets.
func Clip(s string, limit int) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Error returns the text of err as Printable does, at most 300 octets of it. err
// must not be nil.
func Error(err error) string { return Printable(err.Error(), maxError) }

// Public returns what an error says to clients: words that follow a name, such as
// "robots.txt", and have nothing about heed's network in them; empty for an error of which
// clients learn nothing.
func Public(err error) string {
	public, _ := errors.AsType[publicError](err)
	if public == nil {
		return ""
	}
	return public.PublicText()
}

type publicError interface {
	error
	PublicText() string
}

// Octets returns s, a request target or a URL with one, as printable ASCII without
// blanks: every other octet is written as \xHH, and a backslash that would begin such
// an escape as \x5C. No two texts have the same form, and ParseOctets reverses it.
func Octets(s string) string {
	plain := func(i int) bool {
		if s[i] == '\\' {
			_, escape := octetAt(s[i:])
			return !escape
		}
		return s[i] > ' ' && s[i] <= '~'
	}
	done := 0
	for done < len(s) && plain(done) {
		done++
	}
	if done == len(s) {
		return s
	}
	out := append(make([]byte, 0, len(s)+16), s[:done]...)
	for i := done; i < len(s); i++ {
		if plain(i) {
			out = append(out, s[i])
		} else {
			out = fmt.Appendf(out, `\x%02X`, s[i])
		}
	}
	return string(out)
}

// ParseOctets returns the octets that Octets wrote as s.
func ParseOctets(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if octet, ok := octetAt(s[i:]); ok {
			out = append(out, octet)
			i += len(`\xHH`) - 1
		} else {
			out = append(out, s[i])
		}
	}
	return string(out)
}

// octetAt reads \xHH at the start of s.
func octetAt(s string) (octet byte, ok bool) {
	if len(s) < len(`\xHH`) || s[:2] != `\x` {
		return 0, false
	}
	octets, err := hex.DecodeString(s[2:4])
	if err != nil {
		return 0, false
	}
	return octets[0], true
}

// ShellQuote quotes s for a POSIX shell, if it needs quotes.
func ShellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=,+@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// EscapingWriter writes JSON or log lines with all invisible characters as escapes;
// their meaning is unchanged. Each Write must contain whole characters, as those of
// encoders do. Control characters below U+0020 must be escaped by the encoder.
type EscapingWriter struct{ io.Writer }

// Write writes p with escapes.
func (v EscapingWriter) Write(p []byte) (int, error) {
	if _, err := v.Writer.Write(Escaped(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Escaped returns p, which is JSON, with invisible characters as JSON escapes. It
// returns p itself when there is nothing to escape.
func Escaped(p []byte) []byte {
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

// LossyJSON reports whether a decoder of JSON puts U+FFFD in the place of something else in
// text: of octets that are not UTF-8 (RFC 8259 §8.1), or of half of a surrogate pair (§7).
func LossyJSON(text []byte) bool {
	if !utf8.Valid(text) {
		return true
	}
	plain := bytes.ReplaceAll(text, []byte(`\\`), []byte("--")) // these begin no escape
	escapes := bytes.Split(plain, []byte(`\u`))[1:]
	for i := 0; i < len(escapes); i++ {
		high := escaped(escapes[i])
		if !utf16.IsSurrogate(high) {
			continue
		}
		i++ // to the other half, which follows at once
		if len(escapes[i-1]) != escapeDigits || i == len(escapes) || utf16.DecodeRune(high, escaped(escapes[i])) == utf8.RuneError {
			return true
		}
	}
	return false
}

// escapeDigits is the number of digits of an escape of JSON.
const escapeDigits = 4

// escaped returns the number in an escape, of which text is what follows \u; 0 for none.
func escaped(text []byte) rune {
	n, _ := strconv.ParseUint(string(text[:min(len(text), escapeDigits)]), 16, 16) // 0 for an error
	return rune(n)
}
