package proxy

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// pieces is a connection whose incoming octets come as r gives them.
type pieces struct {
	net.Conn
	r io.Reader
}

func (p pieces) Read(b []byte) (int, error)  { return p.r.Read(b) }
func (p pieces) Write(b []byte) (int, error) { return len(b), nil }

// What Connection names beside close is noted however the head is cut up, and
// what stands in a body names nothing.
func TestRFC9110_ConnectionOfAnAnswerThatCloses(t *testing.T) {
	const early = "HTTP/1.1 103 Early Hints\r\nConnection: X-Early\r\n\r\n"
	for in, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\n\r\n":                               "close, X-Hop",
		"HTTP/1.1 200 OK\r\nconnection:x-hop\r\nCONNECTION: Close\r\n\r\nbody":              "x-hop|Close",
		early + early + "HTTP/1.1 200 OK\r\nConnection: X-Hop, close\r\n\r\n":               "X-Hop, close",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n":                                      "", // net/http does all there is to do
		"HTTP/1.1 200 OK\r\nConnection: X-Hop\r\n\r\n":                                      "", // net/http keeps it
		"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close, X-End\r\n\r\n":        "",
		"\x00binary\r\nConnection: close, X-End\r\n\r\n":                                    "",
		"HTTP/1.1 200 OK\r\nX-Connection: close, X-End\r\n\r\nConnection: close, X\r\n\r\n": "",
	} {
		for how, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "octets": iotest.OneByteReader, "halves": iotest.HalfReader} {
			c := &siteConn{Conn: pieces{r: cut(strings.NewReader(in))}}
			io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
			if out, _ := io.ReadAll(c); string(out) != in {
				t.Fatalf("%s: %q came out as %q", how, in, out)
			}
			h := http.Header{}
			c.restoreConnection(h)
			values := h["Connection"]
			for i := range values {
				values[i] = strings.TrimSpace(values[i])
			}
			if got := strings.Join(values, "|"); got != want {
				t.Errorf("%s, in %s: %q, want %q", strings.ReplaceAll(in, "\r\n", "|"), how, got, want)
			}
		}
	}
}
