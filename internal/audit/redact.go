package audit

import (
	"regexp"
	"strings"
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
var redacted = regexp.MustCompile(`redacted-[0-9a-f]{16}`)

// BeforeRedacted returns the beginning of s up to the first value that Redact has
// replaced; ok is false when there is none.
func BeforeRedacted(s string) (beginning string, ok bool) {
	if at := redacted.FindStringIndex(s); at != nil {
		return s[:at[0]], true
	}
	return s, false
}

// MayBeRedacted reports whether Redact may have written recorded for s: the texts before,
// between and after the values that it replaced are the same.
func MayBeRedacted(recorded, s string) bool {
	texts := redacted.Split(recorded, -1)
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
	return redacted.ReplaceAllString(s, "redacted")
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
