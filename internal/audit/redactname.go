package audit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// names are patterns for the names of query parameters.
type names struct {
	exact    map[string]bool
	patterns [][]string // those with a *: what stands between the stars
}

func newNames(patterns []string) *names {
	n := &names{exact: map[string]bool{}}
	for _, pattern := range patterns {
		if strings.Contains(pattern, "*") {
			n.patterns = append(n.patterns, strings.Split(pattern, "*"))
		} else {
			n.exact[pattern] = true
		}
	}
	return n
}

// maxDecodings is how often a name is unescaped at most: a site that sits
// behind others may do so more than once.
const maxDecodings = 4

// fits reports whether a name, in whatever spelling, fits a pattern: as a whole,
// with what is no letter or digit left out, or by one of its words. So "token"
// fits token, access_token, tok%65n, user[token] and pageToken.
func (n *names) fits(name string) bool {
	for range maxDecodings {
		plain := unescape(name)
		if plain == name {
			break
		}
		name = plain
	}
	if n.fit(fold(name)) {
		return true
	}
	word, rest := nextWord(name)
	for len(word) < len(name) && word != "" {
		if n.fit(fold(word)) {
			return true
		}
		word, rest = nextWord(rest)
	}
	return false
}

// fit reports whether a pattern fits s.
func (n *names) fit(s string) bool {
	if s == "" || n.exact[s] {
		return s != ""
	}
	for _, pattern := range n.patterns {
		if fitsAround(pattern, s) {
			return true
		}
	}
	return false
}

// fitsAround reports whether s begins with the first of parts, ends with the
// last and has the others between, in their order.
func fitsAround(parts []string, s string) bool {
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
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= 'a' && s[i] <= 'z' || s[i] >= '0' && s[i] <= '9'
	}
	if plain {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// nextWord cuts the first word off a name: words end at what is no letter or
// digit, and before a capital after a small letter or before the last capital of
// several ("apiKey", "APIKey").
func nextWord(s string) (word, rest string) {
	var before rune
	start := -1
	for i, r := range s {
		switch wordly := unicode.IsLetter(r) || unicode.IsDigit(r); {
		case start < 0 && wordly:
			start = i
		case start < 0:
		case !wordly, unicode.IsUpper(r) && !unicode.IsUpper(before), unicode.IsUpper(r) && smallFollows(s[i:]):
			return s[start:i], s[i:]
		}
		before = r
	}
	return s[max(start, 0):], ""
}

// smallFollows reports whether the second letter of s is a small one.
func smallFollows(s string) bool {
	_, n := utf8.DecodeRuneInString(s)
	second, _ := utf8.DecodeRuneInString(s[n:])
	return unicode.IsLower(second)
}

// unescape decodes %XX, and %uXXXX as some servers take it; what is no escape
// stays. It returns s itself when there is nothing to decode.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if v, ok := hexAt(s, i+1, 2); s[i] == '%' && ok {
			out = append(out, byte(v))
			i += 3
			continue
		}
		if v, ok := hexAt(s, i+2, 4); s[i] == '%' && i+1 < len(s) && s[i+1]|0x20 == 'u' && ok {
			out = utf8.AppendRune(out, rune(v))
			i += 6
			continue
		}
		out = append(out, s[i])
		i++
	}
	return string(out)
}

// hexAt returns the number that n hexadecimal digits at s[i:] are.
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
