package rules

import "strings"

// Identify finds the product tokens in a User-Agent string. An empty string
// gives an agent without tokens. Not cheap: remember the result per string.
func Identify(userAgent string) *Agent {
	return &Agent{Header: userAgent, Tokens: tokensOf(userAgent), key: "u" + userAgent}
}

// tokensOf finds the names in a User-Agent string: URLs and mail addresses are
// taken out first, since they name other robots; then every piece between
// brackets, commas and semicolons is a name as a whole, and so is each of its
// words. Words that say only what the client is compatible with are dropped.
func tokensOf(userAgent string) []Token {
	var tokens []Token
	seen := map[string]bool{}
	add := func(name, piece string) {
		name = nameOf(name)
		if name == "" || seen[name] || generic(name) {
			return
		}
		seen[name] = true
		tokens = append(tokens, Token{Name: name, Piece: strings.TrimSpace(piece)})
	}
	for piece := range strings.FieldsFuncSeq(withoutAddresses(userAgent), func(r rune) bool {
		return strings.ContainsRune("()[]{},;", r)
	}) {
		phrase, _, _ := strings.Cut(piece, "/")
		add(phrase, piece)
		for word := range strings.FieldsSeq(piece) {
			name, _, _ := strings.Cut(word, "/")
			add(name, word)
		}
	}
	return tokens
}

// withoutAddresses replaces URLs and mail addresses by separators.
func withoutAddresses(s string) string {
	if !strings.Contains(s, "://") && !strings.Contains(s, "@") {
		return s
	}
	ends := func(r rune) bool { return strings.ContainsRune(" \t()[]{},;<>\"'", r) }
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexFunc(s, ends)
		word := s
		if i >= 0 {
			word = s[:i]
		}
		if strings.Contains(word, "://") || strings.Contains(word, "@") {
			b.WriteByte(';')
		} else {
			b.WriteString(word)
		}
		s = s[len(word):]
		if len(s) > 0 {
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return b.String()
}

// nameOf returns s as names are compared: lower case, without characters that
// names do not have.
func nameOf(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', strings.ContainsRune("._-!'", r):
			return r
		case r == ' ', r == '\t':
			return ' '
		case r >= 0x80:
			return r
		}
		return -1
	}, s)
	return strings.Trim(strings.Join(strings.Fields(s), " "), "._-!' ")
}

// compatibility are the words of a User-Agent that name no robot.
var compatibility = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`mozilla applewebkit khtml gecko like chrome chromium safari version
		mobile firefox edge edg edga edgios opr trident msie rv windows nt wow64 win64 macintosh intel mac os x x11 x86_64 i686
		linux android iphone ipad cpu compatible u en en-us languages build crios fxios wv tablet headlesschrome`) {
		m[w] = true
	}
	return m
}()

// generic reports whether every word of name is a compatibility word or a number.
func generic(name string) bool {
	for word := range strings.FieldsSeq(name) {
		if !compatibility[word] && strings.Trim(word, "0123456789._-") != "" {
			return false
		}
	}
	return true
}
