package http1

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Header returns the fields as net/http has them, with Host. What is not there: lines of
// Transfer-Encoding, Content-Length beside chunks, and Trailer where trailers can come.
func (h *Head) Header() http.Header {
	header := make(http.Header, len(h.Fields))
	values := make([]string, 0, len(h.Fields))
	for i := range h.Fields {
		f := &h.Fields[i]
		if h.leavesOut(f.Key) {
			continue
		}
		if before, ok := header[f.Key]; ok {
			header[f.Key] = append(before, f.Value)
			continue
		}
		values = append(values, f.Value)
		header[f.Key] = values[len(values)-1 : len(values) : len(values)]
	}
	if lengths := header[contentLength]; h.Length >= 0 && len(lengths) > 0 && h.Mended == ManyLengths {
		header[contentLength] = []string{strconv.FormatInt(h.Length, 10)}
	}
	return header
}

func (h *Head) leavesOut(key string) bool {
	switch key {
	case transferEncoding:
		return true
	case contentLength, trailer:
		return h.Framing == Chunked || key == contentLength && h.Length < 0
	}
	return false
}

// announced returns a map for the trailers of a chunked body, with the names that the head
// announces; nil for any other body.
func (h *Head) announced() http.Header {
	if h.Framing != Chunked {
		return nil
	}
	names := http.Header{}
	for i := range h.Fields {
		if f := &h.Fields[i]; f.Key == trailer {
			for name := range strings.SplitSeq(f.Value, ",") {
				key := http.CanonicalHeaderKey(trimBlanks(name))
				if isToken(key) && !isOwn(key) && key != host {
					names[key] = nil
				}
			}
		}
	}
	return names
}

// chunkedOnly is the TransferEncoding of a chunked body. It is never changed.
var chunkedOnly = []string{chunkedCoding}

// Request makes a request for net/http of h, as http.ReadRequest would, but for what a
// server removes: its Header has no Host. target is h.Target, or a spelling of it that
// net/url can parse; RequestURI is h.Target in any case. body is what follows h, and gets
// its Trailer from here; b.Reset comes before. A *Fault is returned for a target that is
// no URL.
func (h *Head) Request(target string, body *Body) (*http.Request, error) {
	u, err := parseTarget(h.Method, target)
	if err != nil {
		return nil, newFault(NoURL, false, "")
	}
	r := &http.Request{
		Method: h.Method, URL: u, RequestURI: h.Target, Host: u.Host,
		Proto: h.Proto, ProtoMajor: h.Major, ProtoMinor: h.Minor,
		Header: h.Header(), Body: http.NoBody, Close: h.Close, Trailer: h.announced(),
	}
	if r.Host == "" {
		r.Host = h.Get(host)
	}
	delete(r.Header, host)
	switch h.Framing {
	case Sized:
		if r.ContentLength = h.Length; h.Length > 0 {
			r.Body = body
		}
	case Chunked:
		r.ContentLength, r.TransferEncoding, r.Body = -1, chunkedOnly, body
		body.Trailer = r.Trailer
	}
	return r, nil
}

// parseTarget parses a request target. That of CONNECT is an authority, which becomes the
// Host of the URL.
func parseTarget(method, target string) (*url.URL, error) {
	if method != http.MethodConnect || strings.HasPrefix(target, "/") {
		return url.ParseRequestURI(target)
	}
	u, err := url.ParseRequestURI("http://" + target)
	if err == nil {
		u.Scheme = ""
	}
	return u, err
}

// Response makes an answer for net/http of h, as http.ReadResponse would, but for its
// Connection field, which stays, and Cache-Control, which is not made of Pragma. body is
// what follows h, and gets its Trailer from here; b.Reset comes before. request may be nil.
func (h *Head) Response(request *http.Request, body *Body) *http.Response {
	r := &http.Response{
		Status: h.statusText(), StatusCode: h.Status,
		Proto: h.Proto, ProtoMajor: h.Major, ProtoMinor: h.Minor,
		Header: h.Header(), Body: http.NoBody, ContentLength: h.Length, Close: h.Close,
		Trailer: h.announced(), Request: request,
	}
	switch h.Framing {
	case NoBody:
		if request == nil || request.Method != http.MethodHead {
			r.ContentLength = 0
		}
	case Chunked:
		r.ContentLength, r.TransferEncoding, r.Body = -1, chunkedOnly, body
		body.Trailer = r.Trailer
	default:
		r.Body = body
	}
	return r
}

// statusText returns the status with its phrase, such as "200 OK".
func (h *Head) statusText() string {
	if h.Status == http.StatusOK && h.Phrase == "OK" {
		return "200 OK"
	}
	return strconv.Itoa(h.Status) + " " + h.Phrase
}
