package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/rules"
)

// fields returns the fields of a request for a target of the rig's site, and others.
func fields(method, target string, others ...string) []string {
	return append([]string{":method", method, ":scheme", "https", ":authority", "site.test", ":path", target, "user-agent", "ExampleBot/4"}, others...)
}

// open sends the head of a request on a stream, on which more follows.
func (f *rawH2) open(stream uint32, ended bool, fields ...string) {
	f.t.Helper()
	f.next = stream + 2
	f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.block(fields...), EndStream: ended, EndHeaders: true}))
}

// away reads until the server ends the connection, and returns why.
func (f *rawH2) away() http2.ErrCode {
	f.t.Helper()
	for {
		frame := must.Get(f.ReadFrame())(f.t)
		if away, ok := frame.(*http2.GoAwayFrame); ok {
			return away.ErrCode
		}
	}
}

// heldRecorder is a Recorder in which the decisions on some targets wait until free is
// closed.
type heldRecorder struct {
	*records
	held   string // what their targets begin with
	inside atomic.Int64
	free   chan struct{}
}

func (h *heldRecorder) Decided(e *audit.Entry) error {
	if strings.HasPrefix(e.Target, h.held) {
		h.inside.Add(1)
		<-h.free
	}
	return h.records.Decided(e)
}

// holding returns a change that gives a rig a heldRecorder, and others.
func holding(h *heldRecorder, l limit.Limits) func(*Config) {
	return func(c *Config) {
		h.records, h.free = c.Recorder.(*records), make(chan struct{})
		c.Recorder, c.Limits = h, l
	}
}

// A client that goes on to open streams above the limit loses its connection. No more of
// their records wait than it may have requests; one row counts the others.
func TestHeed_AFloodOfStreamsCostsItsConnectionAndFewRecords(t *testing.T) {
	const streams, requests, lost = 2, 8, 1001
	h, wait := &heldRecorder{held: "/beyond"}, make(chan bool)
	r := newRig(t, func(http.ResponseWriter, *http.Request) { <-wait }, holding(h, limit.Limits{Streams: streams, RequestsPerClient: requests}))
	f := r.rawH2()
	for stream := uint32(1); stream < 2*streams; stream += 2 {
		f.open(stream, true, fields("GET", "/slow")...)
	}
	r.awaitLoad("the requests within the limit", func(s limit.Status) bool { return s.Requests == streams })
	for range lost {
		f.open(f.next, true, fields("GET", "/beyond")...)
	}
	must.Equal(t, f.away(), http2.ErrCodeProtocol, "ended with")
	close(wait)
	all := fmt.Sprintf("limit requests_per_client (%d) reached; %d requests of the connection got no answer", requests, lost-(requests-streams))
	e := r.records.await(t, all, func(e *audit.Entry) bool { return e.Detail == all })
	must.True(t, e.Decision.Reason == rules.ReasonLimit && e.Host == "site.test", "recorded as %+v", e)
	must.Equal(t, h.inside.Load(), requests-streams, "records wait")
	close(h.free)
	r.awaitLoad("the end of the records", func(s limit.Status) bool { return s.Requests == 0 })
}

// A client that takes back its requests loses its connection, with one row for that, unless
// others of them are answered.
func TestHeed_ManyRequestsTakenBackCostTheConnection(t *testing.T) {
	const streams, back = 2, 4
	wait := make(chan bool)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-wait
		}
	}, func(c *Config) { c.Limits.Streams = streams })
	defer close(wait)
	f := r.rawH2()
	takeBack := func() {
		f.open(f.next, true, fields("GET", "/slow")...)
		f.sent(f.WriteRSTStream(f.next-2, http2.ErrCodeCancel))
	}
	for range 3 {
		for range back {
			takeBack()
		}
		for range back {
			must.Is(t, f.ask(fields("GET", "/fine")...), "200")
		}
	}
	for range back + 1 {
		takeBack()
	}
	must.Equal(t, f.away(), http2.ErrCodeProtocol, "ended with")
	says := fmt.Sprintf("taken back more than %d requests", back)
	e := r.records.await(t, says, func(e *audit.Entry) bool { return strings.Contains(e.Detail, says) })
	must.True(t, e.Decision.Reason == rules.ReasonMalformed && e.Host == "site.test", "recorded as %+v", e)
}

// A client that has thousands of requests at a time does not delay another one: few of them
// are with the recorder, few of those above the limit wait for it, and one row counts the
// others.
func TestHeed_RequestsAboveTheLimitDelayNoOtherClient(t *testing.T) {
	const requests, stopped, beyond = 2, 64, 30
	h := &heldRecorder{held: "/flood"}
	r := newRig(t, hello, holding(h, limit.Limits{RequestsPerClient: requests}))
	f := r.rawH2()
	for range requests + stopped + beyond {
		f.open(f.next, true, fields("GET", "/flood/x")...)
	}
	for range beyond {
		for reset := false; !reset; {
			frame, err := f.ReadFrame()
			f.sent(err)
			_, reset = frame.(*http2.RSTStreamFrame)
		}
	}
	r.awaitLoad("a request of the flood", func(limit.Status) bool { return h.inside.Load() == stopped })
	other := r.from("127.0.0.2")
	other.Send(get("http://site.test", "/private"))
	must.Status(t, other.Answer("GET").Response, 403, "the other client")
	must.Equal(t, h.inside.Load(), stopped, "decisions are with the recorder")
	close(h.free)
	f.conn.Close()
	all := fmt.Sprintf("; %d requests of the connection got no answer", beyond)
	r.records.await(t, all, func(e *audit.Entry) bool { return strings.HasSuffix(e.Detail, all) })
}

// A client that opens more streams than it may loses those beyond, each with an entry, and
// no other. With fewer it goes on.
func TestRFC9113_AStreamAboveTheLimitIsRecorded(t *testing.T) {
	wait := make(chan bool)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/slow") {
			<-wait
		}
	}, func(c *Config) { c.Limits.Streams = 2 })
	f := r.rawH2()
	f.open(1, true, fields("GET", "/slow/1")...)
	f.open(3, false, fields("POST", "/slow/3")...) // half of it is open until the client ends it
	for _, target := range []string{"/beyond/1", "/beyond/2"} {
		must.Equal(t, f.ask(fields("GET", target)...), "reset", target)
		e := r.records.target(t, target)
		if e.Decision.Reason != rules.ReasonLimit || e.Host != "site.test" || e.Method != "GET" || e.UserAgent != "ExampleBot/4" ||
			!strings.Contains(e.Detail, "limit streams (2)") || e.Outcome.Status != 0 {
			t.Errorf("recorded as %+v", e)
		}
	}
	close(wait)
	must.Equal(t, f.answer(1), "200", "the first")
	for range 5 { // one of two is open
		must.Equal(t, f.ask(fields("GET", "/fine")...), "200", "after it")
	}
	must.Equal(t, r.proxy.config.Load.Status().Reached["streams"], 2, "times reached")
	testkit.Until(t, "each of nine requests has its entry", func() bool { return len(r.records.all()) == 9 })
}

// A request on a stream that the client has passed over ends the connection, and is
// recorded.
func TestRFC9113_ARequestOnASkippedStreamIsRecorded(t *testing.T) {
	r := newRig(t, hello)
	f := r.rawH2()
	f.next = 5
	must.Equal(t, f.ask(fields("GET", "/fine")...), "200")
	f.open(3, true, fields("GET", "/skipped")...)
	must.Equal(t, f.away(), http2.ErrCodeProtocol)
	e := r.records.target(t, "/skipped")
	if e.Decision.Reason != rules.ReasonMalformed || e.Method != "GET" || e.UserAgent != "ExampleBot/4" || !strings.Contains(e.Detail, "passed over") {
		t.Errorf("recorded as %+v", e)
	}
}

// Trailers that cannot be decoded end the connection. They are no second request.
func TestRFC9113_BrokenTrailersAreNoRequest(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	f := r.rawH2()
	f.open(1, false, fields("POST", "/upload", "trailer", "t")...)
	f.sent(f.WriteData(1, false, []byte("content")))
	f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: append(f.block("t", "1"), 0x80), EndStream: true, EndHeaders: true}))
	must.Equal(t, f.away(), http2.ErrCodeCompression)
	e := r.records.await(t, "the end of the upload", func(e *audit.Entry) bool { return e.Target == "/upload" && e.Outcome.Err != "" })
	must.Equal(t, e.Method, "POST", "recorded as %+v", e)
	must.Equal(t, len(r.records.all()), 1, "entries")
}

// The trailers that a request announces, whatever their names, and whether they come or
// not, keep no answer back.
func TestHeed_AnnouncedTrailersKeepNoAnswerBack(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for _, names := range []string{"t", "t, host", "host", "content-length, t"} {
		f := r.rawH2()
		must.Equal(t, f.ask(fields("GET", "/empty", "trailer", names)...), "200", "%q without content", names)
		f.open(f.next, false, fields("POST", "/upload", "trailer", names)...)
		f.sent(f.WriteData(f.next-2, true, []byte("content")))
		must.Equal(t, f.answer(f.next-2), "200", "%q with content", names)
		for _, m := range rawModes {
			c, prefix := r.raw(m)
			c.Send("POST " + prefix + "/chunked HTTP/1.1\r\nHost: site.test\r\nTrailer: " + names + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
			got := c.Answer("POST").StatusCode
			must.True(t, got == 200 || strings.Contains(names, "content-length"), "%q in %s: %d", names, m, got)
		}
	}
}

// A head that is not completed in time ends its connection when the other answers of it
// have come, as fast as the client reads them.
func TestHeed_AnUnfinishedHeadLeavesOtherDownloadsAlone(t *testing.T) {
	const size = 1 << 20
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, size)) },
		func(c *Config) { c.Limits.HeaderTime = time.Second })
	f := r.rawH2()
	f.open(1, true, fields("GET", "/large")...)
	for begun := false; !begun; { // before the time of the late one begins
		frame, err := f.ReadFrame()
		f.sent(err)
		_, begun = frame.(*http2.MetaHeadersFrame)
	}
	f.sent(f.WriteWindowUpdate(0, 16<<10)) // for what answers the late one
	head := f.block(fields("GET", "/late", "x", strings.Repeat("~", 2000))...)
	f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: head[:1000]}))
	must.Is(t, f.answer(3), "408")
	f.sent(f.WriteContinuation(3, true, head[1000:]))
	f.sent(f.WriteData(3, false, []byte("content of the request that was answered")))
	f.open(5, true, fields("GET", "/after")...) // of which the client has heard that it is not taken
	f.sent(f.WriteWindowUpdate(0, 2*size))
	f.sent(f.WriteWindowUpdate(1, 2*size))
	must.Equal(t, f.answer(1), "") // its head has come before
	e := r.records.await(t, "the end of the download", func(e *audit.Entry) bool { return e.Target == "/large" && e.Outcome.BytesOut > 0 })
	must.True(t, e.Outcome.BytesOut == size && !e.Outcome.Truncated && e.Outcome.Err == "", "recorded as %+v", e.Outcome)
	e = r.records.target(t, "/late")
	must.True(t, e.Outcome.Status == 408, "recorded as %+v", e)
}
