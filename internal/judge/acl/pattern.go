package acl

import (
	"fmt"
	"strings"

	"heed/rules"
)

// HostPattern names hosts: "example.org" is that host alone, "*.example.org"
// every host below it but not itself, "*" all of them; ":8443" behind any of
// them means that port alone. The zero value fits nothing.
type HostPattern struct {
	text   string
	host   string // canonical; without the "*." of a suffix
	suffix bool   // hosts that end in "." + host
	any    bool
	port   uint16 // 0: every port
}

// ParseHostPattern reads a pattern as a person writes it: letter case, a
// trailing dot and the spelling of addresses and international names do not
// matter.
func ParseHostPattern(text string) (HostPattern, error) {
	p := HostPattern{text: text}
	rest, suffix := strings.CutPrefix(text, "*.")
	if p.suffix = suffix; !suffix {
		rest, p.any = strings.CutPrefix(text, "*")
	}
	if p.any && rest != "" && rest[0] != ':' || strings.ContainsAny(rest, "*/") {
		return HostPattern{}, fmt.Errorf(`%q is no host pattern: write "example.org", "*.example.org" or "*", with ":443" behind it for one port`, text)
	}
	if p.any {
		rest = "any" + rest // only the port is of interest
	}
	o, err := rules.ParseOrigin("http", rest)
	if err != nil {
		return HostPattern{}, fmt.Errorf("%q is no host pattern: %w", text, err)
	}
	if p.host = o.Host; namesPort(rest) {
		p.port = o.Port
	}
	return p, nil
}

// namesPort reports whether a valid authority has a port.
func namesPort(authority string) bool {
	return strings.LastIndexByte(authority, ':') > strings.LastIndexByte(authority, ']')
}

// String returns the pattern as it was written.
func (p HostPattern) String() string { return p.text }

// Matches reports whether the origin's host and port are among those that p names.
func (p HostPattern) Matches(o rules.Origin) bool {
	switch {
	case p.text == "" || p.port != 0 && p.port != o.Port:
		return false
	case p.any:
		return true
	case p.suffix:
		return len(o.Host) > len(p.host)+1 && strings.HasSuffix(o.Host, p.host) && o.Host[len(o.Host)-len(p.host)-1] == '.'
	}
	return o.Host == p.host
}

// Glob is a pattern for texts in which "*" matches any run of characters.
// Letter case does not matter. The zero value fits everything.
type Glob struct {
	text  string
	parts []string // lower case, between the stars
}

// NewGlob returns the glob of text; empty fits everything.
func NewGlob(text string) Glob {
	if text == "" {
		return Glob{}
	}
	return Glob{text: text, parts: strings.Split(strings.ToLower(text), "*")}
}

// begin returns how the texts begin that g matches, in lower case.
func (g Glob) begin() string {
	if len(g.parts) == 0 {
		return ""
	}
	return g.parts[0]
}

// Matches reports whether s matches g.
func (g Glob) Matches(s string) bool {
	if len(g.parts) == 0 {
		return true
	}
	s = strings.ToLower(s)
	first, last := g.parts[0], g.parts[len(g.parts)-1]
	if len(g.parts) == 1 {
		return s == first
	}
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range g.parts[1 : len(g.parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

// MarshalText gives the pattern as it was written.
func (p HostPattern) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// UnmarshalText reads what ParseHostPattern reads.
func (p *HostPattern) UnmarshalText(text []byte) (err error) {
	*p, err = ParseHostPattern(string(text))
	return err
}
