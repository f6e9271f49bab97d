package http1

import "strings"

// octets is a set of octets.
type octets [256]bool

func setOf(members string) (s octets) {
	for i := range len(members) {
		s[members[i]] = true
	}
	return s
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

var (
	tokens = setOf(alphanumeric + "!#$%&'*+-.^_`|~")     // RFC 9110 §5.6.2
	hosts  = setOf(alphanumeric + "!$%&'()*+,-.:;=[]_~") // RFC 3986 §3.2.2, with a port
)

// contain reports whether all octets of text are in s.
func (s *octets) contain(text string) bool {
	for i := range len(text) {
		if !s[text[i]] {
			return false
		}
	}
	return true
}

// isToken reports whether text is a token (RFC 9110 §5.6.2).
func isToken(text string) bool { return text != "" && tokens.contain(text) }

// isControl reports whether no field value may contain c (RFC 9110 §5.5).
func isControl(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }

// hasControl reports whether text contains a control character.
func hasControl(text string) bool {
	for i := range len(text) {
		if isControl(text[i]) {
			return true
		}
	}
	return false
}

// hasBreak reports whether text contains an octet that some recipient takes for the end
// of a line or of a text.
func hasBreak(text string) bool {
	for i := range len(text) {
		if c := text[i]; c == '\r' || c == '\n' || c == 0 {
			return true
		}
	}
	return false
}

// hasBlank reports whether text contains an octet that no target may contain.
func hasBlank(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c == 0x7f {
			return true
		}
	}
	return false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// trimBlanks removes blanks around text (OWS, RFC 9110 §5.6.3).
func trimBlanks(text string) string {
	for text != "" && isBlank(text[0]) {
		text = text[1:]
	}
	return trimRight(text)
}

func trimRight(text string) string {
	for text != "" && isBlank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

// hasMember reports whether the comma-separated list contains token, in upper or lower
// case.
func hasMember(list, token string) bool {
	for more := true; more; {
		var member string
		member, list, more = strings.Cut(list, ",")
		if strings.EqualFold(trimBlanks(member), token) {
			return true
		}
	}
	return false
}
