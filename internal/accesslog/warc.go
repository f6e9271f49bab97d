package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of what is read of a WARC record.
const (
	maxHead    = 64 << 10 // octets of its own header
	maxMessage = 1 << 20  // octets of the HTTP message in it, as far as they are needed
	maxPending = 64       // requests and responses that wait for the other
)

// warc reads the requests of a WARC file (ISO 28500): those of its request records, with
// the status of the response record that belongs to each. Of a response without a request
// record the target is its URI and the User-Agent that of the warcinfo record.
type warc struct {
	in      *bufio.Reader
	n       int64
	agent   string // of the warcinfo record
	pending []*exchange
	ready   []*exchange
	ended   error
	robots  func(*Robots) error // nil: not needed
	last    int64               // number of the record of the request that next returned
}

// exchange is a request record, a response record, or both.
type exchange struct {
	n                 int64
	request, response bool
	id                string
	concurrent        []string
	uri               string
	at                time.Time
	method, target    string
	host              string
	agent, referrer   string
	status            int
	octets            int64
}

func newWARC(in *bufio.Reader) *warc { return &warc{in: in} }

func (w *warc) number() int64  { return w.last }
func (w *warc) cut() int64     { return 0 }
func (w *warc) format() string { return "WARC" }
func (w *warc) close()         {}

func (w *warc) when() (t time.Time, ok bool, err error) {
	var q Request
	reason, err := w.next(&q)
	return q.Time, reason == "", err
}

// next returns the next request. Requests are returned when their response was read.
func (w *warc) next(q *Request) (reason string, err error) {
	for len(w.ready) == 0 {
		if w.ended != nil {
			if len(w.pending) == 0 {
				return "", w.ended
			}
			w.ready, w.pending = w.pending, nil
			break
		}
		reason, err := w.record()
		if err != nil {
			w.ended = err
			continue
		}
		if reason != "" {
			w.last = w.n
			return reason, nil
		}
	}
	x := w.ready[0]
	w.ready = w.ready[1:]
	w.last = x.n
	x.fill(q, w.agent)
	return "", nil
}

// fill makes the request of an exchange.
func (x *exchange) fill(q *Request, agent string) {
	q.Time, q.Method, q.Target, q.Host = x.at, x.method, x.target, x.host
	q.Status, q.Bytes, q.Referrer, q.UserAgent = x.status, x.octets, x.referrer, x.agent
	if !x.request {
		q.Method, q.UserAgent = http.MethodGet, agent
	}
	u, err := url.Parse(x.uri)
	if err != nil {
		return
	}
	if q.Target == "" {
		q.Target = u.RequestURI()
	}
	if q.Host == "" {
		q.Host = u.Host
	}
}

// record reads one record.
func (w *warc) record() (reason string, err error) {
	header, err := w.header()
	if err != nil {
		return "", err
	}
	w.n++
	size, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil || size < 0 {
		return "", fmt.Errorf("%w: record %d has no Content-Length", errTorn, w.n)
	}
	body := &io.LimitedReader{R: w.in, N: size}
	reason, err = w.take(header, body)
	if err != nil {
		return "", err
	}
	if _, err = io.Copy(io.Discard, body); err == nil && body.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	return reason, torn(err)
}

// torn marks an unexpected end.
func torn(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errTorn, err)
	}
	return err
}

// header reads the version and the header of a record.
func (w *warc) header() (textproto.MIMEHeader, error) {
	for {
		c, err := w.in.Peek(1)
		if err != nil {
			return nil, err
		}
		if c[0] != '\r' && c[0] != '\n' {
			break
		}
		_, _ = w.in.Discard(1) // it was peeked
	}
	limited := &io.LimitedReader{R: byteReader{w.in}, N: maxHead}
	in := textproto.NewReader(bufio.NewReaderSize(limited, 16))
	version, err := in.ReadLine()
	if err == nil && !strings.HasPrefix(version, "WARC/") {
		return nil, fmt.Errorf("%w: after record %d there is no record", errTorn, w.n)
	}
	var header textproto.MIMEHeader
	if err == nil {
		header, err = in.ReadMIMEHeader()
	}
	switch {
	case err == nil:
		return header, nil
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: record %d has no end of its header", errTorn, w.n+1)
	case errors.Is(err, errTorn):
		return nil, err
	}
	var malformed textproto.ProtocolError
	if errors.As(err, &malformed) {
		return nil, fmt.Errorf("%w: record %d: %w", errTorn, w.n+1, err)
	}
	return nil, err
}

// byteReader returns one octet each time, so that a buffer over it reads no further than
// the header.
type byteReader struct{ *bufio.Reader }

// Read reads an octet.
func (b byteReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := b.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}

// take keeps what is needed of a record.
func (w *warc) take(header textproto.MIMEHeader, body io.Reader) (reason string, err error) {
	kind := header.Get("WARC-Type")
	if kind == "warcinfo" {
		text, err := io.ReadAll(io.LimitReader(body, maxHead))
		w.info(text)
		return aside, err
	}
	isHTTP := strings.HasPrefix(strings.TrimPrefix(header.Get("WARC-Target-URI"), "<"), "http")
	if !isHTTP || kind != "request" && kind != "response" && kind != "revisit" {
		return aside, nil
	}
	x := &exchange{
		n: w.n, id: header.Get("WARC-Record-ID"), concurrent: header.Values("WARC-Concurrent-To"),
		uri: strings.Trim(header.Get("WARC-Target-URI"), "<>"), request: kind == "request", response: kind != "request",
	}
	if x.at, err = time.Parse(time.RFC3339Nano, header.Get("WARC-Date")); err != nil || !plausible(x.at) {
		return "a record without a valid WARC-Date", nil
	}
	var in *bufio.Reader
	counted := &counted{Reader: io.LimitReader(body, maxMessage)}
	in = bufio.NewReader(counted)
	if x.request {
		return w.takeRequest(x, in)
	}
	size, _ := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	reason, err = w.takeResponse(x, in, kind, size, counted)
	return reason, err
}

// counted counts what is read.
type counted struct {
	io.Reader
	n int64
}

// Read reads and counts.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// info keeps the User-Agent of a warcinfo record.
func (w *warc) info(text []byte) {
	for line := range bytes.Lines(text) {
		name, value, ok := strings.Cut(string(line), ":")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "http-header-user-agent", "user-agent":
			if ok {
				w.agent = strings.TrimSpace(value)
			}
		}
	}
}

func (w *warc) takeRequest(x *exchange, in *bufio.Reader) (reason string, err error) {
	message := textproto.NewReader(in)
	first, err := message.ReadLine()
	if err != nil {
		return "a request record without a request", cannotRead(err)
	}
	x.method, x.target = requestLine(first)
	header, err := message.ReadMIMEHeader() // of a malformed one, what is before the fault
	if err = cannotRead(err); err != nil {
		return "", err
	}
	x.host, x.agent, x.referrer = header.Get("Host"), header.Get("User-Agent"), header.Get("Referer")
	w.pair(x)
	return "", nil
}

// cannotRead returns an error of the file, and nil for one of what is in the record.
func cannotRead(err error) error {
	if errors.Is(err, errTorn) {
		return err
	}
	return nil
}

func (w *warc) takeResponse(x *exchange, in *bufio.Reader, kind string, size int64, read *counted) (reason string, err error) {
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return "a response record without a response", cannotRead(err)
	}
	defer response.Body.Close()
	x.status = response.StatusCode
	x.octets = max(0, size-read.n+int64(in.Buffered()))
	if w.robots != nil && kind == "response" {
		if err := w.takeRobots(x, response); err != nil {
			return "", err
		}
	}
	w.pair(x)
	return "", nil
}

// pair finds the request of a response, or the response of a request.
func (w *warc) pair(x *exchange) {
	for i, y := range w.pending {
		if y.request == x.request || !x.belongs(y) {
			continue
		}
		w.pending = append(w.pending[:i:i], w.pending[i+1:]...)
		if x.request {
			x.join(y)
		} else {
			y.join(x)
			x = y
		}
		w.ready = append(w.ready, x)
		return
	}
	if w.pending = append(w.pending, x); len(w.pending) > maxPending {
		w.ready = append(w.ready, w.pending[0])
		w.pending = w.pending[1:]
	}
}

// belongs reports whether two records are of one exchange: one names the other, or
// neither names any and their URIs are the same.
func (x *exchange) belongs(y *exchange) bool {
	for _, id := range x.concurrent {
		if id == y.id {
			return true
		}
	}
	for _, id := range y.concurrent {
		if id == x.id {
			return true
		}
	}
	return len(x.concurrent)+len(y.concurrent) == 0 && x.uri == y.uri
}

// join adds the response to a request.
func (x *exchange) join(response *exchange) {
	x.response, x.status, x.octets = true, response.status, response.octets
}
