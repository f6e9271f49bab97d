package accesslog

import (
	"cmp"
	"strings"
	"sync"
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
	return rank(map[field]string{
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
	})
})

type ranked struct {
	field field
	rank  int // the least counts
}

func rank(names map[field]string) map[string]ranked {
	all := map[string]ranked{}
	for f, list := range names {
		for i, name := range strings.Fields(list) {
			all[name] = ranked{f, i + 1}
		}
	}
	return all
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
