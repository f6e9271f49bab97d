package accesslog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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
	fieldScheme
	fieldPort // that the client connected to
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
	fieldInner   // a line of another log: what a program in a container printed
	fieldVerdict // of heed
	fieldBy      // heed or site
	fieldOutcome // of heed
	fields
)

// jsonNames are the names of members by field, the most trusted first: without what
// separates words, those of members with the object's name before.
//
// They are those of Caddy, nginx, Traefik, Envoy, Cloudflare Logpush (EdgeStartTimestamp),
// Google Cloud (httpRequest) and of heed's own log and exports.
var jsonNames = sync.OnceValue(func() names {
	all := names{}
	for f, list := range map[field]string{
		fieldTime:      "ts timestamp time timeiso8601 timelocal msec startutc starttime datetime date startlocal request.time edgestarttimestamp",
		fieldClient:    "request.clientip request.remoteip clientip remoteaddr remoteip clienthost client.ip client.address httprequest.remoteip clientaddress remotehost clientaddr client ip source.ip host.ip request.remoteaddr",
		fieldForwarded: "xforwardedfor httpxforwardedfor request.headers.xforwardedfor headers.xforwardedfor requestxforwardedfor forwardedfor httpforwarded request.headers.forwarded xrealip httpxrealip",
		fieldScheme:    "request.scheme scheme requestscheme clientrequestscheme url.scheme httpscheme",
		fieldPort:      "serverport",
		fieldHost:      "clientrequesthost request.host requesthost httphost requestaddr vhost virtualhost servername domain url.domain host",
		fieldRequest:   "request requestline http.request",
		fieldMethod:    "request.method requestmethod method verb http.request.method httpmethod clientrequestmethod httprequest.requestmethod",
		fieldTarget:    "request.uri requesturi requestpath originaluri uri url url.original target path requesturl request.url clientrequesturi httprequest.requesturl",
		fieldPath:      "uripath url.path uristem documenturi clientrequestpath",
		fieldQuery:     "args querystring query url.query uriquery",
		fieldStatus:    "status statuscode responsestatus downstreamstatus originstatus response code http.response.statuscode response.status edgeresponsestatus httprequest.status",
		fieldBytes:     "bodybytessent bytessent size bytes responsesize downstreamcontentsize responselength contentlength http.response.body.bytes response.size bodysize edgeresponsebytes httprequest.responsesize bytesout",
		fieldReferrer:  "request.headers.referer httpreferer httpreferrer referer referrer requestreferer http.request.referrer headers.referer clientrequestreferer httprequest.referer",
		fieldAgent:     "request.headers.useragent httpuseragent useragent requestuseragent agent ua useragent.original headers.useragent clientrequestuseragent httprequest.useragent",
		fieldInner:     "log textpayload",
		fieldVerdict:   "verdict",
		fieldBy:        "by answeredby",
		fieldOutcome:   "outcome",
	} {
		for i, name := range strings.Fields(list) {
			all[name] = ranked{f, i + 1}
		}
	}
	return all
})

type ranked struct {
	field field
	rank  int // the least counts; below 0: named by the user
}

// names are fields by the names that logs have for them.
type names map[string]ranked

// FieldNames are the names of the fields in Options.Names.
var FieldNames = []string{"time", "client", "forwarded", "scheme", "host", "request", "method", "target", "path", "query", "status", "bytes", "referrer", "agent"}

// namedFields are the fields of FieldNames.
var namedFields = []field{
	fieldTime, fieldClient, fieldForwarded, fieldScheme, fieldHost, fieldRequest, fieldMethod, fieldTarget, fieldPath, fieldQuery, fieldStatus, fieldBytes,
	fieldReferrer, fieldAgent,
}

// namesWith returns the names that are known, and before them those of the user.
func namesWith(own []string) (names, error) {
	if len(own) == 0 {
		return jsonNames(), nil
	}
	all := maps.Clone(jsonNames())
	for _, text := range own {
		name, member, _ := strings.Cut(text, "=")
		at := slices.Index(FieldNames, name)
		if at < 0 || strings.TrimSpace(member) == "" {
			return nil, fmt.Errorf("--json-fields: %q is not FIELD=NAME with one of the fields %s\nWrite for example --json-fields time=startedAt,target=http.url", text, strings.Join(FieldNames, ", "))
		}
		all[string(appendName(nil, member))] = ranked{namedFields[at], -1}
	}
	return all, nil
}

// values are the fields of a line.
type values [fields]string

// set makes a request of the fields. The escapes of the log are undone already.
func (v *values) set(q *Request) (reason string) {
	if v[fieldVerdict] != "" && v[fieldBy] == "heed" && v[fieldOutcome] != "tunnelled" {
		q.Refused = true
	}
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
	v.locate(q)
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

// locate sets the scheme, and the host where only an absolute target has it.
func (v *values) locate(q *Request) {
	scheme, rest, absolute := strings.Cut(q.Target, "://")
	if absolute = absolute && (scheme == "http" || scheme == "https"); absolute && q.Host == "" {
		end := len(rest)
		if at := strings.IndexAny(rest, "/?#"); at >= 0 {
			end = at
		}
		if q.Host, q.Target = rest[:end], rest[end:]; !strings.HasPrefix(q.Target, "/") {
			q.Target = "/" + q.Target
		}
	}
	switch named := strings.ToLower(v[fieldScheme]); {
	case absolute:
		q.Scheme = scheme
	case named == "http", named == "https":
		q.Scheme = named
	case v[fieldPort] == "443":
		q.Scheme = "https"
	case v[fieldPort] == "80":
		q.Scheme = "http"
	}
}

// jsonLines reads JSON objects, one in a line.
type jsonLines struct {
	names   names
	refused bool // requests that heed answered itself count too
	inner   combined
	clock   clock
	values  values
	ranks   [fields]int
	scratch [256]byte
}

func (p *jsonLines) fresh() parser { return &jsonLines{names: p.names, refused: p.refused} }

// parse reads a line.
func (p *jsonLines) parse(line string, q *Request) (reason string) {
	p.values, p.ranks = values{}, [fields]int{}
	if !walk(line, p.scratch[:], p.member) {
		return "not a JSON object"
	}
	if inner := p.values[fieldInner]; inner != "" && p.values[fieldRequest]+p.values[fieldTarget]+p.values[fieldPath] == "" {
		if inner = strings.TrimSpace(inner); !strings.HasPrefix(inner, "{") {
			return p.inner.parse(inner, q)
		}
		if p.values, p.ranks = (values{}), ([fields]int{}); !walk(inner, p.scratch[:], p.member) {
			return "not a JSON object"
		}
	}
	return p.values.complete(q, &p.clock, p.refused, "the JSON object")
}

// complete is set, with the time. in names where the values are from.
func (v *values) complete(q *Request, c *clock, refused bool, in string) (reason string) {
	if v[fieldTime] == "" {
		return "no time of a known name in " + in + "; --json-fields time=NAME names it"
	}
	var ok bool
	if q.Time, ok = c.anyTime(v[fieldTime]); !ok {
		return "a time that is not of a known form"
	}
	if reason = v.set(q); reason == "no request" {
		reason = "no request of a known name in " + in + "; --json-fields target=NAME, or request=NAME, names it"
	}
	if q.Client = withoutPort(q.Client); reason == "" && q.Refused && !refused {
		return aside
	}
	return reason
}

// member keeps a value whose name is known.
func (p *jsonLines) member(path []byte, value string) {
	if r, ok := p.names[string(path)]; ok && (p.ranks[r.field] == 0 || r.rank < p.ranks[r.field]) && value != "" {
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
