package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
)

// An upload that is complete stays so: the Transport asks for more than the
// stated length once the answer has begun, and the answer still comes whole.
func TestHeed_AnAnswerThatOvertakesTheEndOfItsUploadIsWhole(t *testing.T) {
	begun, asked := make(chan bool), make(chan error)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 6))
		io.WriteString(w, "begun ")
		_ = http.NewResponseController(w).Flush()
		<-begun
		io.WriteString(w, "and whole")
	}, func(c *Config) { c.Upstream = tardy{c.Upstream, asked} })
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).rawTo(m, "h1.test")
		c.Send(requestTo("h1.test", "POST", prefix, "/overtaken", "Content-Length: 6") + "upload")
		resp := c.Head("POST")
		expect(t, resp.Body, "begun ")
		<-asked
		err := <-asked
		must.True(t, err == io.EOF, "after the upload comes %v, not its end", err)
		begun <- true
		rest, err := io.ReadAll(resp.Body)
		must.True(t, string(rest) == "and whole" && err == nil, "the rest of the answer is %q, %v", rest, err)
	})
}

// tardy reads the end of an upload only when asked is received from, and sends the
// result to it.
type tardy struct {
	upstream.Sender
	asked chan error
}

func (a tardy) Send(q *upstream.Request) (*http.Response, error) {
	if r := q.Request; r.ContentLength > 0 {
		r.Body = &tardyBody{ReadCloser: r.Body, left: r.ContentLength, asked: a.asked}
	}
	return a.Sender.Send(q)
}

type tardyBody struct {
	io.ReadCloser
	left  int64
	ended bool
	asked chan error
}

func (b *tardyBody) Read(p []byte) (int, error) {
	if b.left == 0 && !b.ended {
		b.ended = true
		b.asked <- nil
		n, err := b.ReadCloser.Read(p)
		b.asked <- err
		return n, err
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if n > 0 {
		err = nil // its end is asked for
	}
	return n, err
}

// After an early answer the rest of an upload is read on two sides: by the
// Transport, which still sends it, and by the handler, which empties the client's
// connection. Its trailers are read by one of them. The race detector reports
// more.
func TestTrailersOfAnUploadAfterItsAnswer(t *testing.T) {
	s := newSite(t, hello)
	s.script(t, "early.test:80", func(c net.Conn, r *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, r.Body)
	})
	r := newRigBefore(t, s)
	for range 20 {
		c, prefix := r.rawTo(plain, "early.test")
		c.Send(requestTo("early.test", "POST", prefix, "/upload", "Transfer-Encoding: chunked", "Trailer: X-Sum") + "1\r\na\r\n")
		c.Head("POST")
		c.Send("1\r\nb\r\n0\r\nX-Sum: 1\r\nConnection: X-Sum\r\n\r\n")
		c.Rest()
	}
}

// A client that has an early answer may stop sending its upload, without ending
// it, and wait for the end of the answer. An HTTP/2 connection to the site must not
// hold that end back until the upload has ended.
func TestTheEndOfAnEarlyAnswerDoesNotWaitForTheUpload(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusMethodNotAllowed)
		io.WriteString(w, "no ")
		_ = http.NewResponseController(w).Flush()
		io.WriteString(w, "uploads")
	})
	whole := func(t *testing.T, resp *http.Response) {
		t.Helper()
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must.True(t, resp.StatusCode == 405 && string(body) == "no uploads" && err == nil, "%s %q, %v", resp.Status, body, err)
	}
	t.Run("HTTP/2", func(t *testing.T) {
		upload, more := io.Pipe()
		t.Cleanup(func() { more.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		req := must.Get(http.NewRequestWithContext(ctx, "POST", "https://site.test/h2", upload))(t)
		resp := must.Get(r.in(t).h2("site.test").RoundTrip(req))(t)
		whole(t, resp)
		e := r.records.target(t, "/h2")
		must.True(t, e.Outcome.Status == 405 && e.Outcome.Err == "", "recorded: %+v", e.Outcome)
	})
	t.Run("HTTP/1", func(t *testing.T) {
		c, prefix := r.in(t).raw(mitmH1)
		c.Send(requestTo("site.test", "POST", prefix, "/h1", "Content-Length: 100") + "begun")
		whole(t, c.Head("POST"))
	})
}
