package head

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// parse returns the parts of a head that need not be valid, or complete. A line
// without its end is left out, but for the method.
func parse(head []byte) *http.Request {
	line, rest, found := bytes.Cut(head, lineEnd)
	r := &http.Request{Header: http.Header{}, ProtoMajor: 1}
	r.Method, r.RequestURI, _ = strings.Cut(strings.TrimSuffix(string(line), "\r"), " ")
	if !found {
		r.RequestURI = ""
	}
	if i := strings.LastIndex(r.RequestURI, " HTTP/"); i >= 0 {
		r.RequestURI, r.Proto = r.RequestURI[:i], r.RequestURI[i+1:]
	}
	for {
		line, rest, found = bytes.Cut(rest, lineEnd)
		if !found {
			break
		}
		name, value, isField := strings.Cut(string(line), ":")
		if !isField || isFolded(line) {
			continue
		}
		name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
		r.Header[name] = append(r.Header[name], strings.TrimSpace(value))
	}
	r.Host = r.Header.Get("Host")
	return r
}

// Seen returns what could be read of the last head, complete or not: method, target,
// version and fields. It is for requests that net/http refuses: the parts may be
// anything. Nil: nothing has come.
func (r *Reader) Seen() *http.Request {
	if r.large != nil || len(r.head) == 0 {
		return r.large
	}
	return parse(r.head)
}
