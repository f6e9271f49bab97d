// Package icap reads the requests of ICAP clients (RFC 3507), and writes the answers of a
// server that judges requests and the answers to them: REQMOD, RESPMOD, and OPTIONS before each.
//
// The package is pure, as package http1 is, which reads and writes the HTTP inside: the
// lines and fields of ICAP itself, the encapsulated head, and the chunks of bodies. What
// breaks a rule is an *Error, and nothing that follows it on the connection is read.
package icap

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"heed/proxy/http1"
)

// Bounds of a request.
const (
	maxPreview = 256 << 10 // octets of a body that are sent before it is asked for
	maxFields  = 200       // lines of the head of ICAP itself
)

// Error is a request that breaks a rule, or asks for what there is not. Nothing can follow it
// on its connection.
type Error struct {
	Status int    // of the answer
	Text   string // a sentence without a full stop, for the client and the record
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

func bad(text string) error { return &Error{http.StatusBadRequest, text} }

// The methods of the services, which are at these paths.
const (
	Reqmod  = "REQMOD"  // at /reqmod
	Respmod = "RESPMOD" // at /respmod
)

// Request is a request of an ICAP client.
type Request struct {
	Method  string     // OPTIONS, REQMOD or RESPMOD
	Service string     // the method of the service
	ICAP    http1.Head // its own fields
	Close   bool       // the connection ends with the answer
	Allow   bool       // 204 may be the answer: the client has kept the message
	HTTP    http1.Head // the encapsulated request, whose framing is that of the message before
	Answer  http1.Head // of RESPMOD: the answer to it
	Section []byte     // the octets of HTTP, or else of Answer
	Body    bool       // a body follows: of REQMOD all of it, where a preview has not been read
	More    bool       // the client keeps the rest of a body, which Reader.Continue reads
	Preview bool       // of RESPMOD: the body begins with a preview
}

// Reader reads the requests of one connection.
type Reader struct {
	HTTP http1.Reader // of the connection; its Limit bounds both heads

	body http1.Body
}

// Read reads a request into q, up to its body. The error is an *Error, the one of the connection
// or of HTTP.Limit.Hold; q has what could be read then.
func (r *Reader) Read(q *Request) error {
	*q = Request{ICAP: http1.Head{Fields: q.ICAP.Fields[:0]}, HTTP: http1.Head{Fields: q.HTTP.Fields[:0]}, Answer: http1.Head{Fields: q.Answer.Fields[:0]}}
	line, err := r.HTTP.ReadOther(&q.ICAP)
	method, rest, _ := strings.Cut(line, " ")
	target, version, ok := strings.Cut(rest, " ")
	if httpguts.ValidHeaderFieldName(method) {
		q.Method = method
	}
	switch pathOf(target) {
	case "/reqmod":
		q.Service = Reqmod
	case "/respmod":
		q.Service = Respmod
	}
	switch {
	case err != nil:
		return faultOf(err)
	case !ok || q.Method == "":
		return bad("the request does not begin with a method, an ICAP URI and a version")
	case version != "ICAP/1.0":
		return &Error{http.StatusHTTPVersionNotSupported, "the version is not ICAP/1.0"}
	case len(q.ICAP.Fields) > maxFields:
		return bad("the ICAP head has too many fields")
	case q.Service == "":
		return &Error{http.StatusNotFound, "there is no such service: the URI ends with /reqmod or /respmod"}
	case method != "OPTIONS" && method != q.Service:
		return &Error{http.StatusMethodNotAllowed, "the service has no such method: it has " + q.Service + " and OPTIONS"}
	}
	for _, f := range q.ICAP.Fields {
		switch f.Key {
		case "Connection":
			q.Close = q.Close || httpguts.HeaderValuesContainsToken([]string{f.Value}, "close")
		case "Allow":
			q.Allow = q.Allow || httpguts.HeaderValuesContainsToken([]string{f.Value}, "204")
		}
	}
	return r.readSection(q)
}

// pathOf returns the path of an ICAP URI without its query.
func pathOf(uri string) string {
	if scheme, rest, ok := strings.Cut(uri, "://"); ok && (strings.EqualFold(scheme, "icap") || strings.EqualFold(scheme, "icaps")) {
		_, uri, _ = strings.Cut(rest, "/")
		uri = "/" + uri
	}
	path, _, _ := strings.Cut(uri, "?")
	return path
}

// readSection reads the encapsulated heads of q.
func (r *Reader) readSection(q *Request) error {
	request, length, err := q.encapsulated()
	if err != nil || q.Method == "OPTIONS" {
		return err
	}
	preview, err := q.preview()
	if err != nil {
		return err
	}
	if limit := r.HTTP.Limit.Head; limit > 0 && max(request, length-request) > limit {
		return bad("Encapsulated: the head of the HTTP message is too large")
	}
	if r.HTTP.Limit.Hold != nil {
		if err := r.HTTP.Limit.Hold(length); err != nil {
			return err
		}
		defer r.HTTP.Limit.Drop()
	}
	q.Section = make([]byte, length)
	if _, err := io.ReadFull(&r.HTTP, q.Section); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("the connection ended within the encapsulated head")
	} else if err != nil {
		return err
	}
	err = readHead(q.Section[:request], func(in *http1.Reader) error { return in.ReadRequest(&q.HTTP) })
	if q.Method == Respmod && err == nil {
		q.Section = q.Section[request:]
		err = readHead(q.Section, func(in *http1.Reader) error { return in.ReadAnswer(&q.Answer, q.HTTP.Method) })
	}
	if err != nil {
		return err
	}
	if q.Body {
		r.body.Reset(&r.HTTP, &http1.Head{Framing: http1.Chunked})
	}
	switch {
	case q.Method == Respmod:
		q.Preview = preview >= 0
		return nil
	case preview < 0:
		return nil
	}
	q.Allow = true
	return r.skipPreview(q, preview)
}

// readHead has read read the head that octets are.
func readHead(octets []byte, read func(*http1.Reader) error) error {
	left := bytes.NewReader(octets)
	inner := http1.Reader{From: left, Limit: http1.Limit{Head: len(octets)}}
	err := read(&inner)
	rest := left.Len() + len(inner.Rest())
	switch first := octets[0]; {
	case err == io.EOF, first == '\r', first == '\n':
		return bad("the encapsulated head is empty, or begins with an empty line")
	case err != nil:
		return bad("the encapsulated HTTP message cannot be read: " + err.Error())
	case rest > 0:
		return bad("Encapsulated: an HTTP head ends before the offset of what follows it")
	}
	return nil
}

// skipPreview reads the beginning of a body, of at most n octets. Nothing is decided by it, and
// the rest is not asked for.
func (r *Reader) skipPreview(q *Request, n int64) error {
	if !q.Body {
		return nil
	}
	q.Body = false
	switch came, err := io.Copy(io.Discard, io.LimitReader(r.Body(), n+1)); {
	case err != nil:
		return err
	case came > n:
		return bad("the preview is longer than the field Preview says")
	}
	q.More = !strings.EqualFold(strings.TrimSpace(r.body.Extension), "ieof")
	return nil
}

// Continue asks the client for the rest of a body of which it has sent a preview, and returns it.
func (r *Reader) Continue(w *Writer) (io.Reader, error) {
	r.body.Reset(&r.HTTP, &http1.Head{Framing: http1.Chunked})
	w.HTTP.BeginOther([]byte("ICAP/1.0 100 Continue\r\n\r\n"), false)
	return r.Body(), w.HTTP.End(nil)
}

// AnswerBody is the body of the answer that a request of RESPMOD has. Where it has a preview, what
// follows that is asked for when it is read.
type AnswerBody struct {
	r    *Reader
	w    *Writer
	mu   sync.Mutex
	none bool // there is no body
	held bool // the client keeps what follows the preview
	over bool // nothing is asked for any more
}

// AnswerBody returns the body of q.
func (r *Reader) AnswerBody(q *Request, w *Writer) *AnswerBody {
	return &AnswerBody{r: r, w: w, none: !q.Body, held: q.Preview}
}

// Read implements io.Reader.
func (b *AnswerBody) Read(p []byte) (n int, err error) {
	if b.none {
		return 0, io.EOF
	}
	if n, err = b.r.Body().Read(p); err != io.EOF {
		return n, err
	} else if n > 0 {
		return n, nil // the end comes again
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.held || b.over || strings.EqualFold(strings.TrimSpace(b.r.body.Extension), "ieof") {
		return 0, io.EOF
	}
	b.held = false
	if _, err = b.r.Continue(b.w); err != nil {
		return 0, err
	}
	return b.r.Body().Read(p)
}

// End has nothing asked for any more, and reports whether the client keeps the message no longer:
// it has sent what follows the preview, or there was none.
func (b *AnswerBody) End() (sent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	return !b.held
}

// encapsulated reads the field of that name, and returns the lengths of the encapsulated request
// head and of all heads: "req-hdr=0, req-body=N" or "req-hdr=0, null-body=N", and for RESPMOD
// "req-hdr=0, res-hdr=M, res-body=N" or "req-hdr=0, res-hdr=M, null-body=N".
func (q *Request) encapsulated() (request, length int, err error) {
	field, lines := q.ICAP.Last("Encapsulated")
	if q.Method == "OPTIONS" {
		if lines > 1 || lines == 1 && strings.ReplaceAll(field, " ", "") != "null-body=0" {
			return 0, 0, bad("Encapsulated: OPTIONS has no body here")
		}
		return 0, 0, nil
	}
	if lines != 1 {
		return 0, 0, bad("the request needs one Encapsulated field, and has " + strconv.Itoa(lines))
	}
	names, form := []string{"req-hdr", "req-body"}, `neither "req-hdr=0, req-body=N" nor "req-hdr=0, null-body=N"`
	if q.Method == Respmod {
		names, form = []string{"req-hdr", "res-hdr", "res-body"}, `neither "req-hdr=0, res-hdr=M, res-body=N" nor "req-hdr=0, res-hdr=M, null-body=N"`
	}
	parts, offsets := strings.Split(field, ","), []int(nil)
	for i, name := range names {
		if i == len(parts) || len(parts) > len(names) {
			break
		}
		is, text, _ := strings.Cut(strings.Trim(parts[i], " \t"), "=")
		n, err := strconv.ParseUint(text, 10, 31)
		last := i == len(names)-1
		if is != name && (!last || is != "null-body") || err != nil || i == 0 && text != "0" || i > 0 && int(n) <= offsets[i-1] {
			break
		}
		offsets = append(offsets, int(n))
		q.Body = last && is == name
	}
	if len(offsets) < len(names) {
		return 0, 0, bad("Encapsulated is " + form)
	}
	return offsets[1], offsets[len(offsets)-1], nil
}

// preview returns how many octets a preview of the body has at most; -1: there is none.
func (q *Request) preview() (octets int64, err error) {
	text, lines := q.ICAP.Last("Preview")
	if lines == 0 {
		return -1, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if lines > 1 || err != nil || n > maxPreview {
		return 0, bad("Preview is not one number of at most " + strconv.Itoa(maxPreview))
	}
	return int64(n), nil
}

// body is a Reader as an io.Reader of the body of its request.
type body struct{ *Reader }

// Read implements io.Reader.
func (b body) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err != nil && err != io.EOF {
		err = faultOf(err)
	}
	return n, err
}

// Body returns the body of a request that has one. It ends with io.EOF, after which the next
// request can be read.
func (r *Reader) Body() io.Reader { return body{r} }

// faultOf returns what a fault of HTTP is in ICAP, and any other error as it is.
func faultOf(err error) error {
	var fault *http1.Fault
	if errors.As(err, &fault) {
		return bad("ICAP: " + fault.Error())
	}
	return err
}
