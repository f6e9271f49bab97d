package accesslog

import (
	"fmt"
	"strings"
	"time"

	"heed/internal/base/memo"
)

// pattern reads lines of a log_format of nginx or a LogFormat of Apache.
type pattern struct {
	clock  clock
	parts  []part
	values values
}

// part is a variable of a pattern and the text before it.
type part struct {
	before string
	field  field
	time   func(c *clock, s string) (time.Time, bool) // of fieldTime
	quoted bool                                       // quotation marks are around it
	after  string                                     // the text that ends it; empty: the end of the line
	name   string
}

// compile returns the parser of a pattern.
func (r *Reader) compile(format string) (parser, error) {
	format = strings.TrimSpace(format)
	switch strings.ToLower(format) {
	case "common", "combined":
		return &combined{}, nil
	case "vhost_combined", "vhost_common":
		return &combined{hosts: true}, nil
	case "json":
		return &jsonLines{names: r.names, refused: r.options.Refused}, nil
	case "csv":
		return &csvLines{names: r.names, refused: r.options.Refused}, nil
	case "w3c":
		return &w3c{}, nil
	}
	text, variables, find := nginxText(format), nginxVariable(), nginxField
	literal := func(text string) string { return text }
	if !nginxVariable().MatchString(text) {
		text, variables, find = apacheText(format), apacheVariable(), apacheField
		literal = func(text string) string { return strings.ReplaceAll(text, "%%", "%") }
	}
	found := variables.FindAllStringSubmatchIndex(text, -1)
	if len(found) == 0 {
		return nil, fmt.Errorf("--format: %q has no variable\nWrite the pattern of nginx's log_format, such as '$remote_addr [$time_local] \"$request\" $status', or of Apache's LogFormat, such as '%%h %%t \"%%r\" %%>s'", format)
	}
	p := &pattern{}
	at := 0
	for _, m := range found {
		q := find(text, m)
		q.before, q.name = literal(text[at:m[0]]), text[m[0]:m[1]]
		at = m[1]
		if n := len(p.parts); n > 0 && q.before == "" && q.field == fieldQuery && p.parts[n-1].field == fieldPath {
			p.parts[n-1].field, p.parts[n-1].name = fieldTarget, p.parts[n-1].name+q.name // as in %U%q
			continue
		}
		p.parts = append(p.parts, q)
	}
	return p, p.check(literal(text[at:]))
}

// check completes the parts. tail is the text after the last one.
func (p *pattern) check(tail string) error {
	has := [fields]bool{}
	for i := range p.parts {
		q := &p.parts[i]
		if q.after = tail; i+1 < len(p.parts) {
			if q.after = p.parts[i+1].before; q.after == "" {
				return fmt.Errorf("--format: nothing separates %s from %s\nPut a blank or another separator between them, in the server's settings too", q.name, p.parts[i+1].name)
			}
		}
		q.quoted = strings.HasSuffix(q.before, `"`) && strings.HasPrefix(q.after, `"`)
		if q.field == fieldTime && q.time == nil {
			return fmt.Errorf("--format: the form of the time %s cannot be read\nUse %%t, or %%{...}t with the conversions of strftime, sec, msec or usec", q.name)
		}
		has[q.field] = true
	}
	switch {
	case !has[fieldTime]:
		return fmt.Errorf("--format: the pattern has no time\nUse $time_local, $time_iso8601 or $msec of nginx, or %%t of Apache")
	case !has[fieldRequest] && !has[fieldTarget] && !has[fieldPath]:
		return fmt.Errorf("--format: the pattern has no request\nUse $request or $request_uri of nginx, or %%r or %%U of Apache")
	}
	return nil
}

var (
	nginxVariable   = memo.Expression(`\$(?:(\w+)|\{(\w+)\})`)
	nginxStatement  = memo.Expression(`(?s)^log_format\s+\S+\s+(?:escape=\w+\s+)?(.*?);?$`)
	nginxSegment    = memo.Expression(`'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"`)
	apacheVariable  = memo.Expression(`%([!,\d]*)([<>]?)(?:\{([^}]*)\})?(\^t[io]|[A-Za-z])`)
	apacheStatement = memo.Expression(`(?s)^(?:LogFormat|CustomLog\s+\S+)\s+"((?:[^"\\]|\\.)*)".*$`)
)

// nginxText returns the pattern of a log_format statement, or what is no statement as it
// is.
func nginxText(format string) string {
	m := nginxStatement().FindStringSubmatch(format)
	if m == nil {
		return format
	}
	var b strings.Builder
	for _, s := range nginxSegment().FindAllStringSubmatch(m[1], -1) {
		b.WriteString(unslash.Replace(s[1] + s[2]))
	}
	return b.String()
}

// apacheText returns the pattern of a LogFormat directive, or what is none as it is. The
// quotation marks of both may be escaped.
func apacheText(format string) string {
	if m := apacheStatement().FindStringSubmatch(format); m != nil {
		format = m[1]
	}
	return unslash.Replace(format)
}

var unslash = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t")

// The variables of nginx that have what a study needs.
var nginxFields = map[string]field{
	"remote_addr": fieldClient, "realip_remote_addr": fieldNone, "http_x_forwarded_for": fieldForwarded, "proxy_add_x_forwarded_for": fieldForwarded,
	"scheme": fieldScheme, "server_port": fieldPort, "http_forwarded": fieldForwarded, "http_x_real_ip": fieldForwarded, "host": fieldHost, "http_host": fieldHost, "server_name": fieldHost,
	"request": fieldRequest, "request_method": fieldMethod, "request_uri": fieldTarget, "uri": fieldPath, "document_uri": fieldPath,
	"args": fieldQuery, "query_string": fieldQuery, "status": fieldStatus, "body_bytes_sent": fieldBytes, "bytes_sent": fieldBytes,
	"http_referer": fieldReferrer, "http_user_agent": fieldAgent, "time_local": fieldTime, "time_iso8601": fieldTime, "msec": fieldTime,
}

// nginxField returns the part of a variable.
func nginxField(text string, m []int) part {
	name := group(text, m, 1) + group(text, m, 2)
	return part{field: nginxFields[name], time: (*clock).anyTime}
}

func group(text string, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return text[m[2*n]:m[2*n+1]]
}

// The conversions of Apache that have what a study needs.
var apacheFields = map[string]field{
	"h": fieldClient, "a": fieldClient, "v": fieldHost, "V": fieldHost, "r": fieldRequest, "m": fieldMethod, "U": fieldPath, "q": fieldQuery,
	"s": fieldStatus, "b": fieldBytes, "B": fieldBytes, "O": fieldBytes, "t": fieldTime,
	"{referer}i": fieldReferrer, "{user-agent}i": fieldAgent, "{host}i": fieldHost,
	"{x-forwarded-for}i": fieldForwarded, "{forwarded}i": fieldForwarded, "{x-real-ip}i": fieldForwarded,
}

// apacheField returns the part of a conversion.
func apacheField(text string, m []int) part {
	argument, letter := group(text, m, 3), group(text, m, 4)
	switch {
	case letter == "t" && argument == "":
		return part{field: fieldTime, time: bracketed}
	case letter == "t":
		return part{field: fieldTime, time: apacheTime(argument)}
	case argument != "" && letter != "a":
		letter = "{" + strings.ToLower(argument) + "}" + letter
	}
	return part{field: apacheFields[letter]}
}

// bracketed reads the time of %t, of which the brackets may be in the pattern.
func bracketed(c *clock, s string) (time.Time, bool) {
	return c.time(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
}

// apacheTime returns what reads %{...}t; nil when the form is not known.
func apacheTime(form string) func(*clock, string) (time.Time, bool) {
	form = strings.TrimPrefix(strings.TrimPrefix(form, "begin:"), "end:")
	units := map[string]time.Duration{"sec": time.Second, "msec": time.Millisecond, "usec": time.Microsecond}
	if unit, ok := units[form]; ok {
		return func(_ *clock, s string) (time.Time, bool) { return unixTime(s, unit) }
	}
	if form == "msec_frac" || form == "usec_frac" {
		return nil
	}
	layout, ok := strftime(form)
	if !ok {
		return nil
	}
	return func(_ *clock, s string) (time.Time, bool) {
		t, err := time.Parse(layout, s)
		return t, err == nil && plausible(t)
	}
}

func (p *pattern) fresh() parser { return &pattern{parts: p.parts} }

// parse reads a line.
func (p *pattern) parse(line string, q *Request) (reason string) {
	p.values = values{}
	rest, ok := strings.CutPrefix(line, p.parts[0].before)
	if !ok {
		return "not of --format: its beginning"
	}
	for i := range p.parts {
		f := &p.parts[i]
		var value string
		if value, rest, ok = f.cut(rest); !ok {
			return "not of --format: after " + f.name
		}
		if f.field == fieldTime {
			if q.Time, ok = f.time(&p.clock, value); !ok {
				return "a time that is not like " + f.name
			}
		}
		if f.field != fieldNone && value != "-" {
			p.values[f.field] = value
		} else if p.values[f.field] == "" {
			p.values[f.field] = value
		}
	}
	return p.values.set(q)
}

// cut returns the value of a part at the beginning of a line, and what follows the text
// after it.
func (f *part) cut(s string) (value, rest string, ok bool) {
	switch {
	case f.quoted:
		if value, rest, ok = quoted(`"` + s); ok {
			rest, ok = strings.CutPrefix(rest, f.after[1:])
		}
		return value, rest, ok
	case f.after == "":
		return plain(s), "", true
	case f.field == fieldTime && s != "" && s[0] == '[': // %t, with a blank in it
		if end := strings.IndexByte(s, ']'); end >= 0 {
			rest, ok = strings.CutPrefix(s[end+1:], f.after)
			return s[:end+1], rest, ok
		}
	}
	value, rest, ok = strings.Cut(s, f.after)
	return plain(value), rest, ok
}

// plain returns a value without quotation marks with its escapes undone.
func plain(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	if value, _, ok := unescape(s+`"`, 0); ok {
		return value
	}
	return s
}
