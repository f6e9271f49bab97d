package accesslog

import (
	"strconv"
	"strings"
	"time"
)

// clock remembers the hour and zone of the line before, which most lines share.
type clock struct {
	key  string
	hour time.Time
}

// parse reads a line of the common or the combined format into q. The reason is why it is
// no request; empty when it is one.
func (c *clock) parse(line string, q *Request) (reason string) {
	line = strings.TrimSuffix(line, "\r")
	if strings.TrimSpace(line) == "" {
		return "an empty line"
	}
	open := strings.Index(line, " [")
	if open < 0 {
		return "no time in brackets"
	}
	head, rest := line[:open], line[open+2:]
	stamp, rest, ok := strings.Cut(rest, "] ")
	if !ok {
		return "no time in brackets"
	}
	if q.Time, ok = c.time(stamp); !ok {
		return "a time that is not like 02/Jan/2006:15:04:05 -0700"
	}
	q.Host, q.Client = clientOf(head)
	request, rest, ok := quoted(rest)
	if !ok {
		return "no request in quotes"
	}
	q.Method, q.Target = requestLine(request)
	status, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	octets, rest, _ := strings.Cut(rest, " ")
	if q.Status, ok = statusOf(status); !ok {
		return "no status after the request"
	}
	if n, err := strconv.ParseInt(octets, 10, 64); err == nil && n > 0 {
		q.Bytes = n
	}
	if referrer, after, ok := quoted(rest); ok {
		q.Referrer = present(referrer)
		userAgent, _, _ := quoted(after)
		q.UserAgent = present(userAgent)
	}
	return ""
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

// time reads "02/Jan/2006:15:04:05 -0700".
func (c *clock) time(s string) (time.Time, bool) {
	const form = "02/Jan/2006:15:04:05 -0700"
	if len(s) != len(form) || s[14] != ':' || s[17] != ':' {
		return time.Time{}, false
	}
	minute, second := two(s[15:17]), two(s[18:20])
	if minute > 59 || second > 60 {
		return time.Time{}, false
	}
	if len(c.key) != len(form) || c.key[:14] != s[:14] || c.key[20:] != s[20:] {
		t, err := time.Parse(form, s[:14]+":00:00"+s[20:])
		if err != nil {
			return time.Time{}, false
		}
		c.key, c.hour = strings.Clone(s), t
	}
	return c.hour.Add(time.Duration(minute*60+second) * time.Second), true
}

// two returns the number of two digits; 99 when they are none.
func two(s string) int {
	a, b := int(s[0])-'0', int(s[1])-'0'
	if a < 0 || a > 9 || b < 0 || b > 9 {
		return 99
	}
	return 10*a + b
}

// clientOf returns the virtual host, if there is one, and the client of what is before the
// time: "client ident user", or "host:port client ident user". A user name may have blanks.
func clientOf(head string) (host, client string) {
	first, rest, _ := strings.Cut(head, " ")
	second, rest, _ := strings.Cut(rest, " ")
	if strings.Contains(rest, " ") && second != "-" && isAddress(second) {
		return first, second
	}
	return "", first
}

// isAddress reports whether s may be an IP address.
func isAddress(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF.:") == "" && strings.ContainsAny(s, ".:")
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

// quoted returns the text of the first quotes in s with the escapes of Apache and nginx
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
		case s[i+1] == 'x' && i+3 < len(s) && isHex(s[i+2]) && isHex(s[i+3]):
			n, _ := strconv.ParseUint(s[i+2:i+4], 16, 8) // two hexadecimal digits
			b.WriteByte(byte(n))
			i += 3
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

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
