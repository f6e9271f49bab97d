package transparent

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"

	"heed/internal/tools/testkit"
)

// speak is the site script.test.
func (w *world) speak(l net.Listener, secure *tls.Config) {
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	testkit.Accept(l, w.converse)
}

// converse answers one request after the other with what the shapes say.
func (w *world) converse(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		s := w.shapes[r.Header.Get("X-Shape")]
		if r.URL.Path == "/robots.txt" || s == nil {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(robots), robots)
			continue
		}
		a := &arrival{method: r.Method, target: r.RequestURI, host: r.Host, header: r.Header.Clone()}
		io.WriteString(c, s.early)
		if !s.deaf {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			a.body, a.trailer = string(body), r.Trailer.Clone()
		}
		w.seen <- a
		io.WriteString(c, s.answer)
		if s.deaf { // reads on, so that no reset overtakes the answer
			if half, ok := c.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
			io.Copy(io.Discard, r.Body)
			return
		}
		if s.hangup {
			return
		}
	}
}
