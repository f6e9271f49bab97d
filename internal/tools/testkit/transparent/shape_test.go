package transparent

import (
	"cmp"
	"net/http"
	"strings"
)

// shape is one kind of request with its answer.
type shape struct {
	name string // also what the request carries as X-Shape

	// The request.
	site     string   // empty: scripted
	method   string   // empty: GET
	target   string   // empty: /page
	version  string   // empty: HTTP/1.1
	fields   []string // each "Name: value"
	body     string
	chunked  bool     // the body is sent in chunks
	trailers []string // after a chunked body; each "Name: value"
	waits    bool     // the body is sent when 100 Continue has come
	ways     []way    // empty: all of them

	// The answer, of the scripted site or of net/http.
	early  string // sent before the request's body is read
	answer string // sent after it; both in octets
	deaf   bool   // the body is not read and the connection ends
	hangup bool   // the connection ends after the answer
	unseen bool   // the request that the site saw is not compared
	serve  http.HandlerFunc

	// changed applies the differences that heed makes; the doc comment of each
	// names the standard that allows them. Nil: there are none.
	changed func(m way, a *answer, seen *arrival)
}

// way is one way from a client to a site through heed.
type way string

const (
	plain    way = "plain"    // http, absolute form
	h1       way = "h1"       // https, intercepted, HTTP/1.1
	h2       way = "h2"       // https, intercepted, HTTP/2
	inTunnel way = "tunnel"   // http inside CONNECT
	absolute way = "absolute" // https in absolute form on the proxy port
)

var (
	everyWay = []way{plain, h1, h2, inTunnel, absolute}
	byBytes  = []way{plain, h1, inTunnel, absolute} // HTTP/1 to heed
	secure   = []way{h1, h2, absolute}
)

func (m way) https() bool { return m != plain && m != inTunnel }

func (s *shape) host() string { return cmp.Or(s.site, scripted) }

func (s *shape) verb() string { return cmp.Or(s.method, "GET") }

func (s *shape) path() string { return cmp.Or(s.target, "/page") }

// via is what heed adds to the request in way m.
func (s *shape) via(m way) string {
	switch {
	case m == h2:
		return "2 " + name
	case s.version == "HTTP/1.0":
		return "1.0 " + name
	}
	return "1.1 " + name
}

// all are the request's fields but Host, in their order.
func (s *shape) all(extra ...string) []string {
	all := append([]string{"X-Shape: " + s.name}, s.fields...)
	if len(s.trailers) > 0 && !s.has("Trailer") && !s.has("X-Unannounced") {
		var names []string
		for _, t := range s.trailers {
			name, _, _ := strings.Cut(t, ":")
			names = append(names, name)
		}
		all = append(all, "Trailer: "+strings.Join(names, ", "))
	}
	return append(all, extra...)
}

func (s *shape) has(name string) bool {
	for _, f := range s.fields {
		if n, _, _ := strings.Cut(f, ":"); strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
