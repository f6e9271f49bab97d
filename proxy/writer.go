package proxy

import (
	"bufio"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"heed/internal/base/memory"
	"heed/proxy/server"
)

// responseWriter is the client's side of an exchange. It keeps what net/http
// would change (no invented Content-Type), passes octets on as they come, and
// notes what was sent.
type responseWriter struct {
	http.ResponseWriter
	h1       *server.Answer // the same as the ResponseWriter; nil: it is none
	of       *delivery
	status   int
	written  int64
	err      error       // the client could not be written to
	length   int64       // of the site's answer where it is known; else 0
	phrase   *string     // the site's reason phrase where it is not the usual one; else nil
	trailer  http.Header // what the site has announced to come after the body
	stream   bool        // nothing is held back: the length is not known
	whole    bool        // all of length has been sent; false where it is not known
	hijacked bool
	http2    bool // the request went out over HTTP/2

	interim sync.Mutex // guards 1xx answers, which net/http's HTTP/2 reports from a separate goroutine
	final   bool       // no 1xx any more; guarded by interim
}

// Unwrap serves http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends the head of the answer, immediately when the body streams.
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
	if x := w.of; w.h1 != nil && x.refusal != nil {
		w.h1.SetFields(nil)
		w.h1.SetPhrase(&x.refusal.Phrase)
	} else if w.h1 != nil {
		w.h1.SetPhrase(w.phrase)
	}
	w.ResponseWriter.WriteHeader(status)
	for name := range w.trailer {
		delete(h, name) // sent; a trailer of that name is another field
	}
	if w.stream || w.length > writeBuffer {
		w.Flush() // the body may take its time
	}
}

// writeBuffer is how much of an answer net/http holds back, in bytes. A body
// that it could hold whole comes with its head as a rule, and both then leave
// in one piece.
const writeBuffer = 4 << 10

// Write passes p on, immediately when the body streams.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.Write(p)
	w.end()
	w.written += int64(n)
	if err != nil && err != http.ErrBodyNotAllowed && w.err == nil {
		w.err = err
	}
	if w.stream && err == nil {
		w.Flush()
	}
	return n, err
}

// begin notes that something is being written to an HTTP/2 stream.
func (w *responseWriter) begin() {
	if s := w.of.stream; s != nil {
		s.note(time.Now())
	}
}

// end notes that it has been. It waits for endStalled, which uses the server's writer
// as long as the handler runs.
func (w *responseWriter) end() {
	if s := w.of.stream; s != nil {
		s.note(time.Time{})
	}
}

// takeHeader makes the header of resp that of the answer, and returns resp without it,
// since goproxy would copy every value. It leaves a 101 its header, in which goproxy looks
// for a WebSocket handshake.
func (w *responseWriter) takeHeader(resp *http.Response) *http.Response {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp
	}
	if w.h1 != nil {
		w.h1.AddHeader(resp.Header)
	} else {
		maps.Copy(w.Header(), resp.Header)
	}
	resp.Header = nil
	return resp
}

// send writes an answer of heed's own.
func (w *responseWriter) send(resp *http.Response) {
	w.takeHeader(resp)
	w.WriteHeader(resp.StatusCode)
	_, _ = w.ReadFrom(resp.Body) // w keeps its own error
}

// ReadFrom copies src to the client through pooled memory; net/http's own ReadFrom
// allocates it for each answer.
func (w *responseWriter) ReadFrom(src io.Reader) (total int64, err error) {
	buf := memory.NewCopyBuffer()
	defer buf.Free()
	for {
		n, ended := src.Read(buf.Octets)
		full := n == len(buf.Octets)
		if n > 0 {
			written, err := w.Write(buf.Octets[:n])
			total += int64(written)
			if err != nil {
				return total, err
			}
			w.keepUp(total, full, ended)
		}
		if ended == io.EOF {
			return total, nil
		}
		if ended != nil {
			return total, ended
		}
		if full {
			buf.Grow()
		}
	}
}

// keepUp sends what is held back of an answer of known length where the site
// may pause: total octets came in all, full reports whether the last ones filled the
// buffer, and ended is nil when more may come. A site may take its time after the last
// octet, too.
func (w *responseWriter) keepUp(total int64, full bool, ended error) {
	switch {
	case total < w.length && !full:
		w.Flush()
	case total == w.length && ended == nil:
		w.Flush()
		w.whole = w.err == nil
	}
}

// Flush sends what is buffered.
func (w *responseWriter) Flush() {
	w.begin()
	defer w.end()
	if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil && w.err == nil && w.status != 0 {
		w.err = err
	}
}

// Hijack hands over the connection of a WebSocket or a tunnel. The octets that
// the server has read ahead come with it, since goproxy forgets them.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, _, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked = true
	t, ok := conn.(*tunnelConn) // no client has sent this CONNECT
	if !ok {
		c := conn.(*server.Conn)
		t = &tunnelConn{Conn: c.Conn, head: c.Rest()}
	}
	if w.status != 0 { // a WebSocket: finish closes it when either side ends
		w.of.upgraded = t
		w.of.proxy.open.add(t)
		w.of.lasts(t)
	}
	return t, bufio.NewReadWriter(bufio.NewReaderSize(t, 16), bufio.NewWriterSize(t, 16)), nil
}

func (w *responseWriter) isAnswered() bool {
	w.interim.Lock()
	defer w.interim.Unlock()
	return w.final
}

// answered ends the time of 1xx answers: net/http may still report one
// when a request was given up.
func (w *responseWriter) answered() {
	w.interim.Lock()
	defer w.interim.Unlock()
	w.final = true
}
