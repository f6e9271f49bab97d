package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// responseWriter is the client's side of an exchange. It keeps what net/http
// would change (no invented Content-Type), passes bytes on as they come, and
// notes what was sent.
type responseWriter struct {
	http.ResponseWriter
	exchange *exchange
	status   int
	written  int64
	err      error       // the client could not be written to
	stream   bool        // nothing is held back: the length is not known
	length   int64       // of the site's answer where it is known; else 0
	whole    bool        // all of length has been sent; false where it is not known
	phrase   *string     // the site's reason phrase where it is not the usual one; else nil
	trailer  http.Header // what the site has announced to come after the body
	hijacked bool

	trace httptrace.ClientTrace // of the request to the site
	site  *siteConn             // what the request went out on; nil before, and for HTTP/2

	interim sync.Mutex // guards 1xx answers, which the Transport reports from a goroutine of its own
	final   bool       // no 1xx any more; guarded by interim
}

// Unwrap serves http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends the head of the answer, at once when the body streams.
func (w *responseWriter) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status = status
	h := w.Header()
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // net/http would guess one
	}
	if x := w.exchange; x.refusal != nil && x.conn != nil {
		x.conn.setPhrase(x.refusal.phrase)
	} else if w.phrase != nil && x.conn != nil {
		x.conn.setPhrase(*w.phrase)
	}
	w.ResponseWriter.WriteHeader(status)
	for name := range w.trailer {
		delete(h, name) // sent; a trailer of that name is another field
	}
	if w.stream || w.length > writeBuffer {
		w.Flush() // the body may take its time
	}
}

// writeBuffer is how much of an answer net/http holds back, in octets. A body
// that it could hold whole comes with its head as a rule, and both then leave
// in one piece.
const writeBuffer = 4 << 10

// Write passes p on, at once when the body streams.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.exchange.stream.begin()
	n, err := w.ResponseWriter.Write(p)
	w.exchange.stream.end()
	w.written += int64(n)
	if err != nil && err != http.ErrBodyNotAllowed && w.err == nil {
		w.err = err
	}
	if w.stream && err == nil {
		w.Flush()
	}
	return n, err
}

type copyBuffer = [32 << 10]byte

var copyBuffers = sync.Pool{New: func() any { return new(copyBuffer) }}

// ReadFrom copies src to the client through a pooled buffer; net/http's own
// ReadFrom allocates one per answer.
func (w *responseWriter) ReadFrom(src io.Reader) (total int64, err error) {
	buf := copyBuffers.Get().(*copyBuffer)
	defer copyBuffers.Put(buf)
	for {
		n, ended := src.Read(buf[:])
		if n > 0 {
			written, err := w.Write(buf[:n])
			total += int64(written)
			if err != nil {
				return total, err
			}
			w.keepUp(total, n, ended)
		}
		if ended == io.EOF {
			return total, nil
		}
		if ended != nil {
			return total, ended
		}
	}
}

// keepUp sends what is held back of an answer of known length where the site
// may pause: n octets came last, total in all, and ended says whether more will
// come. A site may take its time after the last octet, too.
func (w *responseWriter) keepUp(total int64, n int, ended error) {
	switch {
	case total < w.length && n < len(copyBuffer{}):
		w.Flush()
	case total == w.length && ended == nil:
		w.Flush()
		w.whole = w.err == nil
	}
}

// Flush sends what is buffered.
func (w *responseWriter) Flush() {
	w.exchange.stream.begin()
	defer w.exchange.stream.end()
	if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil && w.err == nil && w.status != 0 {
		w.err = err
	}
}

// Hijack hands over the connection of a WebSocket or a tunnel. The bytes that
// the server has read ahead come with it, since goproxy forgets them.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked = true
	head := make([]byte, rw.Reader.Buffered())
	_, _ = io.ReadFull(rw.Reader, head) // buffered bytes cannot fail
	if c, ok := conn.(*clientConn); ok {
		conn = c.Conn
	}
	t := &tunnelConn{Conn: conn, head: head, exchange: w.exchange}
	if w.status != 0 { // a WebSocket: finish closes it when either side ends
		w.exchange.upgraded = t
		w.exchange.proxy.open.add(t)
	}
	return t, bufio.NewReadWriter(bufio.NewReaderSize(t, 16), bufio.NewWriterSize(t, 16)), nil
}
