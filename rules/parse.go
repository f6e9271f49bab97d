package rules

import (
	"bytes"
	"strings"
	"unicode/utf16"
)

// maxLine is how much of one line is read, in octets, as Google's parser does.
const maxLine = 16663

// rule is one Allow or Disallow line.
type rule struct {
	pattern string // canonical
	text    string // as the site wrote it
	line    int
	allow   bool
}

// group is a run of user-agent lines and the rules that follow it.
type group struct {
	agents []string // values as the site wrote them
	rules  []rule
}

// parse reads any bytes. There is no such thing as an invalid file (RFC 9309
// §2.3.1.5): every line that can be understood is used.
func parse(body []byte, origin Origin) []group {
	var p parser
	p.origin = origin
	body = decodeText(body)
	for n := 1; len(body) > 0; n++ {
		end := bytes.IndexAny(body, "\r\n")
		line := body
		if end < 0 {
			body = nil
		} else {
			line = body[:end]
			if body[end] == '\r' && end+1 < len(body) && body[end+1] == '\n' {
				end++
			}
			body = body[end+1:]
		}
		p.line(n, line)
	}
	return p.groups
}

// decodeText removes a byte order mark, whole or partial, and decodes UTF-16
// that says it is.
func decodeText(b []byte) []byte {
	switch {
	case bytes.HasPrefix(b, []byte{0xEF, 0xBB, 0xBF}):
		return b[3:]
	case bytes.HasPrefix(b, []byte{0xEF, 0xBB}):
		return b[2:]
	case bytes.HasPrefix(b, []byte{0xEF}):
		return b[1:]
	case bytes.HasPrefix(b, []byte{0xFF, 0xFE}), bytes.HasPrefix(b, []byte{0xFE, 0xFF}):
		big := b[0] == 0xFE
		units := make([]uint16, 0, len(b)/2)
		for i := 2; i+1 < len(b); i += 2 {
			u := uint16(b[i]) | uint16(b[i+1])<<8
			if big {
				u = u<<8 | u>>8
			}
			units = append(units, u)
		}
		return []byte(string(utf16.Decode(units)))
	}
	return b
}

type parser struct {
	origin Origin
	groups []group
	inBody bool // the last group has a rule
}

func (p *parser) line(n int, b []byte) {
	if len(b) > maxLine {
		b = b[:maxLine]
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if i := bytes.IndexByte(b, '#'); i >= 0 {
		b = b[:i]
	}
	text := strings.Trim(string(b), " \t")
	key, value, ok := strings.Cut(text, ":")
	if !ok {
		words := strings.Fields(text)
		if len(words) != 2 {
			return
		}
		key, value = words[0], words[1]
	}
	key, value = strings.TrimRight(key, " \t"), strings.Trim(value, " \t")
	switch kindOf(key) {
	case "user-agent":
		p.userAgent(n, key, value)
	case "allow":
		p.rule(n, key, value, true)
	case "disallow":
		p.rule(n, key, value, false)
	}
}

// kindOf returns which field a key is, with the misspellings that Google's
// parser accepts; keys are known by how they begin.
func kindOf(key string) string {
	k := strings.ToLower(key)
	switch {
	case strings.HasPrefix(k, "user-agent"), k == "useragent", k == "user agent":
		return "user-agent"
	case strings.HasPrefix(k, "allow"):
		return "allow"
	case strings.HasPrefix(k, "disallow"):
		return "disallow"
	}
	switch k {
	case "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		return "disallow"
	}
	return ""
}

// userAgent begins a group or adds a name to the run of user-agent lines. A
// rule that stands on the same line is split off.
func (p *parser) userAgent(n int, key, value string) {
	lower := strings.ToLower(value)
	rest, cut := "", len(value)
	for _, field := range []string{"disallow:", "allow:"} {
		if i := strings.Index(lower, field); i >= 0 && i < cut && (i == 0 || strings.ContainsRune(" \t*", rune(value[i-1]))) {
			cut, rest = i, value[i:]
		}
	}
	if rest != "" {
		value = strings.Trim(value[:cut], " \t")
	}
	if len(p.groups) == 0 || p.inBody {
		p.groups = append(p.groups, group{})
		p.inBody = false
	}
	g := &p.groups[len(p.groups)-1]
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.Trim(name, " \t"); name != "" {
			g.agents = append(g.agents, name)
		}
	}
	if rest != "" {
		k, v, _ := strings.Cut(rest, ":")
		p.rule(n, k, strings.Trim(v, " \t"), len(k) == len("allow"))
	}
}

// rule adds a rule to the last group; without one it is ignored.
func (p *parser) rule(n int, key, value string, allow bool) {
	if len(p.groups) == 0 {
		return
	}
	g := &p.groups[len(p.groups)-1]
	p.inBody = true
	values := []string{value}
	if !allow {
		values = pathList(value)
	}
	for _, v := range values {
		path, ok := p.path(v)
		if !ok {
			continue
		}
		g.rules = append(g.rules, rule{
			pattern: string(appendCanonical(nil, path, true)),
			text:    key + ": " + value, line: n, allow: allow,
		})
	}
}

// pathList splits a value of several paths, each beginning with a slash or a star.
func pathList(value string) []string {
	fields := strings.Fields(value)
	for _, f := range fields {
		if f[0] != '/' && f[0] != '*' {
			return []string{value}
		}
	}
	return fields
}

// path returns the path of a rule's value; an empty value is no rule, and
// neither is another site's URL.
func (p *parser) path(value string) (string, bool) {
	if value == "" {
		return "", false
	}
	if value[0] == '/' || value[0] == '*' {
		return value, true
	}
	if scheme, rest, ok := strings.Cut(value, "://"); ok {
		authority, path := rest, "/"
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			authority, path = rest[:i], rest[i:]
		}
		o, err := ParseOrigin(strings.ToLower(scheme), strings.ToLower(authority))
		if err != nil || o != p.origin {
			return "", false
		}
		if path[0] == '?' {
			path = "/" + path
		}
		return path, true
	}
	return "/" + value, true
}
