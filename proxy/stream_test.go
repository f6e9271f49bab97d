package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// streaming starts a request whose answer is read as it comes.
func (r *rig) streaming(m mode, method, path string, body io.Reader, header ...string) *http.Response {
	r.t.Helper()
	if m != mitmH2 {
		c, prefix := r.raw(m)
		if body != nil {
			header = append(header, "Transfer-Encoding: chunked")
		}
		c.Send(rawRequest(method, prefix, path, header...))
		if body != nil {
			go sendChunked(c, body)
		}
		return c.Head(method)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	r.t.Cleanup(cancel)
	req := must.Get(http.NewRequestWithContext(ctx, method, "https://site.test"+path, body))(r.t)
	return must.Get(r.h2("site.test").RoundTrip(req))(r.t)
}

func sendChunked(c net.Conn, body io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			fmt.Fprintf(c, "%x\r\n%s\r\n", n, buf[:n])
		}
		if err != nil {
			io.WriteString(c, "0\r\n\r\n")
			return
		}
	}
}

// expect reads exactly the octets of want.
func expect(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
}

// Each piece of an answer, of a known length or not, arrives before the site writes the
// next: the site waits until the client has it. The head comes before the
// first piece.
func TestPiecesArriveAsTheyAreSent(t *testing.T) {
	next := make(chan bool)
	piece := func(i int) string { return fmt.Sprint(i, strings.Repeat(".", writeBuffer)) }
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", fmt.Sprint(3*len(piece(0))))
		}
		w.(http.Flusher).Flush()
		for i := range 3 {
			<-next
			io.WriteString(w, piece(i))
			w.(http.Flusher).Flush()
		}
		<-next
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, path := range []string{"/length", "/log"} {
			resp := r.in(t).streaming(m, "GET", path, nil)
			for i := range 3 {
				next <- true
				expect(t, resp.Body, piece(i))
			}
			next <- true
			rest, err := io.ReadAll(resp.Body)
			must.True(t, len(rest) == 0 && err == nil, "%s: the end is %q, %v", path, rest, err)
		}
	})
}

// Both directions flow at once: the site answers each piece of an upload while
// the next is not yet sent.
func TestBothDirectionsAtOnce(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.(http.Flusher).Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintf(w, "echo %s\n", lines.Text())
			w.(http.Flusher).Flush()
		}
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		up, send := io.Pipe()
		resp := r.in(t).streaming(m, "POST", "/echo/"+string(m), up)
		for i := range 5 {
			fmt.Fprintf(send, "%d\n", i)
			expect(t, resp.Body, fmt.Sprintf("echo %d\n", i))
		}
		send.Close()
		rest, err := io.ReadAll(resp.Body)
		must.True(t, len(rest) == 0 && err == nil, "the end is %q, %v", rest, err)
		o := r.records.target(t, "/echo/"+string(m)).Outcome
		must.True(t, o.BytesIn == int64(5*len("0\n")) && o.BytesOut == int64(5*len("echo 0\n")),
			"record: %d in, %d out", o.BytesIn, o.BytesOut)
	})
}

// A site that answers before it has the whole upload is heard at once, whether
// it goes on reading or not, and the connection to the client then ends.
func TestEarlyAnswerOfTheSiteIsPassedOnAtOnce(t *testing.T) {
	s := newSite(t, hello)
	act := func(c net.Conn, r *http.Request) {
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
		io.Copy(io.Discard, c) // never hangs up by itself
	}
	s.script(t, "early.test:80", act)
	certFile, keyFile := s.ca.Leaf(t, "early.test")
	s.scriptTLS(t, "early.test:443", certFile, keyFile, act)
	r := newRigBefore(t, s, func(c *Config) { c.Limits.DrainTime = 1 })
	for name, header := range map[string]string{
		"small":   "Content-Length: 100",
		"huge":    "Content-Length: 10000000000",
		"chunked": "Transfer-Encoding: chunked",
	} {
		eachMode(t, rawModes, func(t *testing.T, m mode) {
			c, prefix := r.in(t).rawTo(m, "early.test")
			c.Send(requestTo("early.test", "POST", prefix, "/"+name, header))
			if header == "Transfer-Encoding: chunked" {
				c.Send("3\r\nabc\r\n")
			} else {
				c.Send("abc")
			}
			if a := c.Answer("POST"); a.StatusCode != 413 || string(a.Body) != "big" || !a.Close {
				t.Errorf("%s: %s %q close %v", name, a.Status, a.Body, a.Close)
			}
			c.Closed()
		})
	}
}

// 100 Continue comes when the site wants the body, and not before.
func TestContinueIsTheSitesToGive(t *testing.T) {
	asked, goOn := make(chan bool), make(chan bool)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && r.ProtoMajor == 1 && r.Header.Get("Expect") == "" { // net/http's HTTP/2 server hides it
			t.Error("the site was not asked")
		}
		asked <- true
		<-goOn
		body, _ := io.ReadAll(r.Body) // sends the 100
		fmt.Fprintf(w, "got %s", body)
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(rawRequest("POST", prefix, "/upload", "Content-Length: 5", "Expect: 100-continue"))
		<-asked
		goOn <- true
		must.Is(t, c.Head("POST").StatusCode, 100, "before the body")
		c.Send("hello" + get(prefix, "/unused"))
		a := c.Answer("POST")
		must.True(t, a.StatusCode == 200 && string(a.Body) == "got hello", "%s %q", a.Status, a.Body)
		<-asked // the next request on the same connection
		goOn <- true
		must.Status(t, c.Answer("GET").Response, 200, "the next request")
	})
}

// A site that declines an expectation is heard without the body being asked
// for.
func TestRefusalOfTheSiteComesWithoutContinue(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusExpectationFailed)
		fmt.Fprint(w, "no")
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(rawRequest("POST", prefix, "/upload", "Content-Length: 5", "Expect: 100-continue"))
		a := c.Answer("POST")
		must.True(t, a.StatusCode == 417 && string(a.Body) == "no", "%s %q", a.Status, a.Body)
	})
}
