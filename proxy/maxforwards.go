package proxy

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
)

// maxForwards reads the field that counts a TRACE's or OPTIONS' hops (RFC 9110
// §7.6.2): last when heed itself has to answer, else the value for the next
// hop. Empty: the field is not there, or not a number, or of a method that it
// means nothing to.
func maxForwards(r *http.Request) (last bool, next string) {
	values := r.Header["Max-Forwards"]
	if len(values) == 0 || r.Method != http.MethodTrace && r.Method != http.MethodOptions {
		return false, ""
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return false, ""
	}
	if n == 0 {
		return true, ""
	}
	return false, strconv.FormatUint(n-1, 10)
}

// secretFields are not shown by an answer to TRACE (RFC 9110 §9.3.8).
var secretFields = map[string]bool{"Authorization": true, "Cookie": true, "Proxy-Authorization": true}

// lastHop answers a request that was not to go further. Its Proxy-Status says
// that this is not the site speaking (RFC 9209 §2.3).
func (x *exchange) lastHop(r *http.Request) *http.Response {
	resp := &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody,
		Header: http.Header{
			"Content-Length": {"0"},
			"Cache-Control":  {"no-store"},
			"Proxy-Status":   {x.proxy.statusName + "; error=proxy_internal_response"},
		},
	}
	if x.uploading(r) {
		resp.Header.Set("Connection", "close")
	}
	if r.Method == http.MethodTrace {
		var b bytes.Buffer
		fmt.Fprintf(&b, "TRACE %s %s\r\nHost: %s\r\n", x.entry.Target, r.Proto, r.Host)
		_ = r.Header.WriteSubset(&b, secretFields) // a buffer takes all
		b.WriteString("\r\n")
		resp.Header.Set("Content-Type", "message/http")
		resp.Header.Set("Content-Length", strconv.Itoa(b.Len()))
		resp.Body, resp.ContentLength = newBody(b.Bytes()), int64(b.Len())
	}
	return resp
}
