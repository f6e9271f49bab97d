package audit

import "strings"

// Redact returns s, a target, an address or a text that may quote one, with
// what must not be kept replaced by keyed hashes, and whether there was any:
// the values of parameters whose names fit (in the query, between & and ;, in
// the path behind ; or as a segment, and in an address inside another's value),
// and credentials before a host. All else stays, octet by octet.
func (p *Privacy) Redact(s string) (string, bool) {
	if p == nil || strings.IndexByte(s, '=') < 0 && strings.IndexByte(s, '@') < 0 && strings.IndexByte(s, '%') < 0 {
		return s, false
	}
	var out strings.Builder
	done, query := 0, strings.IndexByte(s, '?')
	for at, found := 0, 0; at < len(s); {
		from, to := p.secret(s, at, query)
		if from < to {
			if found++; found == maxSecrets {
				to = len(s)
			}
			out.WriteString(s[done:from])
			out.WriteString(p.hash("redacted", s[from:to]))
			done = to
		}
		at = to
		for at < len(s) && !begins(s[at]) { // to where the next name begins
			at++
		}
		at++
	}
	if done == 0 {
		return s, false
	}
	out.WriteString(s[done:])
	return out.String(), true
}

// maxSecrets bounds how many are hashed of one text: the last is all that follows.
const maxSecrets = 64

// begins reports whether a name can begin behind c.
func begins(c byte) bool { return c == '&' || c == ';' || c == '?' || c == '/' || c == '#' }

// secret returns where the secret lies that the piece beginning at s[at] holds,
// if from < to; the search goes on at to. The query of s begins at query; where
// that is negative, there is none.
func (p *Privacy) secret(s string, at, query int) (from, to int) {
	if to := credentials(s, at); to > at {
		return at, to
	}
	end := at
	for end < len(s) && !begins(s[end]) {
		end++
	}
	name, value, valued := strings.Cut(s[at:end], "=")
	from = at + len(name) + 1
	switch {
	case valued && p.names.fits(name):
		return from, valueEnd(s, from, query)
	case p.nested(name): // its own = is an escape
		return at, valueEnd(s, at, query)
	case valued && p.nested(value):
		return from, end
	}
	return end, end
}

// credentials returns where those before a host end that stand at s[at:], the
// place behind "//" of an address; at when there are none.
func credentials(s string, at int) int {
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

// valueEnd returns where the value ends that begins at s[from:]: in the path at
// the next slash, in the query at the next &. What follows a ; is part of it
// unless it reads as a parameter, since not every site takes it for the end.
func valueEnd(s string, from, query int) int {
	inPath := query < 0 || from <= query
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case c == '&', c == '#', inPath && (c == '/' || c == '?'):
			return i
		case c == ';' && parameter(s[i+1:]):
			return i
		}
	}
	return len(s)
}

// parameter reports whether s begins with a name, = and a value.
func parameter(s string) bool {
	i := 0
	for i < len(s) && isNameByte(s[i]) {
		i++
	}
	return i > 0 && i+1 < len(s) && s[i] == '=' && s[i+1] != '=' && !begins(s[i+1])
}

func isNameByte(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_-.[]%", c) >= 0
}

// nested reports whether a piece, unescaped, holds what has to be hidden.
func (p *Privacy) nested(piece string) bool {
	for range maxDecodings {
		plain := unescape(piece)
		if plain == piece {
			return false
		}
		if piece = plain; p.holds(piece) {
			return true
		}
	}
	return false
}

// holds reports whether s, in which nothing is escaped that matters, has a
// secret.
func (p *Privacy) holds(s string) bool {
	for at := 0; at < len(s); at++ {
		if at > 0 && !begins(s[at-1]) {
			continue
		}
		if credentials(s, at) > at {
			return true
		}
		end := at
		for end < len(s) && !begins(s[end]) {
			end++
		}
		if name, value, valued := strings.Cut(s[at:end], "="); valued && value != "" && p.names.fits(name) {
			return true
		}
	}
	return false
}
