package proxy

import (
	"io"
	"net/http"
	"testing"
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
		if err := <-asked; err != io.EOF {
			t.Errorf("after the upload comes %v, not its end", err)
		}
		begun <- true
		if rest, err := io.ReadAll(resp.Body); string(rest) != "and whole" || err != nil {
			t.Errorf("the rest of the answer is %q, %v", rest, err)
		}
	})
}

// tardy asks for the end of an upload only when somebody waits for asked, which
// is told what came.
type tardy struct {
	http.RoundTripper
	asked chan error
}

func (a tardy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.ContentLength > 0 {
		r.Body = &tardyBody{ReadCloser: r.Body, left: r.ContentLength, asked: a.asked}
	}
	return a.RoundTripper.RoundTrip(r)
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
