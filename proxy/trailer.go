package proxy

import "net/http"

// notInTrailers are fields that decide how a message is taken, so that nobody
// must put them after its body (RFC 9110 §6.5.1). Credentials for heed and
// another name than the one judged must not travel there either.
var notInTrailers = [...]string{"Authorization", "Content-Encoding", "Content-Length", "Content-Range",
	"Content-Type", "Host", "Trailer", "User-Agent", "Via"}

// cleanTrailer deletes from h what must not follow a body. h may be nil.
func cleanTrailer(h http.Header) {
	if len(h) == 0 {
		return
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
	for _, name := range notInTrailers {
		delete(h, name)
	}
}

// dropUnsent deletes the names that were announced and did not come: an
// HTTP/2 stream that waits for them would not end.
func dropUnsent(h http.Header) {
	for name, values := range h {
		if len(values) == 0 {
			delete(h, name)
		}
	}
}

// expectTrailer has r take trailers that its head did not announce; net/http
// gives them to the request that it made, and r's copies share the map.
func expectTrailer(r *http.Request) {
	if r.Trailer == nil && len(r.TransferEncoding) > 0 {
		r.Trailer = http.Header{}
	}
}

// announce sees to the trailers that resp promises. HTTP/1.1 has them after
// chunks only: a client that asks for trailers gets them in place of the
// length, any other the length (RFC 9110 §6.5.1).
func announce(r *http.Request, resp *http.Response) {
	cleanTrailer(resp.Trailer)
	if r.ProtoMajor > 1 || resp.ContentLength < 0 || r.Method == http.MethodHead {
		return
	}
	if hasToken(r.Header["Te"], "trailers") {
		delete(resp.Header, "Content-Length")
		resp.ContentLength = -1
		return
	}
	resp.Trailer = nil
}
