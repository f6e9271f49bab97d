package server

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/proxy/http1"
)

// Answer is the answer to a request, as an http.ResponseWriter that also serves
// http.ResponseController and http.Hijacker. The head is made when it is known how the body
// ends, and leaves with the first octets of it. Content-Type is not guessed.
type Answer struct {
	conn   *Conn
	cancel context.CancelFunc // of the request
	body   body               // of the request

	head, old bool // the request is a HEAD; is HTTP/1.0
	close     bool // the connection ends with the answer

	header  http.Header   // nil: it has not been asked for
	status  int           // 0: none so far
	phrase  *string       // see SetPhrase
	fields  []http1.Field // see SetFields
	trailer []string      // names that were announced
	begun   bool          // the head is written, or held back with what follows
	err     error         // why the answer cannot be written

	interim sync.Mutex // held while a 1xx is written
	final   bool       // no 1xx any more; guarded by interim
	broken  error      // why a 1xx could not be written, and nothing after it; guarded by interim
}

// Header implements http.ResponseWriter.
func (a *Answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// AddHeader sets the fields of header, which belongs to a from then on.
func (a *Answer) AddHeader(header http.Header) {
	if len(a.header) == 0 && header != nil {
		a.header = header
	} else {
		maps.Copy(a.Header(), header)
	}
}

// SetPhrase makes phrase that of the status line, in place of the usual one. Control
// characters become blanks.
func (a *Answer) SetPhrase(phrase *string) { a.phrase = phrase }

// Fields returns the lines of the request's head as they came. They are valid until the
// request has been handled.
func (a *Answer) Fields() []http1.Field { return a.conn.Head.Fields }

// FieldRoom returns room for the lines of an answer's head, for SetFields. It is the
// connection's, and its next answer's.
func (a *Answer) FieldRoom() []http1.Field {
	if a.conn.room == nil {
		a.conn.room = make([]http1.Field, 0, 16)
	}
	return a.conn.room[:0]
}

// SetFields makes the names and the order of fields those of the answer's head. A field
// that Header does not have is left out. Nil: the names are in alphabetical order.
func (a *Answer) SetFields(fields []http1.Field) {
	if a.fields = fields; fields != nil && cap(fields) <= maxRoom {
		a.conn.room = fields
	}
}

// maxRoom is how many lines the memory is kept of.
const maxRoom = 64

// WriteHeader implements http.ResponseWriter. A 1xx is sent at once, but for 101.
func (a *Answer) WriteHeader(status int) {
	switch {
	case status < 200 && status != http.StatusSwitchingProtocols:
		a.writeInterim(status)
		return
	case a.status != 0:
		return
	}
	a.interim.Lock()
	a.final, a.err = true, a.broken
	a.interim.Unlock()
	a.status = status
	a.close = a.close || !a.body.ended.Load() || a.conn.server.ending.Load() || httpguts.HeaderValuesContainsToken(a.header["Connection"], "close")
	for _, line := range a.header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)); httpguts.ValidTrailerHeader(name) {
				a.trailer = append(a.trailer, name)
			}
		}
	}
	if a.length() >= 0 || len(a.trailer) > 0 || !a.hasBody() {
		a.begin(false)
	}
}

// writeInterim sends a 1xx answer, unless the final one has begun.
func (a *Answer) writeInterim(status int) {
	a.interim.Lock()
	defer a.interim.Unlock()
	if a.final || a.old || a.broken != nil {
		return
	}
	m := http1.Message{Status: status, Phrase: http.StatusText(status), Header: a.header, Length: -1}
	if b, err := m.Append(nil); err == nil {
		_, a.broken = a.conn.Write(b)
	}
}

// length returns the length that the head states; -1: none.
func (a *Answer) length() int64 {
	lines := a.header["Content-Length"]
	if len(lines) == 0 {
		return -1
	}
	n, err := strconv.ParseUint(lines[0], 10, 63)
	if err != nil {
		return -1
	}
	return int64(n)
}

func (a *Answer) hasBody() bool { return !a.head && http1.HasBody("", a.status) }

// begin makes the head. empty: there is no body although there could be one.
func (a *Answer) begin(empty bool) {
	a.begun = true
	m := &a.conn.head
	*m = http1.Message{Status: a.status, Header: a.Header(), Fields: a.fields, Length: a.length()}
	if a.phrase != nil {
		m.Phrase = *a.phrase
	} else if m.Phrase = http.StatusText(a.status); m.Phrase == "" {
		m.Phrase = "status code " + strconv.Itoa(a.status)
	}
	switch {
	case !a.hasBody():
	case m.Length >= 0:
		m.Framing = http1.Sized
	case empty:
		m.Framing, m.Length = http1.Sized, 0
	case a.old:
		m.Framing, a.close = http1.UntilClose, true
	default:
		m.Framing, m.Trailer = http1.Chunked, a.trailer
	}
	if _, ok := a.header["Date"]; !ok { // RFC 9110 §6.6.1
		a.header["Date"] = date.at(time.Now())
	}
	m.Close, m.KeepAlive = a.close, a.old && !a.close
	if a.err != nil {
		return
	}
	if a.err = a.conn.out.Begin(m); a.err != nil && a.dropInvalid() {
		a.err = a.conn.out.Begin(m)
	}
}

// date is the Date of all answers.
var date dateField

// dateField has the value of Date for the second in which it was made last. Its zero value
// is ready; it is safe for concurrent use.
type dateField struct{ last atomic.Pointer[dateOf] }

type dateOf struct {
	second int64
	value  []string // never changed
}

func (d *dateField) at(now time.Time) []string {
	last := d.last.Load()
	if second := now.Unix(); last == nil || last.second != second {
		last = &dateOf{second, []string{now.UTC().Format(http.TimeFormat)}}
		d.last.Store(last)
	}
	return last.value
}

// dropInvalid leaves out the fields that no message can carry. It reports whether there
// was one.
func (a *Answer) dropInvalid() (dropped bool) {
	for name, values := range a.header {
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			delete(a.header, name)
			dropped = true
		}
	}
	return dropped
}

// start makes the head, if that was not done.
func (a *Answer) start(empty bool) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.begun {
		a.begin(empty)
	}
}

// Write implements http.ResponseWriter.
func (a *Answer) Write(p []byte) (int, error) {
	switch a.start(false); {
	case a.err != nil:
		return 0, a.err
	case a.head:
		return len(p), nil
	}
	return a.conn.out.Write(p)
}

// FlushError serves http.ResponseController.
func (a *Answer) FlushError() error {
	if a.start(false); a.err != nil {
		return a.err
	}
	return a.conn.out.Flush()
}

// SetReadDeadline serves http.ResponseController.
func (a *Answer) SetReadDeadline(t time.Time) error { return a.conn.SetReadDeadline(t) }

// Hijack implements http.Hijacker. The connection is of type *Conn, whose Rest has the octets
// that were read ahead; there is no bufio.ReadWriter.
func (a *Answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c := a.conn
	a.body.end(true) // nothing of it was read, or it has ended
	c.watch.end()
	c.taken = true
	c.server.remove(c)
	_ = c.out.Flush() // the next Write fails as well
	c.out.Release()
	return c, nil, c.SetReadDeadline(time.Time{})
}

// finish ends the answer. It reports whether another request may follow.
func (a *Answer) finish() (again bool) {
	if a.conn.taken {
		return false
	}
	if a.start(true); a.err != nil {
		return false
	}
	return a.conn.out.End(a.trailers()) == nil && !a.close
}

// trailers returns the fields that follow the body; nil: none.
func (a *Answer) trailers() http.Header {
	var all http.Header
	add := func(name string, values []string) {
		if all == nil {
			all = http.Header{}
		}
		all[name] = values
	}
	for _, name := range a.trailer {
		if values := a.header[name]; len(values) > 0 {
			add(name, values)
		}
	}
	for name, values := range a.header {
		if name, found := strings.CutPrefix(name, http.TrailerPrefix); found {
			add(name, values)
		}
	}
	return all
}

// release ends what still uses the connection for this exchange.
func (a *Answer) release() {
	if !a.conn.taken {
		a.body.end(false)
		a.conn.watch.end()
	}
	a.cancel()
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// body is the body of a request. It is safe for concurrent use: who sends it to the site
// may still be reading when the answer has ended.
type body struct {
	answer  *Answer
	ended   atomic.Bool // read to its end, or there is none
	mu      sync.Mutex
	from    http1.Body
	expects bool // the client waits for 100
	closed  bool
}

// Read implements io.Reader. The first one asks a client that waits for 100 to send the body.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.expects {
		b.expects = false
		b.answer.writeContinue()
	}
	n, err := b.from.Read(p)
	if b.from.Ended() && !b.ended.Swap(true) {
		b.answer.conn.watch.begin(b.answer.cancel)
	}
	return n, err
}

// Close implements io.Closer. It does nothing: the connection ends with a body that was not read.
func (b *body) Close() error { return nil }

// end makes every later Read fail. A Read that waits is ended, unless none can, since
// the connection is taken over before its body was asked for.
func (b *body) end(unread bool) {
	if !unread && !b.ended.Load() {
		_ = b.answer.conn.SetReadDeadline(past)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// writeContinue sends 100 Continue, unless the final answer has begun.
func (a *Answer) writeContinue() {
	a.interim.Lock()
	defer a.interim.Unlock()
	if !a.final && a.broken == nil {
		_, a.broken = a.conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
}
