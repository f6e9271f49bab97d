package audit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// namePatterns are patterns for the names of query parameters.
type namePatterns struct {
	exact    map[string]bool
	whole    map[string]bool // those with a ^, for whole names
	patterns [][]string      // those with a *, split at each *
}

func newNamePatterns(patterns []string) *namePatterns {
	n := &namePatterns{exact: map[string]bool{}, whole: map[string]bool{}}
	for _, pattern := range patterns {
		if name, isWhole := strings.CutPrefix(pattern, "^"); isWhole {
			n.whole[name] = true
		} else if strings.Contains(pattern, "*") {
			n.patterns = append(n.patterns, strings.Split(pattern, "*"))
		} else {
			n.exact[pattern] = true
		}
	}
	return n
}

// maxDecodings bounds how often a name is unescaped: each of several servers in
// front of a site may do so once.
const maxDecodings = 4

// matches reports whether a name, unescaped and reduced to its letters and
// digits, matches a pattern as a whole or by one of its words. So "token" matches
// token, access_token, tok%65n, user[token] and pageToken.
func (n *namePatterns) matches(name string) bool {
	for range maxDecodings {
		plain := unescape(name)
		if plain == name {
			break
		}
		name = plain
	}
	if folded := fold(name); n.whole[folded] || n.matchesFolded(folded) {
		return true
	}
	word, rest := nextWord(name)
	for len(word) < len(name) && word != "" {
		if n.matchesFolded(fold(word)) {
			return true
		}
		word, rest = nextWord(rest)
	}
	return false
}

// matchesFolded reports whether s, which is folded, matches a pattern.
func (n *namePatterns) matchesFolded(s string) bool {
	if s == "" || n.exact[s] {
		return s != ""
	}
	return slices.ContainsFunc(n.patterns, func(parts []string) bool { return matchesParts(parts, s) })
}

// matchesParts reports whether s begins with the first of parts, ends with the
// last and contains the others between them, in their order.
func matchesParts(parts []string, s string) bool {
	last := len(parts) - 1
	s, begins := strings.CutPrefix(s, parts[0])
	s, ends := strings.CutSuffix(s, parts[last])
	found := begins && ends
	for i := 1; i < last && found; i++ {
		_, s, found = strings.Cut(s, parts[i])
	}
	return found
}

// fold returns the letters and digits of s, in lower case.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// nextWord cuts the first word off a name. A word ends before a character that is
// not a letter or digit, before an upper-case letter that follows a lower-case
// one, and before the last of several upper-case letters ("apiKey", "APIKey").
func nextWord(s string) (word, rest string) {
	var before rune
	start := -1
	for i, r := range s {
		switch inWord := unicode.IsLetter(r) || unicode.IsDigit(r); {
		case start < 0 && inWord:
			start = i
		case start < 0:
		case !inWord, unicode.IsUpper(r) && !unicode.IsUpper(before), unicode.IsUpper(r) && lowerFollows(s[i:]):
			return s[start:i], s[i:]
		}
		before = r
	}
	return s[max(start, 0):], ""
}

// lowerFollows reports whether the second character of s is a lower-case letter.
func lowerFollows(s string) bool {
	_, n := utf8.DecodeRuneInString(s)
	second, _ := utf8.DecodeRuneInString(s[n:])
	return unicode.IsLower(second)
}

// unescape decodes %XX, and %uXXXX as some servers do. Invalid escapes are kept.
// It returns s itself when there is nothing to decode.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out = append(out, s[i])
		} else if v, ok := hexAt(s, i+1, 2); ok {
			out = append(out, byte(v))
			i += 2
		} else if v, ok := hexAt(s, i+2, 4); ok && s[i+1]|0x20 == 'u' {
			out = utf8.AppendRune(out, rune(v))
			i += 5
		} else {
			out = append(out, '%')
		}
	}
	return string(out)
}

// hexAt returns the value of the n hexadecimal digits at s[i:].
func hexAt(s string, i, n int) (v int, ok bool) {
	if i+n > len(s) {
		return 0, false
	}
	for _, c := range []byte(s[i : i+n]) {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | int(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
