package http1

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Framing is how the end of a message's body is found (RFC 9112 §6.3).
type Framing uint8

// The ways to find the end of a body.
const (
	NoBody     Framing = iota // the message ends with its head
	Sized                     // after Head.Length octets, which may be 0
	Chunked                   // after the last chunk and the trailer section
	UntilClose                // with the connection; answers only
)

// framingFields are what a head says of its body, and of its connection.
type framingFields struct {
	hosts     int
	host      string
	lengths   int
	length    string // the first
	differ    bool   // not all lengths are the same
	codings   int
	coding    string // the first
	close     bool
	keepAlive bool
	expect    string
	trailer   bool // Trailer names a field of the framing
}

// collect reads what the fields say.
func collect(fields []Field) (c framingFields) {
	for i := range fields {
		switch f := &fields[i]; f.Key {
		case host:
			c.hosts++
			c.host = f.Value
		case contentLength:
			if c.lengths++; c.lengths == 1 {
				c.length = f.Value
			}
			c.differ = c.differ || f.Value != c.length
		case transferEncoding:
			if c.codings++; c.codings == 1 {
				c.coding = f.Value
			}
		case connection:
			c.close = c.close || hasMember(f.Value, "close")
			c.keepAlive = c.keepAlive || hasMember(f.Value, "keep-alive")
		case expect:
			c.expect = cmp.Or(c.expect, f.Value)
		case trailer:
			c.trailer = c.trailer || hasMember(f.Value, contentLength) || hasMember(f.Value, transferEncoding) || hasMember(f.Value, trailer)
		}
	}
	return c
}

// parseLength reads a Content-Length.
func parseLength(text string) (length int64, fault Kind) {
	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case text == "" || strings.Trim(text, "0123456789") != "":
		return 0, BadLength
	case err != nil:
		return 0, LengthTooLarge
	}
	return int64(n), 0
}

// frameRequest applies the rules for requests to the fields of h, and sets Framing,
// Length, Close and Expects.
func (h *Head) frameRequest() *Fault {
	c := collect(h.Fields)
	h.Close = c.close || !h.AtLeast11() && !c.keepAlive
	fault := func(kind Kind, field string) *Fault { return newFault(kind, false, field) }
	switch {
	case c.hosts == 0 && h.AtLeast11() && h.Method != http.MethodConnect:
		return fault(NoHost, "")
	case c.hosts > 1:
		return fault(ManyHosts, host)
	case !httpguts.ValidHostHeader(c.host):
		return fault(BadHost, host)
	case c.codings > 0 && c.lengths > 0:
		return fault(LengthBesideCoding, contentLength)
	case c.codings > 0 && !h.AtLeast11():
		return fault(OldCoding, transferEncoding)
	case c.codings > 1 || c.codings == 1 && !strings.EqualFold(c.coding, chunkedCoding):
		return fault(UnknownCoding, transferEncoding)
	case c.lengths > 1:
		return fault(ManyLengths, contentLength)
	case c.codings == 1 && c.trailer:
		return fault(BadTrailerName, trailer)
	case c.codings == 1:
		h.Framing = Chunked
	case c.lengths == 1:
		n, kind := parseLength(c.length)
		if kind != 0 {
			return fault(kind, contentLength)
		}
		h.Framing, h.Length = Sized, n
	}
	if h.Expects = c.expect != "" && hasMember(c.expect, "100-continue"); c.expect != "" && !h.Expects {
		return fault(BadExpect, expect)
	}
	return nil
}

const chunkedCoding = "chunked"

// frameAnswer applies the rules for answers to a request with a method to the fields of
// h, and sets Framing, Length, Close and Mended.
func (h *Head) frameAnswer(method string) *Fault {
	c := collect(h.Fields)
	h.Close = c.close || h.Major == 0 || !h.AtLeast11() && !c.keepAlive
	n, several, fault := c.answerLength()
	if fault != nil {
		return fault
	}
	if h.Length = n; several {
		h.mended(ManyLengths)
	}
	chunked := false
	switch {
	case c.codings == 0:
	case !h.AtLeast11():
		return newFault(OldCoding, true, transferEncoding)
	case c.codings == 1 && strings.EqualFold(c.coding, "identity"): // RFC 2616 §3.6
		h.mended(UnknownCoding)
		h.Close = true
	case c.codings > 1 || !strings.EqualFold(c.coding, chunkedCoding):
		return newFault(UnknownCoding, true, transferEncoding)
	default:
		if chunked = true; c.lengths > 0 {
			h.mended(LengthBesideCoding)
			h.Length, h.Close = -1, true
		}
	}
	switch {
	case !HasBody(method, h.Status):
		h.Framing = NoBody
	case chunked:
		h.Framing = Chunked
	case h.Length >= 0:
		h.Framing = Sized
	default:
		h.Framing, h.Close = UntilClose, true
	}
	return nil
}

// answerLength returns the length that the Content-Length fields of an answer state, -1
// without one, and whether they state it several times.
func (c *framingFields) answerLength() (n int64, several bool, fault *Fault) {
	if c.lengths == 0 {
		return -1, false, nil
	}
	text, ok := oneLength(c)
	if !ok {
		return 0, false, newFault(ManyLengths, true, contentLength)
	}
	n, kind := parseLength(text)
	if kind != 0 {
		return 0, false, newFault(kind, true, contentLength)
	}
	return n, text != c.length || c.lengths > 1, nil
}

// CheckAnswer applies the rules for answers to one that was read over HTTP/2, to a request
// with a method: its status and its length. It makes Content-Length one number, and ends
// the body of an answer that has none (RFC 9110 §15.3.5). The length of the body itself is
// not known yet.
func CheckAnswer(method string, resp *http.Response) *Fault {
	if status, _, _ := strings.Cut(resp.Status, " "); len(status) != 3 || resp.StatusCode < 100 {
		return newFault(BadStatus, true, "")
	}
	lines := resp.Header[contentLength]
	fields := make([]Field, len(lines))
	for i, v := range lines {
		fields[i] = Field{Key: contentLength, Value: v}
	}
	c := collect(fields)
	n, several, fault := c.answerLength()
	if fault != nil {
		return fault
	}
	if several {
		resp.Header[contentLength] = []string{strconv.FormatInt(n, 10)}
	}
	if len(lines) > 0 {
		resp.ContentLength = n
	}
	if !HasBody(method, resp.StatusCode) && resp.Body != http.NoBody {
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	return nil
}

// oneLength returns the length that all Content-Length fields of an answer state, which
// may be a list of the same number (RFC 9110 §8.6). ok is false when they differ.
func oneLength(c *framingFields) (text string, ok bool) {
	if c.differ {
		return "", false
	}
	text, rest, more := strings.Cut(c.length, ",")
	text = trimBlanks(text)
	for more {
		var next string
		if next, rest, more = strings.Cut(rest, ","); trimBlanks(next) != text {
			return "", false
		}
	}
	return text, true
}

// HasBody reports whether an answer with a status to a request with a method can have a
// body (RFC 9112 §6.3). What follows a 101, or a 2xx to CONNECT, is not HTTP.
func HasBody(method string, status int) bool {
	switch {
	case status < 200 || status == http.StatusNoContent || status == http.StatusNotModified:
		return false
	case method == http.MethodHead:
		return false
	}
	return method != http.MethodConnect || status/100 != 2
}
