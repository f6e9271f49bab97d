package safetext

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// LossyJSON reports whether a decoder of JSON puts U+FFFD in the place of something else in
// text: of octets that are not UTF-8 (RFC 8259 §8.1), or of half of a surrogate pair (§7).
func LossyJSON(text []byte) bool {
	if !utf8.Valid(text) {
		return true
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] != 'u' {
			continue
		}
		high, ok := unicodeEscape(text[i-1:])
		if !ok || !utf16.IsSurrogate(high) {
			continue
		}
		low, _ := unicodeEscape(text[i+5:])
		if utf16.DecodeRune(high, low) == utf8.RuneError {
			return true
		}
		i += 10
	}
	return false
}

// unicodeEscape returns the number in the escape \uXXXX that text begins with.
func unicodeEscape(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
