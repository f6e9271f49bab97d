package proxy

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"heed/internal/audit"
	"heed/internal/testkit"
	"heed/proxy/limit"
	"heed/rules"
)

// rawH2 is an HTTP/2 connection on which a test may say what no client would.
type rawH2 struct {
	t testing.TB
	*http2.Framer
	next uint32 // stream
}

func (r *rig) rawH2() *rawH2 {
	r.t.Helper()
	c := testkit.Dial(r.t, r.addr).Connect("site.test:443").TLS(r.trusting("site.test", "h2"))
	c.Send(http2.ClientPreface)
	f := &rawH2{t: r.t, Framer: http2.NewFramer(c.Conn, c.R), next: 1}
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.sent(f.WriteSettings())
	return f
}

func (f *rawH2) sent(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// ask sends a request of these fields, name and value in turn, and returns the
// status of the answer; "reset" when the stream was reset.
func (f *rawH2) ask(fields ...string) string {
	f.t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		f.sent(encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	stream := f.next
	f.next += 2
	f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Next(maxFrame), EndStream: true, EndHeaders: block.Len() == 0}))
	for block.Len() > 0 {
		f.sent(f.WriteContinuation(stream, block.Len() <= maxFrame, block.Next(maxFrame)))
	}
	for status := ""; ; {
		frame, err := f.ReadFrame()
		if err != nil {
			f.t.Fatal(err)
		}
		if frame.Header().StreamID != stream && frame.Header().Type != http2.FrameGoAway {
			continue
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			status = frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return "reset"
		case *http2.GoAwayFrame:
			f.t.Fatal(frame.ErrCode)
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) { // of HEADERS too
			return status
		}
	}
}

// rest waits until the proxy knows that no stream is open: it answers a PING
// when it has done with all that it wrote before.
func (f *rawH2) rest() {
	f.t.Helper()
	f.sent(f.WritePing(false, [8]byte{7}))
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			f.t.Fatal(err)
		}
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
			return
		}
	}
}

// What is no request even to the reader of frames is reset and leads nowhere;
// other streams go on.
func TestRFC9113_AStreamThatIsNoRequestLeadsNowhere(t *testing.T) {
	r := newRig(t, hello)
	f := r.rawH2()
	good := []string{":method", "GET", ":scheme", "https", ":authority", "site.test", ":path"}
	for _, bad := range [][]string{{"/bad", "X-Upper", "1"}, {"/bad", ":x", "1"}, {"/bad", ":path", "/worse"}, {"/bad", "x", "a\x00b"}} {
		if got := f.ask(append(append([]string{}, good...), bad...)...); got != "reset" {
			t.Errorf("%q: %q", bad, got)
		}
		if got := f.ask(append(append([]string{}, good...), "/fine")...); got != "200" {
			t.Errorf("after %q: %q", bad, got)
		}
	}
	for _, seen := range r.site.reached() {
		if !strings.Contains(seen, "/fine") && !strings.Contains(seen, "/robots.txt") {
			t.Errorf("the site saw %s", seen)
		}
	}
}

// A request that is taken back at once is recorded as what it is, once.
func TestHeed_ARequestTakenBackAtOnceIsNotCalledMalformed(t *testing.T) {
	r := newRig(t, hello)
	f := r.rawH2()
	for range 50 {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for _, field := range []string{":method GET", ":scheme https", ":authority site.test", ":path /back"} {
			name, value, _ := strings.Cut(field, " ")
			f.sent(encoder.WriteField(hpack.HeaderField{Name: name, Value: value}))
		}
		f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.next, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}))
		f.sent(f.WriteRSTStream(f.next, http2.ErrCodeCancel))
		f.next += 2
		f.rest()
	}
	ids := map[string]bool{}
	r.records.await(t, "all of them", func(e *audit.Entry) bool { ids[e.ID.String()] = true; return len(ids) == 50 })
	if got := f.ask(":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", "/fine", "connection", "x"); got != "400" {
		t.Errorf("answered %q", got)
	}
	r.records.await(t, "the malformed one", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonMalformed })
	n := 0
	for _, e := range r.records.all() {
		if e.Decision.Reason == rules.ReasonMalformed {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d are called malformed, want the last alone", n)
	}
}

// What HTTP/2 forbids never reaches the site and is recorded, also after
// requests of the same connection that were in order.
func TestRFC9113_AMalformedStreamIsRecorded(t *testing.T) {
	t.Parallel()
	r, seen := newRig(t, hello), map[string]bool{}
	good := []string{":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", "/fine"}
	bad := func(fields ...string) []string { return append(append([]string{}, good[:6]...), fields...) }
	var many []string
	for range limit.DefaultHeaderBytes/1000 + 1 {
		many = append(many, "x", strings.Repeat("x", 1000))
	}
	for name, b := range map[string]struct {
		fields []string
		status string
	}{
		"a connection-specific field": {bad(":path", "/bad", "connection", "x"), "400"},
		"TE that is not trailers":     {bad(":path", "/bad", "te", "gzip"), "400"},
		"too many fields":             {bad(append([]string{":path", "/bad"}, many...)...), "431"},
		"no path":                     {bad(), "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
			f := r.rawH2()
			for range 2 { // at first, and after a request in order
				if got := f.ask(b.fields...); got != b.status {
					t.Errorf("answered %q, want %q", got, b.status)
				}
				e := r.records.await(t, "the malformed stream", func(e *audit.Entry) bool {
					return e.Decision.Reason == rules.ReasonMalformed && !seen[e.ID.String()]
				})
				if seen[e.ID.String()] = true; e.Decision.Verdict != rules.Refuse || e.Host != "site.test" || e.Judged != audit.NotJudged {
					t.Errorf("recorded as %+v", e)
				}
				if got := f.ask(good...); got != "200" {
					t.Errorf("after it: %q", got)
				}
				f.rest()
			}
		})
	}
	for _, e := range r.records.all() {
		if e.Decision.Verdict == rules.Refuse && !seen[e.ID.String()] {
			t.Errorf("one record too many: %+v", e)
		}
	}
	for _, seen := range r.site.reached() {
		if strings.Contains(seen, "/bad") {
			t.Errorf("the site saw %s", seen)
		}
	}
}
