package accesslog

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// w3c reads the W3C extended format: the directive #Fields names the fields of the lines
// that follow it. Times are in UTC.
type w3c struct {
	clock  clock
	fields []field
	form   func(string) string // undoes the escapes of a value
	day    string              // of the directive #Date, for lines without a date
	values values
}

func (*w3c) fresh() parser { return &w3c{} }

// The fields of IIS, CloudFront and Apache's mod_log_config, in lower case. Of several with one
// meaning the last one in this order counts.
var w3cNames = map[string]field{
	"date": fieldDate, "time": fieldClock, "timestamp": fieldTime, "c-ip": fieldClient, "x-forwarded-for": fieldForwarded, "cs(x-forwarded-for)": fieldForwarded, "cs-host": fieldHost, "cs(host)": fieldHost, "x-host-header": fieldHost,
	"cs-protocol": fieldScheme, "s-port": fieldPort, "cs-method": fieldMethod, "cs-uri": fieldTarget, "cs-uri-stem": fieldPath, "cs-uri-query": fieldQuery, "sc-status": fieldStatus,
	"sc-bytes": fieldBytes, "cs(user-agent)": fieldAgent, "cs(referer)": fieldReferrer, "cs(referrer)": fieldReferrer,
}

// directive reads a line that begins with #.
func (p *w3c) directive(line string) {
	name, value, _ := strings.Cut(line[1:], ":")
	value = strings.TrimSpace(value)
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "date":
		p.day, _, _ = strings.Cut(value, " ")
	case "fields":
		p.fields, p.form = p.fields[:0], undoPlus
		names := strings.Fields(strings.ToLower(value))
		viewer := slices.Contains(names, "x-host-header") // CloudFront's cs(Host) is the name of the distribution
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "x-edge-") }) {
			p.form = undoPercent
		}
		for _, n := range names {
			f := w3cNames[n]
			if viewer && n == "cs(host)" {
				f = fieldNone
			}
			p.fields = append(p.fields, f)
		}
	}
}

// parse reads a line.
func (p *w3c) parse(line string, q *Request) (reason string) {
	if line[0] == '#' {
		p.directive(line)
		return aside
	}
	if len(p.fields) == 0 {
		return "a line before the directive #Fields"
	}
	p.values = values{}
	n := 0
	for rest := line; rest != ""; n++ {
		var value string
		if value, rest = w3cValue(rest); n < len(p.fields) && value != "" {
			p.values[p.fields[n]] = value
		}
	}
	if n != len(p.fields) {
		return "not as many values as the directive #Fields has names"
	}
	v := &p.values
	v[fieldAgent], v[fieldReferrer], v[fieldForwarded] = p.form(v[fieldAgent]), p.form(v[fieldReferrer]), p.form(v[fieldForwarded])
	t, ok := p.time()
	if !ok {
		return "no date and time of a known form"
	}
	q.Time = t
	return v.set(q)
}

func (p *w3c) time() (time.Time, bool) {
	v := &p.values
	if v[fieldTime] != "" {
		return p.clock.anyTime(v[fieldTime])
	}
	t, err := time.Parse("2006-01-02 15:04:05", cmp.Or(v[fieldDate], p.day)+" "+v[fieldClock])
	return t, err == nil && plausible(t)
}

// w3cValue returns the first value of a line, which may be quoted, and the rest.
func w3cValue(s string) (value, rest string) {
	if s[0] == '"' {
		if end := strings.IndexByte(s[1:], '"'); end >= 0 {
			value, rest = s[1:end+1], s[end+2:]
			return value, strings.TrimLeft(rest, " \t")
		}
	}
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		return s, ""
	}
	return s[:end], strings.TrimLeft(s[end:], " \t")
}

// undoPlus undoes what IIS does with blanks.
func undoPlus(s string) string { return strings.ReplaceAll(s, "+", " ") }

// undoPercent undoes percent encoding; what is none is kept. CloudFront encodes percent
// signs of User-Agent as %25.
func undoPercent(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && hexOf(s[i+1:], 2) >= 0 {
			b.WriteByte(byte(hexOf(s[i+1:], 2)))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
