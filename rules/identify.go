package rules

import "strings"

// Identify finds the product tokens in a User-Agent string. An empty string
// gives an agent without tokens. Not cheap: remember the result per string.
//
// URLs and mail addresses are taken out first, since they name other robots.
// Then every piece between brackets, commas and semicolons is a name as a
// whole up to its first "/", and so is each of its words. Words that only say
// what the client is compatible with are dropped.
func Identify(userAgent string) *Agent {
	return &Agent{Header: userAgent, Tokens: identify(userAgent), key: keyOf("header ", userAgent)}
}

// Declare returns the agent an operator declared by its product tokens: every
// one of them must allow. A version after a "/" is dropped.
func Declare(tokens ...string) *Agent {
	a := &Agent{Declared: true, key: keyOf("declared ", strings.Join(tokens, "\x00"))}
	for _, t := range tokens {
		name, _, _ := strings.Cut(t, "/")
		if name = cleanName(name); name != "" {
			a.Tokens = append(a.Tokens, Token{Name: name, Piece: t})
		}
	}
	return a
}

// identify finds the names in a User-Agent string.
func identify(userAgent string) []Token {
	var tokens []Token
	known := make(map[string]int)
	add := func(name, phrase, piece string) {
		i, again := known[name]
		switch {
		case again && tokens[i].phrase != phrase:
			tokens[i].phrase = "" // it stands elsewhere as well
		case again, name == "", namesNobody(name):
		default:
			known[name] = len(tokens)
			tokens = append(tokens, Token{Name: name, Piece: piece, phrase: phrase})
		}
	}
	for _, piece := range pieces(userAgent) {
		head, _, _ := strings.Cut(piece, "/")
		phrase := cleanName(head)
		add(phrase, "", strings.TrimSpace(piece))
		for word := range strings.FieldsSeq(piece) {
			head, _, versioned := strings.Cut(word, "/")
			for name := range strings.FieldsSeq(cleanName(head)) {
				add(trimName(name), phrase, word)
			}
			if versioned {
				phrase = "" // which ended here
			}
		}
	}
	return tokens
}

// pieces splits a User-Agent string at brackets, commas, semicolons, URLs and
// mail addresses, which are left out.
func pieces(s string) []string {
	var all []string
	split(s, func(piece string, address bool) {
		if !address && strings.TrimSpace(piece) != "" {
			all = append(all, piece)
		}
	})
	return all
}

// split yields the pieces of a User-Agent string, URLs and mail addresses
// among them.
func split(s string, yield func(piece string, address bool)) {
	from := 0
	end := func(at, next int) {
		if at > from {
			yield(s[from:at], false)
		}
		from = next
	}
	for i := 0; i < len(s); i++ {
		switch {
		case strings.IndexByte("()[]{},;", s[i]) >= 0:
			end(i, i+1)
		case strings.HasPrefix(s[i:], "://"):
			at := i
			for at > from && letter(s[at-1]) {
				at--
			}
			i += addressEnd(s[i:])
			end(at, i)
			yield(s[at:i], true)
			i--
		case s[i] == '@' && i > from && mailOctet(s[i-1]):
			at := i
			for at > from && mailOctet(s[at-1]) {
				at--
			}
			for i++; i < len(s) && mailOctet(s[i]); i++ {
			}
			end(at, i)
			yield(s[at:i], true)
			i--
		}
	}
	end(len(s), len(s))
}

// addressEnd returns where the URL at the start of s ends.
func addressEnd(s string) int {
	if end := strings.IndexAny(s, " \t()[]{}<>,;\"'"); end >= 0 {
		return end
	}
	return len(s)
}

// mailOctet reports whether c may stand in a mail address.
func mailOctet(c byte) bool {
	return letter(c) || c >= '0' && c <= '9' || strings.IndexByte("._%+-", c) >= 0
}
