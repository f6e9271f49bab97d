package audit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"heed/internal/base/memo"
)

// Redact returns s, a target, a URL or a text that contains one, with secrets
// replaced by keyed hashes, and whether there were any. Secrets are the values of
// parameters whose names match a pattern (in the query, between & and ;, in the
// path after ; or as a segment, and in a URL inside another's value), in a query also
// those of name:value and of JSON, and credentials before a host. All other octets are
// unchanged.
func (p *Privacy) Redact(s string) (string, bool) {
	query := strings.IndexByte(s, '?')
	if p == nil || strings.IndexByte(s, '=') < 0 && strings.IndexByte(s, '@') < 0 && strings.IndexByte(s, '%') < 0 && (query < 0 || strings.IndexByte(s[query:], ':') < 0) {
		return s, false
	}
	var out strings.Builder
	done := 0
	for at, found := 0, 0; at < len(s); {
		from, to := p.findSecret(s, at, query)
		if from < to {
			if found++; found == maxSecrets {
				to = len(s)
			}
			out.WriteString(s[done:from])
			out.WriteString(p.hash("redacted", s[from:to]))
			done = to
		}
		at = pieceEnd(s, to) + 1 // where the next name begins
	}
	if done == 0 {
		return s, false
	}
	out.WriteString(s[done:])
	return out.String(), true
}

// redacted matches what Redact writes in place of a secret.
var redacted = memo.Expression(`redacted-[0-9a-f]{16}`)

// BeforeRedacted returns the beginning of s up to the first value that Redact has
// replaced; ok is false when there is none.
func BeforeRedacted(s string) (beginning string, ok bool) {
	if at := redacted().FindStringIndex(s); at != nil {
		return s[:at[0]], true
	}
	return s, false
}

// MayBeRedacted reports whether Redact may have written recorded for s: the texts before,
// between and after the values that it replaced are the same.
func MayBeRedacted(recorded, s string) bool {
	texts := redacted().Split(recorded, -1)
	first, last := texts[0], texts[len(texts)-1]
	if len(texts) == 1 || len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for i, text := range texts[1:] {
		if i == len(texts)-2 {
			return isValue(s, last) || s != "" && len(texts) > maxSecrets // the last one covers the rest
		}
		at := strings.Index(s[min(1, len(s)):], text) + 1
		if at == 0 || !isValue(s[:at], text) {
			return false
		}
		s = s[at+len(text):]
	}
	return false
}

// isValue reports whether Redact may replace s by one hash, before the text next.
func isValue(s, next string) bool {
	return s != "" && (!strings.ContainsAny(s, "&#") || strings.HasPrefix(next, "@"))
}

// MaskRedacted returns s with the same word for all values that Redact has replaced.
func MaskRedacted(s string) string {
	if !strings.Contains(s, "redacted-") {
		return s
	}
	return redacted().ReplaceAllString(s, "redacted")
}

// maxSecrets bounds the hashes of one text: the last one covers the rest of it.
const maxSecrets = 64

// isSeparator reports whether a name can begin after c.
func isSeparator(c byte) bool { return c == '&' || c == ';' || c == '?' || c == '/' || c == '#' }

// pieceEnd returns the index of the next separator in s from at on, or the length.
func pieceEnd(s string, at int) int {
	for at < len(s) && !isSeparator(s[at]) {
		at++
	}
	return at
}

// findSecret returns the bounds of the secret in the piece that begins at s[at];
// from == to when it has none. The search continues at to. query is the index of
// the query in s, negative without one.
func (p *Privacy) findSecret(s string, at, query int) (from, to int) {
	if to := credentialsEnd(s, at); to > at {
		return at, to
	}
	end := pieceEnd(s, at)
	name, value, valued := strings.Cut(s[at:end], "=")
	from = at + len(name) + 1
	switch {
	case valued && p.names.matches(name):
		return from, valueEnd(s, from, query)
	case p.nested(name): // its own = is an escape
		return at, valueEnd(s, at, query)
	case query >= 0 && at > query && !strings.HasSuffix(s[:at], "//") && p.pairs(s[at:end]): // not a host and its port
		if !valued {
			from = at
		}
		return from, valueEnd(s, from, query)
	case valued && p.nested(value):
		return from, end
	}
	return end, end
}

// credentialsEnd returns the end of the credentials before a host at s[at:], if
// that is after "://"; at when there are none.
func credentialsEnd(s string, at int) int {
	if at < 3 || s[at-3:at] != "://" {
		return at
	}
	end := at
	for end < len(s) && s[end] != '/' && s[end] != '?' && s[end] != '#' && s[end] != ' ' {
		end++
	}
	if last := strings.LastIndexByte(s[at:end], '@'); last > 0 {
		return at + last
	}
	return at
}

// valueEnd returns the end of the value at s[from:]: in the path the next slash,
// in the query the next &. A ; ends it only before another parameter, since not
// every site separates parameters by ; .
func valueEnd(s string, from, query int) int {
	inPath := query < 0 || from <= query
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case c == '&', c == '#', inPath && (c == '/' || c == '?'):
			return i
		case c == ';' && isParameter(s[i+1:]):
			return i
		}
	}
	return len(s)
}

// isParameter reports whether s begins with a name, = and a value.
func isParameter(s string) bool {
	i := 0
	for i < len(s) && isNameByte(s[i]) {
		i++
	}
	return i > 0 && i+1 < len(s) && s[i] == '=' && s[i+1] != '=' && !isSeparator(s[i+1])
}

func isNameByte(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_-.[]%", c) >= 0
}

// nested reports whether a piece contains a secret once it is unescaped.
func (p *Privacy) nested(piece string) bool {
	for range maxDecodings {
		plain := unescape(piece)
		if plain == piece {
			return false
		}
		if piece = plain; p.hasSecret(piece) {
			return true
		}
	}
	return false
}

// pairs reports whether s contains name:value with a name that matches a pattern, also in
// quotes as in JSON.
func (p *Privacy) pairs(s string) bool {
	for {
		before, after, found := strings.Cut(s, ":")
		if !found {
			return false
		}
		name := strings.TrimRight(before, " +\\\"'")
		if name = name[strings.LastIndexAny(name, " +=,{[(\"'")+1:]; name != "" && strings.Trim(after, " \"'") != "" && p.names.matches(name) {
			return true
		}
		s = after
	}
}

// hasSecret reports whether s, which is unescaped, contains a secret.
func (p *Privacy) hasSecret(s string) bool {
	if strings.ContainsAny(s, "\"'{") && p.pairs(s) {
		return true
	}
	for at := 0; at < len(s); at++ {
		if at > 0 && !isSeparator(s[at-1]) {
			continue
		}
		if credentialsEnd(s, at) > at {
			return true
		}
		end := pieceEnd(s, at)
		if name, value, valued := strings.Cut(s[at:end], "="); valued && value != "" && p.names.matches(name) {
			return true
		}
	}
	return false
}

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
