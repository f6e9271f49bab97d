package h2head

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"

	"heed/internal/base/safetext"
	"heed/proxy/limit"
	"heed/rules"
)

// The pseudo-header fields of requests (RFC 9113 §8.3.1, RFC 8441 §4).
const (
	method = iota
	scheme
	authority
	path
	protocol
	pseudoFields
)

var pseudoNames = [pseudoFields]string{":method", ":scheme", ":authority", ":path", ":protocol"}

// request is what the fields of a header block contain.
type request struct {
	value [pseudoFields]string
	has   [pseudoFields]bool
	hosts []string
	agent string // the first User-Agent field
	sized bool   // there is a Content-Length field
	size  uint64 // its value
	te    bool   // there is a TE field
	plain bool   // a field that is no pseudo-header field has come
	fault string // the first thing that is wrong; empty: nothing is
	reset bool   // the fault is one for which the stream is reset, without an answer
}

// parse reads fields. It finds every fault for which net/http resets a stream or answers
// without calling the handler, except those of the target and of missing fields.
func parse(fields []hpack.HeaderField) (q request) {
	for _, f := range fields {
		if !httpguts.ValidHeaderFieldValue(f.Value) {
			if f.Name == ":path" { // answered, as over HTTP/1
				q.wrong("the request target contains a control character")
			}
			q.malformed("the field " + shown(f.Name) + " contains a control character")
			continue
		}
		if strings.HasPrefix(f.Name, ":") {
			q.pseudo(f)
		} else {
			q.regular(f)
		}
	}
	return q
}

// wrong notes a fault that is answered.
func (q *request) wrong(fault string) {
	if q.fault == "" {
		q.fault = fault
	}
}

// malformed notes a fault that is a stream error (RFC 9113 §8.1.1).
func (q *request) malformed(fault string) {
	if q.fault == "" {
		q.fault, q.reset = fault, true
	}
}

func (q *request) pseudo(f hpack.HeaderField) {
	if q.plain {
		q.malformed("the field " + shown(f.Name) + " comes after other fields (RFC 9113, section 8.3)")
	}
	for i, name := range pseudoNames {
		if f.Name != name {
			continue
		}
		if q.has[i] {
			q.malformed("the request has more than one field " + name)
			return
		}
		q.has[i], q.value[i] = true, f.Value
		return
	}
	q.malformed("the field " + shown(f.Name) + " is not one of a request (RFC 9113, section 8.3)")
}

func (q *request) regular(f hpack.HeaderField) {
	q.plain = true
	switch f.Name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		q.wrong("the field " + f.Name + " concerns a connection; HTTP/2 forbids it (RFC 9113, section 8.2.2)")
	case "te":
		if q.te || f.Value != "" && f.Value != "trailers" {
			q.wrong("the field te may only be \"trailers\" in HTTP/2 (RFC 9113, section 8.2.2)")
		}
		q.te = true
	case "content-length":
		q.contentLength(f.Value)
	case "host":
		q.hosts = append(q.hosts, f.Value)
	case "user-agent":
		if q.agent == "" {
			q.agent = f.Value
		}
	default:
		if !isName(f.Name) {
			q.malformed("the name of a field is not a token in lower case (RFC 9113, section 8.2.1)")
		}
	}
}

// contentLength takes a Content-Length field. Several that are equal are as good as one
// (RFC 9110 §8.6), as over HTTP/1.
func (q *request) contentLength(value string) {
	size, err := strconv.ParseUint(value, 10, 63)
	switch {
	case err != nil:
		q.malformed("the field content-length is not a number (RFC 9113, section 8.1.1)")
	case q.sized && q.size != size:
		q.malformed("the request has two fields content-length that differ (RFC 9113, section 8.1.1)")
	}
	q.sized, q.size = true, size
}

// shown returns what a fault contains of a field's name: a Note has to fit into a head.
func shown(name string) string { return safetext.Printable(name, 80) }

// isName reports whether a field of HTTP/2 may have this name.
func isName(name string) bool {
	return httpguts.ValidHeaderFieldName(name) && name == strings.ToLower(name)
}

// complete notes what keeps q from being a request to net/http. Nothing follows the head
// when ended is true.
func (q *request) complete(ended bool) {
	v := &q.value
	switch {
	case v[protocol] != "":
		q.wrong("extended CONNECT (RFC 8441) is not supported")
	case v[method] == http.MethodConnect:
		if v[path] != "" || v[scheme] != "" || v[authority] == "" {
			q.malformed("CONNECT has :authority and neither :scheme nor :path (RFC 9113, section 8.5)")
		}
	case v[method] == "":
		q.malformed("the request has no :method")
	case v[scheme] == "":
		q.malformed("the request has no :scheme")
	case v[scheme] != "https" && v[scheme] != "http":
		q.wrong("the :scheme of the request is neither https nor http")
	case v[path] == "":
		q.malformed("the request has no :path")
	case ended && q.size > 0:
		q.malformed("the field content-length is not 0, and the request has no content (RFC 9113, section 8.1.1)")
	case strings.IndexByte(q.site(), '@') >= 0:
		q.wrong("the authority contains userinfo; send credentials in an Authorization field")
	}
}

// site returns what net/http takes for the authority.
func (q *request) site() string {
	if q.value[authority] == "" && len(q.hosts) > 0 {
		return q.hosts[0]
	}
	return q.value[authority]
}

// parseTarget parses a request target as the handler gets it.
func parseTarget(target string) (*url.URL, error) {
	return url.ParseRequestURI(rules.EscapePercents(target))
}

// check returns what the handler has to know of a request with these fields; nil: nothing
// beside them. Without a fault it makes the fields those to be passed on to net/http.
// Nothing follows the head when ended is true.
func check(fields []hpack.HeaderField, ended bool) *Note {
	q := parse(fields)
	if q.complete(ended); q.fault != "" {
		return &Note{Fault: q.fault, reset: q.reset}
	}
	target := q.value[path]
	if strings.IndexByte(target, '\t') >= 0 {
		return &Note{Fault: "the request target contains a control character"}
	}
	odd := strings.IndexByte(target, '%') >= 0 && rules.EscapePercents(target) != target
	if odd || !strings.HasPrefix(target, "/") && target != "" {
		if _, err := parseTarget(target); err != nil {
			return &Note{Fault: "the request target is neither an absolute URL nor a path"}
		}
	}
	for i := range fields {
		if f := &fields[i]; f.Name == ":path" {
			f.Sensitive = true // a target comes once as a rule: it would fill the table
			if odd {
				f.Value = "/"
			}
		}
	}
	if odd {
		return &Note{Target: []byte(target)}
	}
	return nil
}

// refused returns a request that net/http hands to the handler, in place of one with
// these fields that it would reject, or that is not complete.
func refused(fields []hpack.HeaderField, note Note) []hpack.HeaderField {
	q := parse(fields)
	m := q.value[method]
	note.Method, note.Target = []byte(m[:min(len(m), maxMethod)]), []byte(q.value[path])
	if m != http.MethodHead {
		m = http.MethodGet
	}
	own := []hpack.HeaderField{{Name: ":method", Value: m}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/"}}
	for _, f := range fields {
		if described[f.Name] && httpguts.ValidHeaderFieldValue(f.Value) {
			own = append(own, f)
		}
	}
	return append(own, note.field())
}

// maxMethod bounds what a Note contains in place of a method, in bytes.
const maxMethod = 256

// described are the fields of a refused request that its answer and its record use.
var described = map[string]bool{
	"accept": true, "accept-language": true, "from": true, "referer": true, "user-agent": true,
	"sec-fetch-dest": true, "sec-fetch-mode": true, "sec-fetch-site": true, "sec-fetch-user": true,
}

// Note is what the handler has to know of a request beside what net/http hands it.
type Note struct {
	Target []byte          // as it came; of a refused request also empty
	Method []byte          // of a refused request
	Fault  string          // what is wrong with the request; empty: nothing is
	Over   *limit.Exceeded // the limit that stops the request; nil: none does
	Last   bool            // nothing more is read from the connection

	reset bool // the stream is reset for Fault: no handler gets the request
}

// noteName is the field in which a Note travels through net/http. What a client sends
// under this name is dropped. That the name cannot be guessed keeps this from ever
// mattering to a client.
var noteName = "heed-" + strings.ToLower(rand.Text())

var noteKey = http.CanonicalHeaderKey(noteName)

// field returns n as a field. It is never indexed.
func (n *Note) field() hpack.HeaderField {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err) // a Note contains nothing that has no JSON
	}
	return hpack.HeaderField{Name: noteName, Value: string(text), Sensitive: true}
}

// Refused reports whether the request cannot be judged, for Fault or Over.
func (n *Note) Refused() bool { return n.Fault != "" || n.Over != nil }

// TakeNote removes the Note from a request that net/http has read from a Reader, and
// returns it; nil: there is none. The RequestURI and the URL of a request that is not
// refused become those of the target as it came.
func TakeNote(r *http.Request) *Note {
	text, ok := r.Header[noteKey]
	if !ok {
		return nil
	}
	delete(r.Header, noteKey)
	n := &Note{}
	if err := json.Unmarshal([]byte(text[0]), n); err != nil {
		return &Note{Fault: "the request cannot be read"}
	}
	if n.Refused() {
		return n
	}
	u, err := parseTarget(string(n.Target))
	if err != nil {
		return &Note{Fault: "the request cannot be read"}
	}
	r.RequestURI, r.URL = string(n.Target), u
	return n
}
