package accesslog

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// combined reads the common and the combined format, also with the virtual host first.
type combined struct {
	clock  clock
	hosts  bool // lines begin with a virtual host, so that an address there is one too
	agents bool // lines have a User-Agent
}

func (p *combined) fresh() parser { return &combined{hosts: p.hosts, agents: p.agents} }

// learn notes whether a line that was read into q has a virtual host that is a name, and a
// User-Agent.
func (p *combined) learn(q *Request) {
	p.hosts, p.agents = p.hosts || isHostName(q.Host), p.agents || q.UserAgent != ""
}

// parse reads a line.
func (p *combined) parse(line string, q *Request) (reason string) {
	head, rest, t, ok := p.stamped(line)
	if !ok {
		switch {
		case strings.HasPrefix(line, "["):
			return "no client before the time"
		case strings.Contains(line, " ["):
			return "a time that is not like 25/Nov/2026:14:05:59 +0000"
		}
		return "no time in brackets"
	}
	q.Time = t
	q.Host, q.Client = p.clientOf(head)
	follows := strings.HasPrefix(rest, ` "`) // some servers log other fields before the request
	request, rest, ok := quoted(rest)
	if !ok {
		return "no request in quotes"
	}
	q.Method, q.Target = requestLine(request)
	status, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	octets, rest, _ := strings.Cut(rest, " ")
	if q.Status, ok = statusOf(status); !ok && !follows {
		return "no request in quotes"
	} else if !ok {
		return "no status after the request"
	}
	q.Bytes = octetsOf(octets)
	return p.described(q, rest)
}

// described reads the referrer, the User-Agent and what follows them: nginx logs
// X-Forwarded-For there, in its own example of a log_format.
func (p *combined) described(q *Request, rest string) (reason string) {
	for _, f := range []struct {
		name  string
		value *string
	}{{"referrer", &q.Referrer}, {"User-Agent", &q.UserAgent}} {
		text, after, ok := quoted(rest)
		switch {
		case !ok && strings.IndexByte(rest, '"') >= 0:
			return "cut off in its " + f.name
		case !ok && p.agents && f.value == &q.UserAgent:
			return "cut off before its " + f.name
		case !ok:
			return ""
		}
		*f.value, rest = present(text), after
	}
	if private(q.Client) {
		if forwarded, _, ok := quoted(rest); ok {
			q.Client = clientOf(q.Client, forwarded)
		}
	}
	return ""
}

// when returns the time of a line.
func (p *combined) when(line string) (time.Time, bool) {
	_, _, t, ok := p.stamped(line)
	return t, ok
}

// stamped finds the time of a line, and what is before and after it. A user name may have
// brackets with a time, but no quotation mark that is not escaped: the first time that one
// follows counts, else the first.
func (p *combined) stamped(line string) (head, rest string, t time.Time, ok bool) {
	for at := 0; ; {
		open := strings.IndexByte(line[at:], '[')
		if open < 0 {
			return head, rest, t, ok
		}
		open += at
		at = open + 1
		stop := at + len(stampForm)
		if open == 0 || line[open-1] != ' ' || stop >= len(line) || line[stop] != ']' {
			continue
		}
		if found, isTime := p.clock.time(line[at:stop]); isTime && (!ok || strings.HasPrefix(line[stop+1:], ` "`)) {
			head, rest, t, ok = line[:open-1], line[stop+1:], found, true
		}
		if ok && strings.HasPrefix(rest, ` "`) {
			return head, rest, t, true
		}
	}
}

// octetsOf returns a number of octets; 0 for what is none.
func octetsOf(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// present returns a field, of which - is none.
func present(field string) string {
	if field == "-" {
		return ""
	}
	return field
}

func statusOf(text string) (int, bool) {
	if text == "-" {
		return 0, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n < 1000
}

// requestLine splits a request line; the target keeps its blanks.
func requestLine(s string) (method, target string) {
	if s == "-" {
		return "", ""
	}
	method, target, ok := strings.Cut(s, " ")
	if !ok {
		return "", s
	}
	if at := strings.LastIndex(target, " HTTP/"); at >= 0 {
		target = target[:at]
	}
	return method, target
}

// quoted returns the text of the first quotes in s with the escapes of Apache, nginx and JSON
// undone, and what follows.
func quoted(s string) (text, rest string, ok bool) {
	at := strings.IndexByte(s, '"')
	if at < 0 {
		return "", s, false
	}
	s = s[at+1:]
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return s[:i], s[i+1:], true
		case '\\':
			return unescape(s, i)
		}
	}
	return "", s, false
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', 'v': '\v'}

// unescape is quoted for a text whose first escape is at s[i].
func unescape(s string, i int) (text, rest string, ok bool) {
	var b strings.Builder
	b.WriteString(s[:i])
	for ; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
		case s[i+1] == 'x' && hexOf(s[i+2:], 2) >= 0:
			b.WriteByte(byte(hexOf(s[i+2:], 2)))
			i += 3
		case s[i+1] == 'u' && hexOf(s[i+2:], 4) >= 0:
			r := hexOf(s[i+2:], 4)
			i += 5
			if next, ok := strings.CutPrefix(s[i+1:], `\u`); ok {
				if pair := utf16.DecodeRune(r, hexOf(next, 4)); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			b.WriteRune(r)
		default:
			i++
			if c, special := escapes[s[i]]; special {
				b.WriteByte(c)
			} else {
				b.WriteByte(s[i])
			}
		}
	}
	return "", s, false
}

// hexOf returns the number that s begins with in n hexadecimal digits; -1 for none.
func hexOf(s string, n int) rune {
	v, err := strconv.ParseUint(s[:min(len(s), n)], 16, 32)
	if err != nil || len(s) < n {
		return -1
	}
	return rune(v)
}
