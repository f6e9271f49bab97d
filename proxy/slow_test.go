package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
)

// A client whose body does not come is answered.
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
		must.True(t, err == nil && resp.StatusCode == 408, "%v, %+v", err, resp)
	})
	e := r.records.target(t, "/late")
	must.Contain(t, e.Outcome.Err, "client: limit body_time (1s) reached", "record %+v", e.Outcome)
	r.awaitLoad("five counted", func(s limit.Status) bool { return s.Reached["body_time"] == 5 })
}

// slowBodyOf is a body that in brings, for which the client has a second.
func slowBodyOf(in io.ReadCloser) *slowBody {
	x := &delivery{}
	x.req.settings = &Settings{Limits: limit.Limits{BodyTime: time.Second}}
	return &slowBody{server: in, of: x, left: time.Second}
}

// A client that sends a kilobyte now and then is not cut off.
func TestHeed_ASteadyBodyMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		go func() {
			for range 60 {
				testkit.Delay(990 * time.Millisecond)
				fmt.Fprint(out, strings.Repeat("x", leastProgress))
			}
			out.Close()
		}()
		n, err := io.Copy(io.Discard, slowBodyOf(in))
		must.True(t, n == 60*leastProgress && err == nil, "%d octets, %v", n, err)
	})
}

// A stream in both directions may take its time once it is answered.
func TestHeed_AnAnsweredExchangeMayGoOnSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		body := slowBodyOf(in)
		go func() {
			testkit.Delay(time.Second / 2)
			w := &body.of.writer
			w.interim.Lock()
			w.final = true
			w.interim.Unlock()
			testkit.Delay(time.Hour)
			fmt.Fprint(out, "b")
			out.Close()
		}()
		rest, err := io.ReadAll(body)
		must.True(t, string(rest) == "b" && err == nil, "%q, %v", rest, err)
	})
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
		must.True(t, e.Outcome.Truncated && strings.HasPrefix(e.Outcome.Err, "client: "), "record %+v", e.Outcome)
		r.in(t).awaitLoad("counted", func(s limit.Status) bool { return s.Reached["read_time"] > before })
	})
	r.awaitLoad("none left", func(s limit.Status) bool { return s.Connections == 0 })
}

// A client of HTTP/2 can stop taking one stream and go on with the others.
func TestRFC9113_AStreamThatIsNotTakenIsReset(t *testing.T) {
	r := newRig(t, endless, func(c *Config) { c.Limits = limit.Limits{ReadTime: 300 * time.Millisecond} })
	h := r.rawH2()
	h.open(1, true, fields("GET", "/endless")...)
	h.sent(h.WriteWindowUpdate(0, 1<<20)) // the connection's is open, the stream's is not
	for {
		if f, ok := h.frame().(*http2.RSTStreamFrame); ok {
			must.True(t, f.StreamID == 1, "stream %d is reset", f.StreamID)
			break
		}
	}
	h.open(3, true, fields("GET", "/page")...)
	must.Equal(t, h.answer(3), "200", "another stream")
	r.awaitLoad("the reset is counted once", func(s limit.Status) bool { return s.Reached["read_time"] == 1 })
}

// An answer that is ready whole waits in net/http, behind the handler: then the
// connection goes.
func TestRFC9113_AnAnswerThatIsNotTakenDoesNotStayForEver(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{ReadTime: 300 * time.Millisecond} })
	h := r.rawH2To("h1.test", http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) // in HTTP/1.1 the end comes with the last octet
	for range 5 {
		h.open(h.next, true, ":method", "GET", ":scheme", "https", ":authority", "h1.test", ":path", "/page")
	}
	for h.frame() != nil {
	}
	r.awaitLoad("gone", func(s limit.Status) bool { return s.Connections == 0 && s.Requests == 0 && s.Reached["read_time"] > 0 })
}

// frame returns the next frame; nil when the connection has ended.
func (f *rawH2) frame() http2.Frame {
	f.t.Helper()
	frame, err := f.ReadFrame()
	ne, ok := err.(net.Error)
	must.Need(f.t, !ok || !ne.Timeout(), "no frame and no end")
	if err != nil {
		return nil
	}
	return frame
}
