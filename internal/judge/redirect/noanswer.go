package redirect

import (
	"bufio"
	"net"
	"net/http"
)

// NoAnswer is the http.ResponseWriter of a CONNECT that no client has sent: its answers
// are dropped, and its connection can be taken over.
type NoAnswer struct {
	conn   net.Conn
	header http.Header
	taken  bool
}

// NewNoAnswer returns a NoAnswer of the connection c.
func NewNoAnswer(c net.Conn) *NoAnswer { return &NoAnswer{conn: c, header: http.Header{}} }

// Taken reports whether the connection was taken over.
func (w *NoAnswer) Taken() bool { return w.taken }

// Header implements http.ResponseWriter.
func (w *NoAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *NoAnswer) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (w *NoAnswer) Write(b []byte) (int, error) { return len(b), nil }

// FlushError serves http.ResponseController.
func (w *NoAnswer) FlushError() error { return nil }

// Hijack implements http.Hijacker.
func (w *NoAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.taken = true
	return w.conn, bufio.NewReadWriter(bufio.NewReaderSize(w.conn, 16), bufio.NewWriterSize(w.conn, 16)), nil
}
