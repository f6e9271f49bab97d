package accesslog

import (
	"cmp"
	"encoding/json"
	"strings"
	"sync"
	"unicode/utf8"
)

// field is what a part of a line is.
type field uint8

const (
	fieldNone field = iota // not needed
	fieldTime
	fieldDate
	fieldClock // time of day
	fieldClient
	fieldForwarded // the addresses that servers before this one saw
	fieldHost
	fieldRequest // request line
	fieldMethod
	fieldTarget
	fieldPath
	fieldQuery
	fieldStatus
	fieldBytes
	fieldReferrer
	fieldAgent
	fields
)

// jsonNames are the names of members by field, the most trusted first: without what
// separates words, those of members with the object's name before.
var jsonNames = sync.OnceValue(func() map[string]ranked {
	all := map[string]ranked{}
	for f, list := range map[field]string{
		fieldTime:      "ts timestamp time timeiso8601 timelocal msec startutc starttime datetime date startlocal request.time",
		fieldClient:    "request.clientip request.remoteip clientip remoteaddr remoteip clienthost client.ip client.address remotehost clientaddr client ip source.ip host.ip request.remoteaddr",
		fieldForwarded: "xforwardedfor httpxforwardedfor request.headers.xforwardedfor headers.xforwardedfor requestxforwardedfor forwardedfor httpforwarded request.headers.forwarded xrealip httpxrealip",
		fieldHost:      "request.host requesthost httphost requestaddr vhost virtualhost servername domain url.domain host",
		fieldRequest:   "request requestline http.request",
		fieldMethod:    "request.method requestmethod method verb http.request.method httpmethod",
		fieldTarget:    "request.uri requesturi requestpath originaluri uri url url.original target path requesturl request.url",
		fieldPath:      "uripath url.path uristem documenturi",
		fieldQuery:     "args querystring query url.query uriquery",
		fieldStatus:    "status statuscode responsestatus downstreamstatus originstatus response code http.response.statuscode response.status",
		fieldBytes:     "bodybytessent bytessent size bytes responsesize downstreamcontentsize responselength contentlength http.response.body.bytes response.size bodysize",
		fieldReferrer:  "request.headers.referer httpreferer httpreferrer referer referrer requestreferer http.request.referrer headers.referer",
		fieldAgent:     "request.headers.useragent httpuseragent useragent requestuseragent agent ua useragent.original headers.useragent",
	} {
		for i, name := range strings.Fields(list) {
			all[name] = ranked{f, i + 1}
		}
	}
	return all
})

type ranked struct {
	field field
	rank  int // the least counts
}

// values are the fields of a line.
type values [fields]string

// set makes a request of the fields. The escapes of the log are undone already.
func (v *values) set(q *Request) (reason string) {
	q.Client, q.Host = clientOf(present(v[fieldClient]), present(v[fieldForwarded])), present(v[fieldHost])
	method, target := requestLine(v[fieldRequest])
	q.Method, q.Target = cmp.Or(present(v[fieldMethod]), method), cmp.Or(present(v[fieldTarget]), target)
	if q.Target == "" {
		q.Target = present(v[fieldPath])
		if query := strings.TrimPrefix(present(v[fieldQuery]), "?"); query != "" && q.Target != "" {
			q.Target += "?" + query
		}
	}
	if q.Method == "" && q.Target == "" && v[fieldRequest] == "" && v[fieldMethod] == "" && v[fieldTarget] == "" && v[fieldPath] == "" {
		return "no request"
	}
	var ok bool
	if status := v[fieldStatus]; status != "" {
		if q.Status, ok = statusOf(status); !ok {
			return "a status that is not a number of three digits"
		}
	}
	q.Bytes = octetsOf(v[fieldBytes])
	q.Referrer, q.UserAgent = present(v[fieldReferrer]), present(v[fieldAgent])
	return ""
}

// jsonLines reads JSON objects, one in a line.
type jsonLines struct {
	clock   clock
	values  values
	ranks   [fields]int
	scratch [256]byte
}

func (*jsonLines) fresh() parser { return &jsonLines{} }

// parse reads a line.
func (p *jsonLines) parse(line string, q *Request) (reason string) {
	p.values, p.ranks = values{}, [fields]int{}
	if !walk(line, p.scratch[:], p.member) {
		return "not a JSON object"
	}
	if p.values[fieldTime] == "" {
		return "no time in the JSON object"
	}
	var ok bool
	if q.Time, ok = p.clock.anyTime(p.values[fieldTime]); !ok {
		return "a time that is not of a known form"
	}
	if reason = p.values.set(q); reason == "no request" {
		reason = "no request in the JSON object"
	}
	q.Client = withoutPort(q.Client)
	return reason
}

// member keeps a value whose name is known.
func (p *jsonLines) member(path []byte, value string) {
	r, ok := jsonNames()[string(path)]
	if ok && (p.ranks[r.field] == 0 || r.rank < p.ranks[r.field]) && value != "" {
		p.ranks[r.field], p.values[r.field] = r.rank, value
	}
}

// withoutPort returns an address without a port and without the brackets of IPv6.
func withoutPort(s string) string {
	if rest, ok := strings.CutPrefix(s, "["); ok {
		address, _, _ := strings.Cut(rest, "]")
		return address
	}
	if address, _, ok := strings.Cut(s, ":"); ok && strings.Count(s, ":") == 1 {
		return address
	}
	return s
}

// maxDepth is how deep values are looked for in an object.
const maxDepth = 32

// walk calls emit with each value of the object s that is a string or a number, by its path:
// names in lower case without what separates their words, with dots between them. Of an array
// only the first value counts, with the path of the array. It reports whether s is an object.
//
// A server that writes its escapes of lines into JSON, as nginx does without escape=json, has
// \xHH in it for an octet, which is undone too.
func walk(s string, scratch []byte, emit func(path []byte, value string)) bool {
	octets := !json.Valid([]byte(s))
	if octets {
		if s = strings.ReplaceAll(s, `\x`, `\u00`); !json.Valid([]byte(s)) {
			return false
		}
	}
	j := &jsonText{rest: s, octets: octets, emit: emit}
	if j.next() != '{' {
		return false
	}
	j.value(scratch[:0], 0, true)
	return true
}

// jsonText is the rest of a valid JSON text.
type jsonText struct {
	rest   string
	octets bool // characters below U+0100 are octets
	emit   func(path []byte, value string)
}

// next returns the first character of what follows: a value, a name, or an end.
func (j *jsonText) next() byte {
	for strings.IndexByte(" \t\r\n,:", j.rest[0]) >= 0 {
		j.rest = j.rest[1:]
	}
	return j.rest[0]
}

// text reads a string.
func (j *jsonText) text() (s string) {
	if s, j.rest, _ = quoted(j.rest); j.octets {
		s = asOctets(s)
	}
	return s
}

// asOctets returns s with an octet in place of each character below U+0100.
func asOctets(s string) string {
	all := make([]byte, 0, len(s))
	for _, r := range s {
		if r < 0x100 {
			all = append(all, byte(r))
		} else {
			all = utf8.AppendRune(all, r)
		}
	}
	return string(all)
}

// value reads the value with a path. It is emitted, or what it has, if it counts.
func (j *jsonText) value(path []byte, depth int, counts bool) {
	var text string
	switch c := j.next(); c {
	case '{':
		if len(path) > 0 {
			path = append(path, '.')
		}
		for j.rest = j.rest[1:]; j.next() != '}'; {
			j.value(appendName(path, j.text()), depth+1, counts && depth <= maxDepth)
		}
		j.rest = j.rest[1:]
		return
	case '[':
		for j.rest = j.rest[1:]; j.next() != ']'; counts = false {
			j.value(path, depth, counts && j.rest[0] != '[')
		}
		j.rest = j.rest[1:]
		return
	case '"':
		text = j.text()
	default:
		end := strings.IndexAny(j.rest, " \t\r\n,]}")
		text, j.rest = j.rest[:end], j.rest[end:]
		counts = counts && (c == '-' || c >= '0' && c <= '9') // not true, false and null
	}
	if counts {
		j.emit(path, text)
	}
}

// appendName adds a name in lower case without what separates its words.
func appendName(path []byte, name string) []byte {
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '_' || c == '-' || c == '@' || c == ' ' || c == '$':
		case c >= 'A' && c <= 'Z':
			path = append(path, c|0x20)
		default:
			path = append(path, c)
		}
	}
	return path
}
