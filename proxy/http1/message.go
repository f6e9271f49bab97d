package http1

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"heed/rules"
)

// Message is a head that is written. Its fields are those of Header, in the order and with
// the names of Fields: the nth line of a name has the nth value. A field that Header does
// not have is left out. Further values and names come after the others, the names in
// alphabetical order.
//
// The fields that frame the message are the writer's own, and Header need not have them:
// Host, Connection, Content-Length, Transfer-Encoding and Trailer are made of the other
// parts, at the place where Fields have them. Keep-Alive and Proxy-Connection are left
// out, and so is Upgrade, unless Connection of Header names it.
//
// A Message that is kept and used again is written without allocating memory.
type Message struct {
	Method, Target string // of a request
	Host           string // of a request; empty: a Host field without a value
	Status         int    // of an answer; 0: a request
	Phrase         string // of an answer; empty: none

	Header http.Header
	Fields []Field // of the message as it came; nil: it came in another way

	Framing Framing
	Length  int64 // of a Sized body; of NoBody in an answer, what Content-Length declares, or -1

	Close     bool     // the connection ends with the message; so it does with UntilClose
	KeepAlive bool     // the answer is for a client of HTTP/1.0 that keeps the connection
	Trailer   []string // names to announce; Chunked only
}

// Append appends the head to b. A *Fault is returned for a part that HTTP/1 cannot carry,
// and b is unchanged. The names of an answer's Fields may be ones that are not tokens, as
// long as they are no more than odd.
func (m *Message) Append(b []byte) ([]byte, error) {
	before := len(b)
	b, fault := m.appendLine(b)
	if fault == nil {
		w := fieldWriter{Message: m, b: b}
		if fault = w.write(); fault == nil {
			return append(w.b, "\r\n"...), nil
		}
	}
	return b[:before], fault
}

func (m *Message) isAnswer() bool { return m.Status != 0 }

func (m *Message) appendLine(b []byte) ([]byte, *Fault) {
	if !m.isAnswer() {
		switch {
		case !isToken(m.Method):
			return b, newFault(BadMethod, false, "")
		case m.Target == "" || !rules.Sendable(m.Target):
			return b, newFault(BadTarget, false, "")
		case !httpguts.ValidHostHeader(m.Host):
			return b, newFault(BadHost, false, host)
		}
		b = append(append(append(b, m.Method...), ' '), m.Target...)
		return append(b, " HTTP/1.1\r\n"...), nil
	}
	if m.Status < 100 || m.Status > 999 {
		return b, newFault(BadStatus, true, "")
	}
	b = append(b, "HTTP/1.1 "...)
	b = append(strconv.AppendInt(b, int64(m.Status), 10), ' ')
	b = appendText(b, m.Phrase)
	return append(b, "\r\n"...), nil
}

// appendText appends text with a blank in place of each control character.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		c := text[i]
		if rules.IsControl(c) && c != '\t' { // RFC 9110 §5.5
			c = ' '
		}
		b = append(b, c)
	}
	return b
}

// isOwn reports whether a field is the writer's own.
func isOwn(key string) bool {
	switch key {
	case connection, contentLength, transferEncoding, trailer, "Keep-Alive", "Proxy-Connection":
		return true
	}
	return false
}

// own are the fields that the writer makes, as bits.
type own uint8

const (
	ownHost own = 1 << iota
	ownConnection
	ownLength
	ownCoding
	ownTrailer
)

// ownFields are the names of own, in the order of the bits.
var ownFields = [...]string{host, connection, contentLength, transferEncoding, trailer}

// fieldWriter writes the fields of a Message.
type fieldWriter struct {
	*Message
	b       []byte
	upgrade bool
	own     own // those that are to be written
	fault   *Fault

	seen  map[string]int // lines of a name so far; nil: Fields are few
	index int            // of the field that is being written
}

// fewFields is how many fields are compared with each other.
const fewFields = 32

func (w *fieldWriter) write() *Fault {
	w.prepare()
	if w.own&ownHost != 0 && !slices.ContainsFunc(w.Fields, func(f Field) bool { return f.Key == host }) {
		w.writeOwn(ownHost, host)
	}
	for i := range w.Fields {
		w.index = i
		w.writeField(&w.Fields[i])
	}
	w.writeRest()
	for i, name := range ownFields {
		w.writeOwn(1<<i, name)
	}
	return w.fault
}

// prepare finds out which fields the writer makes.
func (w *fieldWriter) prepare() {
	if len(w.Fields) > fewFields {
		w.seen = make(map[string]int, len(w.Fields))
	}
	w.upgrade = len(w.Header["Upgrade"]) > 0 && httpguts.HeaderValuesContainsToken(w.Header[connection], "upgrade")
	if !w.isAnswer() {
		w.own = ownHost
	}
	if w.Close || w.KeepAlive || w.upgrade || w.Framing == UntilClose {
		w.own |= ownConnection
	}
	switch {
	case w.Framing == Sized, w.Framing == NoBody && w.isAnswer() && w.Length >= 0 && w.Status >= 200 && w.Status != http.StatusNoContent:
		w.own |= ownLength
	case w.Framing == Chunked:
		w.own |= ownCoding
		if len(w.Trailer) > 0 {
			w.own |= ownTrailer
		}
	}
}

// writeOwn writes one of the writer's fields, unless that was done or is not to be done.
func (w *fieldWriter) writeOwn(which own, name string) {
	if w.own&which == 0 {
		return
	}
	w.own &^= which
	w.b = append(append(w.b, name...), ": "...)
	switch which {
	case ownHost:
		w.b = append(w.b, w.Host...)
	case ownConnection:
		switch {
		case w.upgrade:
			w.b = append(w.b, "Upgrade"...)
		case w.Close || w.Framing == UntilClose:
			w.b = append(w.b, "close"...)
		default:
			w.b = append(w.b, "keep-alive"...)
		}
	case ownLength:
		w.b = strconv.AppendInt(w.b, w.Length, 10)
	case ownCoding:
		w.b = append(w.b, chunkedCoding...)
	case ownTrailer:
		for i, name := range w.Trailer {
			if i > 0 {
				w.b = append(w.b, ", "...)
			}
			if !isToken(name) {
				w.fail(BadTrailer, name)
			}
			w.b = append(w.b, name...)
		}
	}
	w.b = append(w.b, "\r\n"...)
}

func (w *fieldWriter) fail(kind Kind, field string) {
	if w.fault == nil {
		w.fault = newFault(kind, w.isAnswer(), field)
	}
}

// skips reports whether a field is not written because of its name, of which key is the
// canonical form.
func (w *fieldWriter) skips(key string) bool {
	return isOwn(key) || key == host && !w.isAnswer() || key == "Upgrade" && !w.upgrade
}

// writeField writes the line of a field that came.
func (w *fieldWriter) writeField(f *Field) {
	for i, name := range ownFields {
		if f.Key == name && (name != host || !w.isAnswer()) {
			w.writeOwn(1<<i, f.Name)
			return
		}
	}
	if w.skips(f.Key) {
		return
	}
	values := w.Header[f.Key]
	n := w.earlier(f.Key)
	if n >= len(values) {
		return
	}
	odd := w.isAnswer() && f.Name != "" && !hasControl(f.Name) && !isBlank(f.Name[0]) && !looksProtected(f.Name)
	w.writeLine(f.Name, values[n], odd)
}

// earlier returns how many lines of a name come before the one that is being written.
func (w *fieldWriter) earlier(key string) (n int) {
	if w.seen != nil {
		n = w.seen[key]
		w.seen[key] = n + 1
		return n
	}
	for i := range w.index {
		if w.Fields[i].Key == key {
			n++
		}
	}
	return n
}

// lines returns how many lines of a name came.
func (w *fieldWriter) lines(key string) int {
	if w.seen != nil {
		return w.seen[key]
	}
	w.index = len(w.Fields)
	return w.earlier(key)
}

// writeLine writes a field. odd: its name need not be a token, nor its value be free of
// all control characters.
func (w *fieldWriter) writeLine(name, value string, odd bool) {
	switch {
	case !odd && !isToken(name):
		w.fail(BadName, name)
	case hasControl(value) && (!odd || hasBreak(value)):
		w.fail(BadValue, name)
	}
	w.b = append(append(w.b, name...), ": "...)
	w.b = append(append(w.b, value...), "\r\n"...)
}

// writeRest writes the values that have no line among Fields.
func (w *fieldWriter) writeRest() {
	var few [16]string
	names := few[:0]
	for key, values := range w.Header {
		if len(values) > w.lines(key) && !w.skips(http.CanonicalHeaderKey(key)) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	for _, key := range names {
		for _, value := range w.Header[key][w.lines(key):] {
			w.writeLine(key, value, false)
		}
	}
}

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
				if key := http.CanonicalHeaderKey(trimBlanks(name)); isToken(key) && !isOwn(key) && key != host {
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
func (h *Head) Request(ctx context.Context, target string, body *Body) (*http.Request, error) {
	u, err := parseTarget(h.Method, target)
	if err != nil {
		return nil, newFault(NoURL, false, "")
	}
	r := (&http.Request{}).WithContext(ctx) // of a request with its parts it would be another copy
	r.Method, r.URL, r.RequestURI, r.Host = h.Method, u, h.Target, cmp.Or(u.Host, h.Get(host))
	r.Proto, r.ProtoMajor, r.ProtoMinor = h.Proto, h.Major, h.Minor
	r.Header, r.Body, r.Close, r.Trailer = h.Header(), http.NoBody, h.Close, h.announced()
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
