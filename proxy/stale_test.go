package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A site closes a connection at the moment in which its second request arrives. No request
// is lost: one that may be sent twice is, and any other takes a new connection.
func TestNoRequestIsLostToAConnectionThatTheSiteCloses(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	go testkit.Accept(s.listen(t, "brief.test:80"), func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		body := map[bool]string{true: s.robots, false: r.Method}[r.URL.Path == "/robots.txt"]
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_, _ = in.ReadByte() // the second request
	})
	r := newRigBefore(t, s)
	for _, request := range []struct {
		method, body string
		fields       []string
	}{
		{"GET", "", nil}, {"DELETE", "", nil}, {"OPTIONS", "", nil}, {"PUT", "", []string{"Content-Length: 0"}},
		{"POST", "", []string{"Content-Length: 0"}}, {"POST", "body", []string{"Content-Length: 4"}},
		{"PUT", "body", []string{"Content-Length: 4"}}, {"PATCH", "body", []string{"Content-Length: 4"}},
		{"GET", "body", []string{"Content-Length: 4"}}, {"LOCK", "", nil},
	} {
		for _, again := range []string{"its own", "another client's"} {
			c, prefix := r.rawTo(plain, "brief.test")
			for range 6 {
				before, from := c, prefix
				if again != "its own" {
					before, from = r.rawTo(plain, "brief.test")
				}
				before.Send(requestTo("brief.test", "GET", from, "/before"))
				a := before.Answer("GET")
				must.Need(t, a.StatusCode == 200, "GET before: %s", a.Status)
				c.Send(requestTo("brief.test", request.method, prefix, "/page", request.fields...) + request.body)
				if a := c.Answer(request.method); a.StatusCode != 200 || string(a.Body) != request.method {
					t.Errorf("%s %q after %s: %s %s", request.method, request.body, again, a.Status, a.Body)
				}
			}
		}
	}
}
