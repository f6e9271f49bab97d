package proxy

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/rules"
)

// rawH2 is an HTTP/2 connection on which a test may say what no client would.
type rawH2 struct {
	t    testing.TB
	conn *testkit.Conn
	*http2.Framer
	next uint32                  // stream
	head *http2.MetaHeadersFrame // of the last answer
	body []byte
}

func (r *rig) rawH2() *rawH2 { return r.rawH2To("site.test") }

func (r *rig) rawH2To(host string, settings ...http2.Setting) *rawH2 {
	r.t.Helper()
	c := testkit.Dial(r.t, r.addr).Connect(host + ":443").TLS(r.trusting(host, "h2"))
	_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
	c.Send(http2.ClientPreface)
	f := &rawH2{t: r.t, conn: c, Framer: http2.NewFramer(c.Conn, c.R), next: 1}
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.sent(f.WriteSettings(settings...))
	return f
}

func (f *rawH2) sent(err error) {
	f.t.Helper()
	must.OK(f.t, err)
}

// block returns fields, name and value in turn, as a header block. It uses HPACK's static
// table alone.
func (f *rawH2) block(fields ...string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		f.sent(encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	return block.Bytes()
}

// ask sends a request of these fields, name and value in turn, and returns the
// status of the answer; "reset" when the stream was reset.
func (f *rawH2) ask(fields ...string) string {
	f.t.Helper()
	block := bytes.NewBuffer(f.block(fields...))
	stream := f.next
	f.next += 2
	f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Next(maxFrame), EndStream: true, EndHeaders: block.Len() == 0}))
	for block.Len() > 0 {
		f.sent(f.WriteContinuation(stream, block.Len() <= maxFrame, block.Next(maxFrame)))
	}
	return f.answer(stream)
}

// answer reads an answer and returns its status; "reset" when the stream was reset.
func (f *rawH2) answer(stream uint32) (status string) {
	f.t.Helper()
	for f.body = nil; ; {
		frame := must.Get(f.ReadFrame())(f.t)
		if frame.Header().StreamID != stream && frame.Header().Type != http2.FrameGoAway {
			continue
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			status, f.head = frame.PseudoValue("status"), frame
		case *http2.DataFrame:
			f.body = append(f.body, frame.Data()...)
		case *http2.RSTStreamFrame:
			return "reset"
		case *http2.GoAwayFrame:
			must.Need(f.t, frame.ErrCode == http2.ErrCodeNo, "%v", frame.ErrCode)
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) { // of HEADERS too
			return status
		}
	}
}

// field returns a field of the last answer.
func (f *rawH2) field(name string) string {
	for _, field := range f.head.RegularFields() {
		if field.Name == name {
			return field.Value
		}
	}
	return ""
}

// The stream of what is no request by RFC 9113 §8.1.1 is reset, and leads nowhere; other
// streams go on.
func TestRFC9113_AStreamThatIsNoRequestLeadsNowhere(t *testing.T) {
	r := newRig(t, hello)
	f := r.rawH2()
	good := []string{":method", "GET", ":scheme", "https", ":authority", "site.test", ":path"}
	for says, bad := range map[string][]string{
		"not a token in lower case": {"/bad", "X-Upper", "1"}, "not one of a request": {"/bad", ":x", "1"},
		"more than one field :path": {"/bad", ":path", "/worse"}, "field x contains a control": {"/bad", "x", "a\x00b"},
	} {
		must.Equal(t, f.ask(append(append([]string{}, good...), bad...)...), "reset", "%q", bad)
		e := r.records.await(t, says, func(e *audit.Entry) bool { return strings.Contains(e.Detail, says) })
		if e.Decision.Reason != rules.ReasonMalformed || e.Host != "site.test" || e.Target != "/bad" || e.Method != "GET" || e.Outcome.Status != 0 {
			t.Errorf("recorded as %+v", e)
		}
		must.Equal(t, f.ask(append(append([]string{}, good...), "/fine")...), "200", "after %q", bad)
	}
	for _, seen := range r.site.reached() {
		must.True(t, strings.Contains(seen, "/fine") || strings.Contains(seen, "/robots.txt"), "the site saw %s", seen)
	}
}

// A request that is taken back at once is recorded as what it is, once.
func TestHeed_ARequestTakenBackAtOnceIsNotCalledMalformed(t *testing.T) {
	r := newRig(t, hello)
	f := r.rawH2()
	for range 50 {
		f.open(f.next, true, fields("GET", "/back")...)
		f.sent(f.WriteRSTStream(f.next-2, http2.ErrCodeCancel))
	}
	ids := map[string]bool{}
	r.records.await(t, "all of them", func(e *audit.Entry) bool { ids[e.ID.String()] = true; return len(ids) == 50 })
	must.Equal(t, f.ask(":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", "/fine", "connection", "x"), "400", "answered")
	r.records.await(t, "the malformed one", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonMalformed })
	n := 0
	for _, e := range r.records.all() {
		if e.Decision.Reason == rules.ReasonMalformed {
			n++
		}
	}
	must.Equal(t, n, 1, "are called malformed")
}

// What HTTP/2 forbids never reaches the site. It is answered and recorded as other
// refusals are, also after requests of the same connection that were in order.
func TestRFC9113_AMalformedStreamHasAFullAnswerAndEntry(t *testing.T) {
	r, seen := newRig(t, hello), map[string]bool{}
	good := []string{":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", "/fine"}
	bad := func(fields ...string) []string {
		return append([]string{":method", "POST", ":scheme", "https", ":authority", "site.test", ":path", "/bad%zz?q", "user-agent", "ExampleBot/2"}, fields...)
	}
	var many []string
	for range limit.DefaultHeaderBytes/1000 + 1 {
		many = append(many, "x", strings.Repeat("x", 1000))
	}
	for says, b := range map[string]struct {
		fields []string
		status int
		reason rules.Reason
	}{
		"concerns a connection":      {bad("connection", "x"), 400, rules.ReasonMalformed},
		`only be \"trailers\"`:       {bad("te", "gzip"), 400, rules.ReasonMalformed},
		"limit header_bytes (131072": {bad(many...), 431, rules.ReasonLimit},
		"the :scheme of the request": {append([]string{":method", "POST", ":scheme", "ftp"}, bad()[4:]...), 400, rules.ReasonMalformed},
	} {
		t.Run(says, func(t *testing.T) {
			r := r.in(t)
			f := r.rawH2()
			for range 2 { // at first, and after a request in order
				status := f.ask(b.fields...)
				if status != strconv.Itoa(b.status) || !strings.Contains(string(f.body), says) || !strings.Contains(string(f.body), "urn:heed:"+string(b.reason)) ||
					!strings.Contains(f.field("proxy-status"), "http_request_error") || f.field("content-type") != "application/problem+json" {
					t.Errorf("answered %q %v %q", status, f.head, f.body)
				}
				e := r.records.await(t, says, func(e *audit.Entry) bool {
					return e.Decision.Reason == b.reason && strings.Contains(e.Detail, strings.ReplaceAll(says, `\`, "")) && !seen[e.ID.String()]
				})
				if seen[e.ID.String()] = true; e.Decision.Verdict != rules.Refuse || e.Host != "site.test" || e.Judged != audit.NotJudged || e.Method != "POST" ||
					e.Target != "/bad%zz?q" || e.UserAgent != "ExampleBot/2" || e.Outcome.Status != b.status || e.Agent == nil {
					t.Errorf("recorded as %+v", e)
				}
				must.Equal(t, f.ask(good...), "200", "after it")
			}
		})
	}
	for _, e := range r.records.all() {
		must.True(t, e.Decision.Verdict != rules.Refuse || seen[e.ID.String()], "one record too many: %+v", e)
	}
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "/bad", "the site saw")
}

// What ends an HTTP/2 connection is recorded with what could be read of its request.
func TestRFC9113_ABrokenHeaderBlockIsRecorded(t *testing.T) {
	r := newRig(t, hello)
	f := r.rawH2()
	f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: append(f.block(":method", "GET", ":path", "/broken", "user-agent", "ExampleBot/3"), 0x80), EndHeaders: true}))
	must.Equal(t, f.away(), http2.ErrCodeCompression)
	e := r.records.await(t, "the broken block", func(e *audit.Entry) bool { return e.Target == "/broken" })
	if e.Decision.Reason != rules.ReasonMalformed || e.Host != "site.test" || e.Method != "GET" || e.UserAgent != "ExampleBot/3" || !strings.Contains(e.Detail, "cannot be decoded") {
		t.Errorf("recorded as %+v", e)
	}
	r.awaitLoad("an end of the connection", func(s limit.Status) bool { return s.Connections == 0 })
	must.Equal(t, len(r.records.all()), 1, "entries")
}

// A client that has used up its refusals does not delay the end of its connection, with
// all streams of it: its record waits alone, and is complete when heed stops.
func TestHeed_TheRecordOfABrokenHeaderBlockWaitsAlone(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits = limit.Limits{RefusalsPerClient: 1} })
	f := r.rawH2()
	for range 120 { // the next refusal would be answered after more than twenty seconds
		r.proxy.gate.CountRefusal(netip.MustParseAddr("127.0.0.1"), limit.Target{}, r.proxy.limits(), time.Now())
	}
	f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: append(f.block(":method", "GET", ":path", "/broken"), 0x80), EndHeaders: true}))
	var err error
	for err == nil {
		_, err = f.ReadFrame()
	}
	must.Equal(t, len(r.records.all()), 0, "entries of a connection that ended after its record")
	r.proxy.endLasting() // as a stop does
	r.records.await(t, "the broken block", func(e *audit.Entry) bool { return e.Target == "/broken" })
}

// The octets of unfinished heads count over HTTP/2 as they do over HTTP/1, and a head that
// takes too long is answered.
func TestHeed_UnfinishedHeadsInHTTP2Count(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello, func(c *Config) { c.Limits.HeaderTime = 5 * time.Second })
	f := r.rawH2()
	block := f.block(":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", "/slow", "x", strings.Repeat("~", 10<<10))
	f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:9<<10], EndStream: true}))
	r.awaitLoad("an unfinished head", func(s limit.Status) bool { return s.UnfinishedHeads > 9<<10 && s.UnfinishedHeads < 30<<10 })
	got := f.answer(1)
	must.True(t, got == "408" && strings.Contains(string(f.body), "limit header_time"), "%q %q", got, f.body)
	s := r.proxy.config.Load.Status()
	must.True(t, s.UnfinishedHeads == 0 && s.Reached["header_time"] == 1, "%+v", s)
	e := r.records.target(t, "/slow")
	must.True(t, e.Decision.Reason == rules.ReasonLimit && e.Outcome.Status == 408 && e.Method == "GET", "recorded as %+v", e)
	r.awaitLoad("an end of the connection", func(s limit.Status) bool { return s.Connections == 0 })
}

// All unfinished heads together are bounded, whatever the protocol.
func TestHeed_UnfinishedHeadsInHTTP2AreBounded(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits.HeadsSize = 40 << 10 })
	for n := range 2 {
		f := r.rawH2()
		block := f.block(":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", "/part", "x", strings.Repeat("~", 12<<10), "y", strings.Repeat("~", 10<<10))
		f.sent(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:13<<10], EndStream: true}))
		if n == 0 {
			r.awaitLoad("an unfinished head", func(s limit.Status) bool { return s.UnfinishedHeads > 13<<10 })
		} else if got := f.answer(1); got != "429" || !strings.Contains(string(f.body), "unfinished_heads_per_client") {
			t.Errorf("%q %q", got, f.body)
		}
	}
	e := r.records.target(t, "/part")
	must.True(t, e.Decision.Reason == rules.ReasonLimit && e.Outcome.Status == 429, "recorded as %+v", e)
}

// Credentials in an authority or a target are not recorded, whatever else is wrong.
func TestHeed_CredentialsOverHTTP2AreNotRecorded(t *testing.T) {
	r := newRig(t, hello)
	for _, fields := range [][]string{
		{":method", "GET", ":scheme", "https", ":authority", "bob:secret@site.test", ":path", "/", "user-agent", "A"},
		{":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", "https://bob:secret@site.test/", "user-agent", "B"},
		{":method", "G T", ":scheme", "https", ":authority", "site.test", ":path", "https://bob:secret@site.test/", "user-agent", "C"},
	} {
		before := len(r.records.all())
		must.True(t, r.rawH2().ask(fields...) != "200", "%q: 200", fields)
		e := r.records.after(t, before)
		must.Lack(t, e.Method+e.Raw+e.Target+e.Host+e.Detail, "secret", "%s: recorded with", e.UserAgent)
	}
}
