package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"heed/internal/testkit"
	"heed/proxy/limit"
)

// A client that sends a kilobyte now and then is served, one that does not is
// answered, and a site that reads slowly is not held against it.
func TestHeed_ABodyHasToComeInTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}, func(c *Config) { c.Limits = limit.Limits{BodyTime: time.Second, DrainTime: 1} })
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(rawRequest("POST", prefix, "/late", "Content-Length: 5000") + "some")
		isLimit(t, c.Answer("POST"), 408, "limit body_time (1s) reached")
		c.Closed()
	})
	t.Run("h2", func(t *testing.T) {
		in, out := io.Pipe()
		defer out.Close()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://site.test/late", in)
		resp, err := r.in(t).h2("site.test").RoundTrip(req)
		if err != nil || resp.StatusCode != 408 {
			t.Errorf("%v, %+v", err, resp)
		}
	})
	e := r.records.target(t, "/late")
	if !strings.Contains(e.Outcome.Err, "client: limit body_time (1s) reached") {
		t.Errorf("record %+v", e.Outcome)
	}
	r.awaitLoad("five counted", func(s limit.Status) bool { return s.Reached["body_time"] == 5 })

	c, prefix := r.raw(plain)
	c.Send(rawRequest("POST", prefix, "/steady", "Content-Length: 6144"))
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for range 6 { // longer in all than the limit
		<-tick.C
		c.Send(strings.Repeat("x", 1024))
	}
	if a := c.Answer("POST"); a.StatusCode != 200 || string(a.Body) != "6144" {
		t.Errorf("a steady body: %s %s", a.Status, a.Body)
	}
}

// A stream in both directions may take its time once it is answered.
func TestHeed_AnAnsweredExchangeMayGoOnSlowly(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		body, err := io.ReadAll(r.Body)
		got <- fmt.Sprint(string(body), err)
	}, func(c *Config) { c.Limits = limit.Limits{BodyTime: 200 * time.Millisecond} })
	in, out := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "POST", "https://site.test/both", in)
	go fmt.Fprint(out, "a")
	resp, err := r.h2("site.test").RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %+v", err, resp)
	}
	wait := time.NewTimer(600 * time.Millisecond)
	<-wait.C
	fmt.Fprint(out, "b")
	out.Close()
	if text := <-got; text != "ab<nil>" {
		t.Errorf("the site got %q", text)
	}
	if n := r.proxy.config.Load.Status().Reached["body_time"]; n != 0 {
		t.Errorf("counted %d times", n)
	}
}

// endless is a site whose answer has no end.
func endless(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/page" {
		return
	}
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// A client that stops reading is let go, and so is the site.
func TestHeed_AClientThatDoesNotReadIsCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, endless, func(c *Config) { c.Limits = limit.Limits{ReadTime: 300 * time.Millisecond} })
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		before := r.proxy.config.Load.Status().Reached["read_time"]
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/endless-"+string(m)))
		e := r.records.target(t, "/endless-"+string(m))
		if !e.Outcome.Truncated || !strings.HasPrefix(e.Outcome.Err, "client: ") {
			t.Errorf("record %+v", e.Outcome)
		}
		r.in(t).awaitLoad("counted", func(s limit.Status) bool { return s.Reached["read_time"] > before })
	})
	r.awaitLoad("none left", func(s limit.Status) bool { return s.Connections == 0 })
}

// A client of HTTP/2 can stop taking one stream and go on with the others.
func TestRFC9113_AStreamThatIsNotTakenIsReset(t *testing.T) {
	r := newRig(t, endless, func(c *Config) { c.Limits = limit.Limits{ReadTime: 300 * time.Millisecond} })
	h := r.frames()
	h.request(1, "/endless")
	h.window(0, 1<<20) // the connection's is open, the stream's is not
	for {
		if f, ok := h.next().(*http2.RSTStreamFrame); ok {
			if f.StreamID != 1 {
				t.Errorf("stream %d is reset", f.StreamID)
			}
			break
		}
	}
	h.request(3, "/page")
	for {
		if f, ok := h.next().(*http2.MetaHeadersFrame); ok && f.StreamID == 3 && f.PseudoValue("status") == "200" {
			break
		}
	}
	if n := r.proxy.config.Load.Status().Reached["read_time"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// An answer that is ready whole waits in net/http, behind the handler: then the
// connection goes.
func TestRFC9113_AnAnswerThatIsNotTakenDoesNotStayForEver(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{ReadTime: 300 * time.Millisecond} })
	h := r.framesTo("h1.test", http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) // HTTP/1.1 tells the end with the last octet
	for i := range uint32(5) {
		h.request(2*i+1, "/page")
	}
	for h.next() != nil {
	}
	r.awaitLoad("gone", func(s limit.Status) bool { return s.Connections == 0 && s.Requests == 0 && s.Reached["read_time"] > 0 })
}

// frames is HTTP/2 frame by frame.
type frames struct {
	t testing.TB
	*http2.Framer
	host string
}

func (r *rig) frames(settings ...http2.Setting) *frames {
	r.t.Helper()
	return r.framesTo("site.test", settings...)
}

func (r *rig) framesTo(host string, settings ...http2.Setting) *frames {
	r.t.Helper()
	c := testkit.Dial(r.t, r.addr).Connect(host + ":443").TLS(r.trusting(host, "h2"))
	c.Send(http2.ClientPreface)
	c.SetReadDeadline(time.Now().Add(testkit.Patience))
	f := http2.NewFramer(c.Conn, c.R)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := f.WriteSettings(settings...); err != nil {
		r.t.Fatal(err)
	}
	return &frames{r.t, f, host}
}

func (f *frames) request(stream uint32, path string) {
	f.t.Helper()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: f.host}, {Name: ":path", Value: path},
	} {
		_ = e.WriteField(field)
	}
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *frames) window(stream, octets uint32) {
	f.t.Helper()
	if err := f.WriteWindowUpdate(stream, octets); err != nil {
		f.t.Fatal(err)
	}
}

// next returns the next frame; nil when the connection has ended.
func (f *frames) next() http2.Frame {
	f.t.Helper()
	frame, err := f.ReadFrame()
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		f.t.Fatal("no frame and no end")
	}
	if err != nil {
		return nil
	}
	return frame
}
