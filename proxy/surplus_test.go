package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// poison is what a careless or hostile site sends beyond an answer.
const poison = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"

// surplusCases are answers that are whole, by the name of their page.
var surplusCases = map[string]struct {
	method, answer, body string
	status               int
}{
	"/length":  {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nodd", "odd", 200},
	"/chunked": {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nodd\r\n0\r\n\r\n", "odd", 200},
	"/head":    {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", "", 200},
	"/none":    {"GET", "HTTP/1.1 204 No Content\r\n\r\n", "", 204},
	"/same":    {"GET", "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n", "", 304},
}

// surplusDelays are when the surplus comes: with the answer, after it, and later.
var surplusDelays = map[string]time.Duration{"same segment": -1, "next segment": 0, "1 ms": time.Millisecond, "5 ms": 5 * time.Millisecond}

// overflowing answers each request of c, and sends surplus after the odd ones: the query
// says when. What is late, as on a busy machine, is not sent: it would come after the silence
// for which heed waits, and be an answer to the next request.
func overflowing(s *site, surplus string) func(c net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		var mu sync.Mutex
		due := new(bool) // there is a surplus to send; guarded by mu
		for {
			r, err := http.ReadRequest(in)
			mu.Lock()
			*due = false
			_ = c.SetWriteDeadline(time.Time{})
			mu.Unlock()
			if err != nil {
				return
			}
			odd, isOdd := surplusCases[r.URL.Path]
			delay := surplusDelays[strings.ReplaceAll(r.URL.RawQuery, "_", " ")]
			switch {
			case r.URL.Path == "/robots.txt":
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(s.robots), s.robots)
			case !isOdd:
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
			case delay < 0:
				io.WriteString(c, odd.answer+surplus)
			default:
				is, late := new(true), time.Now().Add(15*time.Millisecond)
				io.WriteString(c, odd.answer)
				mu.Lock()
				due = is
				_ = c.SetWriteDeadline(late)
				mu.Unlock()
				time.AfterFunc(delay, func() {
					mu.Lock()
					defer mu.Unlock()
					if *is {
						io.WriteString(c, surplus)
					}
				})
			}
		}
	}
}

// One client asks a site that sends more than its answers, another one asks for a good page
// at the same moment. Neither gets what it did not ask for.
func TestSurplusOctetsReachNoClient(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testkit.Full {
		rounds = 60
	}
	for what, surplus := range map[string]string{"an answer": poison, "a body": "body"} {
		s := newSite(t, hello)
		go testkit.Accept(s.listen(t, "loose.test:80"), overflowing(s, surplus))
		r := newRigBefore(t, s)
		for path, odd := range surplusCases {
			for when := range surplusDelays {
				t.Run(what+" after "+path+", "+when, func(t *testing.T) {
					r := r.in(t)
					honest, prefix := r.rawTo(plain, "loose.test")
					for range rounds {
						a := r.ask(plain, question{method: odd.method, host: "loose.test", path: path + "?" + strings.ReplaceAll(when, " ", "_")})
						honest.Send(requestTo("loose.test", "GET", prefix, "/good"))
						b := honest.Answer("GET")
						must.True(t, a.StatusCode == odd.status && a.body == odd.body,
							"the client of %s gets %s %q", path, a.Status, a.body)
						must.Need(t, b.StatusCode == 200 && string(b.Body) == "good",
							"the client of /good gets %s %q", b.Status, b.Body)
					}
				})
			}
		}
	}
}
