package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// odd2 is an answer of a site over HTTP/2: its frames, and what the client of heed gets for
// it over HTTP/1 and over HTTP/2; the same where h2 is empty. A frame that begins with "D:"
// is DATA, every other one a header block, its fields separated by "; ". "." at the end ends
// the stream there, "RST" resets it.
var odd2Answers = []struct{ name, frames, h1, h2 string }{
	{"an answer", ":status=200; content-length=5|D:hello.", "200 hello", ""},
	{"no length", ":status=200|D:hello.", "200 hello", ""},
	{"no content", ":status=200.", "200 ", ""},
	{"an end without an octet", ":status=200; content-length=5|D:hello|D:.", "200 hello", ""},

	// The status (RFC 9110 §15).
	{"status 099", ":status=099|D:hello.", "502 http_protocol_error", ""},
	{"status 99", ":status=99|D:hello.", "502 http_protocol_error", ""},
	{"status 0", ":status=0|D:hello.", "502 http_protocol_error", ""},
	{"status -20", ":status=-20|D:hello.", "502 http_protocol_error", ""},
	{"status +200", ":status=+200|D:hello.", "502 http_protocol_error", ""},
	{"status 0200", ":status=0200|D:hello.", "502 http_protocol_error", ""},
	{"status 2000", ":status=2000|D:hello.", "502 http_protocol_error", ""},
	{"status 99999999999999999999", ":status=99999999999999999999|D:hello.", "502 http_protocol_error", ""},
	{"status OK", ":status=OK|D:hello.", "502 http_protocol_error", ""},
	{"an empty status", ":status=|D:hello.", "502 http_protocol_error", ""},
	{"no status", "x-odd=a|D:hello.", "502 http_protocol_error", ""},
	{"two statuses", ":status=200; :status=404|D:hello.", "502 http_protocol_error", ""},
	{"a status after a field", "x-odd=a; :status=200|D:hello.", "502 http_protocol_error", ""},
	{"a field of requests", ":status=200; :path=/|D:hello.", "502 http_protocol_error", ""},
	{"status 600", ":status=600|D:hello.", "600 hello", ""},
	{"status 999", ":status=999; content-length=5|D:hello.", "999 hello", ""},
	{"status 407", ":status=407|D:hello.", "502 http_protocol_error", ""},

	// Content-Length (RFC 9110 §8.6, RFC 9113 §8.1.1).
	{"three for five", ":status=200; content-length=3|D:hello.", "200 he, cut off", "200 he, reset"},
	{"three for two and three", ":status=200; content-length=3|D:he|D:llo.", "200 he, cut off", "200 he, reset"},
	{"nine for five", ":status=200; content-length=9|D:hello.", "200 hello, cut off", "200 hello, reset"},
	{"nine and no content", ":status=200; content-length=9.", "200 , cut off", "200 , reset"},
	{"zero for five", ":status=200; content-length=0|D:hello.", "502 http_protocol_error", ""},
	{"the same length twice", ":status=200; content-length=5; content-length=5|D:hello.", "200 hello", ""},
	{"the same length in a list", ":status=200; content-length=5, 5|D:hello.", "200 hello", ""},
	{"the same length twice, and another content", ":status=200; content-length=3; content-length=3|D:hello.", "200 he, cut off", "200 he, reset"},
	{"two lengths", ":status=200; content-length=5; content-length=6|D:hello.", "502 http_protocol_error", ""},
	{"a negative length", ":status=200; content-length=-5|D:hello.", "502 http_protocol_error", ""},
	{"a length with a plus", ":status=200; content-length=+5|D:hello.", "502 http_protocol_error", ""},
	{"an empty length", ":status=200; content-length=|D:hello.", "502 http_protocol_error", ""},
	{"a length that is too large", ":status=200; content-length=99999999999999999999|D:hello.", "502 http_protocol_error", ""},

	// Statuses without content, and 1xx (RFC 9110 §15.2, §15.3.5).
	{"204 with a length", ":status=204; content-length=7.", "204 ", ""},
	{"204 with content", ":status=204|D:hello.", "204 ", ""},
	{"204 with a length and content", ":status=204; content-length=5|D:hello.", "204 ", ""},
	{"304 with a length", ":status=304; content-length=5.", "304 ", ""},
	{"304 with content", ":status=304; content-length=5|D:hello.", "304 ", ""},
	{"205 with content", ":status=205; content-length=5|D:hello.", "205 hello", ""},
	{"101", ":status=101; connection=upgrade; upgrade=websocket|D:hello.", "502 http_upgrade_failed", ""},
	{"101 before an answer", ":status=101|:status=200|D:hello.", "502 http_upgrade_failed", ""},
	{"103", ":status=103; x-odd=a|:status=200|D:hello.", "103 X-Odd=a 200 hello", ""},
	{"103 with a length", ":status=103; content-length=5|:status=200|D:hello.", "103 200 hello", ""},
	{"103 with content", ":status=103|D:hello|:status=200.", "103 502 http_protocol_error", ""},
	{"103 and an end", ":status=103.", "502 http_protocol_error", ""},

	// Fields of the framing, names and values (RFC 9113 §8.2).
	{"Connection", ":status=200; connection=x-odd; x-odd=a|D:hello.", "200 hello", ""},
	{"Transfer-Encoding", ":status=200; transfer-encoding=chunked|D:hello.", "200 hello", ""},
	{"Upgrade", ":status=426; upgrade=websocket; connection=upgrade|D:hello.", "426 hello", ""},
	{"a name in capitals", ":status=200; X-Odd=a|D:hello.", "502 http_protocol_error", ""},
	{"a blank in a name", ":status=200; x odd=a|D:hello.", "502 http_protocol_error", ""},
	{"a control character in a value", ":status=200; x-odd=a\x01b|D:hello.", "502 http_protocol_error", ""},
	{"a line end in a value", ":status=200; x-odd=a\r\nx: b|D:hello.", "502 http_protocol_error", ""},
	{"heed's own Proxy-Status", ":status=200; proxy-status=rig-7f3a; x-odd=a|D:hello.", "200 X-Odd=a hello", ""},

	// Trailers (RFC 9110 §6.5).
	{"trailers", ":status=200; trailer=x-odd|D:hello|x-odd=a.", "200 (X-Odd) hello", ""},
	{"trailers that were not announced", ":status=200|D:hello|x-odd=a.", "200 (X-Odd) hello", ""},
	{"a length as a trailer", ":status=200|D:hello|content-length=9.", "200 hello", ""},
	{"a status as a trailer", ":status=200|D:hello|:status=404.", "200 hello, cut off", "200 hello, reset"},
	{"trailers before the length is complete", ":status=200; content-length=9|D:hello|x-odd=a.", "200 hello, cut off", "200 hello, reset"},

	{"a reset after the head", ":status=200; content-length=5|RST", "200 , cut off", "200 , reset"},
	{"a reset after the content", ":status=200; content-length=5|D:hello|RST", "200 hell, cut off", "200 hell, reset"},
}

// sendFrames answers a request with frames; see odd2Answers. It returns nil.
func sendFrames(f *http2.Framer, stream uint32, frames string) error {
	for frame := range strings.SplitSeq(frames, "|") {
		text, ended := strings.CutSuffix(frame, ".")
		data, isData := strings.CutPrefix(text, "D:")
		switch {
		case frame == "RST":
			_ = f.WriteRSTStream(stream, http2.ErrCodeInternal)
		case isData:
			_ = f.WriteData(stream, ended, []byte(data))
		default:
			var block bytes.Buffer
			e := hpack.NewEncoder(&block)
			for field := range strings.SplitSeq(text, "; ") {
				name, value, _ := strings.Cut(field, "=")
				_ = e.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: true})
			}
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: ended})
		}
	}
	return nil
}

// rawH2Site has answer speak for each request at https://HOST over HTTP/2, until it returns
// an error; robots.txt is answered for it. net/http serves a client that does not choose HTTP/2.
func (s *site) rawH2Site(t testing.TB, host string, answer func(f *http2.Framer, stream uint32, method, path string) error) {
	speak := func(_ *http.Server, c *tls.Conn, _ http.Handler) {
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			head, ok := frame.(*http2.MetaHeadersFrame)
			switch {
			case ok && head.PseudoValue("path") == "/robots.txt":
				sendFrames(f, head.StreamID, ":status=200|D:User-agent: *\n.")
			case ok && answer(f, head.StreamID, head.PseudoValue("method"), head.PseudoValue("path")) != nil:
				return
			}
		}
	}
	server := &http.Server{TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": speak}}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.note(r); r.URL.Path != "/robots.txt" {
			fmt.Fprint(w, "over HTTP/1.1")
		}
	})
	s.serve(t, host, server)
}

// status returns what is compared of a refusal: its status and error type.
func refusalType(got string) string {
	before, _, _ := strings.Cut(got, ":")
	return before
}

// shown returns what a client gets over HTTP/2, as the function shown does.
func (f *rawH2) shown(stream uint32) string {
	var b strings.Builder
	refused, length, got, status := "", "", 0, ""
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return b.String() + err.Error()
		}
		if frame.Header().StreamID != stream {
			continue
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if s := frame.PseudoValue("status"); s != "" {
				fmt.Fprintf(&b, "%s ", s)
				status, length = s, ""
			}
			for _, h := range frame.RegularFields() {
				switch {
				case h.Name == "x-odd" && got > 0:
					b.WriteString("(X-Odd) ")
				case h.Name == "x-odd":
					fmt.Fprintf(&b, "X-Odd=%s ", h.Value)
				case h.Name == "content-length":
					length = h.Value
				case h.Name == "proxy-status":
					_, refused, _ = strings.Cut(h.Value, "error=")
				}
			}
			if length != "" && (status[0] == '1' || status == "204" || status == "304") {
				return b.String() + "a length without content: no nghttp2 client takes it"
			}
		case *http2.DataFrame:
			got += len(frame.Data())
			if refused == "" {
				b.Write(frame.Data())
			}
		case *http2.RSTStreamFrame:
			return b.String() + ", reset"
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) && frame.Header().Type <= http2.FrameHeaders {
			if length != "" && length != strconv.Itoa(got) {
				return b.String() + ", not of its length"
			}
			kind, _, _ := strings.Cut(refused, ";")
			return b.String() + kind
		}
	}
}

// What a site answers over HTTP/2 passes the same checks as over HTTP/1, and leaves heed as
// an answer that clients of both can take.
func TestOddAnswersOverHTTP2(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	s.rawH2Site(t, "odd.test", func(f *http2.Framer, stream uint32, _, path string) error {
		n, _ := strconv.Atoi(path[1:])
		return sendFrames(f, stream, odd2Answers[n].frames)
	})
	r := newRigBefore(t, s)
	for i, odd := range odd2Answers {
		t.Run(odd.name, func(t *testing.T) {
			c, prefix := r.in(t).rawTo(mitmH1, "odd.test")
			c.Send(requestTo("odd.test", "GET", prefix, fmt.Sprint("/", i), "Accept: text/plain", "TE: trailers"))
			must.Equal(t, refusalType(shown(c)), odd.h1, "over HTTP/1")
			want := odd.h2
			if want == "" {
				want = odd.h1
			}
			f := r.in(t).rawH2To("odd.test")
			f.open(1, true, ":method", "GET", ":scheme", "https", ":authority", "odd.test", ":path", fmt.Sprint("/", i))
			// Trailers come before the content in shown, and after it here.
			got := f.shown(1)
			must.True(t, got == want || sorted(got) == sorted(want), "over HTTP/2 %q, want %q", got, want)
		})
	}
}

// Octets beyond a Content-Length that come when the client has the others, and heed waits for
// them no more, end its stream with an error, or its connection over HTTP/1, and are recorded.
func TestRFC9113_ALongerAnswerIsNoWholeOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	read := make(chan bool)
	var writing sync.Mutex // held to write with the framer
	s.rawH2Site(t, "odd.test", func(f *http2.Framer, stream uint32, _, _ string) error {
		writing.Lock()
		defer writing.Unlock()
		go func() {
			<-read
			writing.Lock()
			defer writing.Unlock()
			_ = sendFrames(f, stream, "D: again.")
		}()
		return sendFrames(f, stream, ":status=200; content-length=5|D:hello")
	})
	r := newRigBefore(t, s)
	c, prefix := r.in(t).rawTo(mitmH1, "odd.test")
	c.Send(requestTo("odd.test", "GET", prefix, "/1"))
	must.Equal(t, shown(c), "200 hello", "over HTTP/1")
	read <- true
	f := r.in(t).rawH2To("odd.test")
	f.open(1, true, ":method", "GET", ":scheme", "https", ":authority", "odd.test", ":path", "/2")
	for got := 0; got < 5; {
		frame, err := f.ReadFrame()
		f.sent(err)
		if data, is := frame.(*http2.DataFrame); is {
			got += len(data.Data())
		}
	}
	read <- true
	must.Equal(t, f.shown(1), ", reset", "over HTTP/2")
	for _, target := range []string{"/1", "/2"} {
		r.records.await(t, target, func(e *audit.Entry) bool {
			return e.Target == target && e.Outcome.Truncated && strings.Contains(e.Outcome.Err, "longer")
		})
	}
}

func sorted(text string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Fields(strings.ReplaceAll(text, "(", " (")))), " ")
}

// curl takes over HTTP/1 and HTTP/2 what a site answers over either without content.
func TestCurlTakesAnswersWithoutContent(t *testing.T) {
	t.Parallel()
	curl := testkit.Program(t, "curl")
	s := newSite(t, hello)
	s.rawH2Site(t, "odd.test", func(f *http2.Framer, stream uint32, method, path string) error {
		if method == http.MethodHead {
			return sendFrames(f, stream, ":status=200; content-length=5.")
		}
		return sendFrames(f, stream, ":status="+path[1:]+"; content-length=7.")
	})
	s.script(t, "odd.test:80", func(c net.Conn, r *http.Request) {
		fmt.Fprintf(c, "HTTP/1.1 %s Odd\r\nContent-Length: 7\r\nConnection: close\r\n\r\n", r.URL.Path[1:])
	})
	r := newRigBefore(t, s)
	ca := testkit.Write(t, filepath.Join(t.TempDir(), "ca.pem"), string(r.caPEM))
	for _, args := range [][]string{{"--http1.1"}, {"--http2"}, {"--http1.1", "-I"}, {"--http2", "-I"}} {
		for _, url := range []string{"https://odd.test/204", "https://odd.test/304"} {
			run := exec.Command(curl, append(args, "-sS", "-m", "20", "-x", "http://"+r.addr, "--cacert", ca, "-o", os.DevNull, "-w", "%{http_code}", url)...)
			want := url[len(url)-3:]
			if slices.Contains(args, "-I") {
				want = "200"
			}
			out, err := run.CombinedOutput()
			must.True(t, err == nil && string(out) == want, "curl %v %s: %s, %v", args, url, out, err)
		}
	}
}

// A site that requires HTTP/1.1 gets the request over HTTP/1.1, in whatever frame it says
// so, and from then on at once; one that has looked at a request that may not be repeated
// does not get it twice.
func TestRFC9113_ASiteThatRequiresHTTP1GetsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says   func(f *http2.Framer, stream uint32) error
		method string
		status int
		later  int // requests over HTTP/2 of three
	}{
		"RST_STREAM":          {func(f *http2.Framer, id uint32) error { return f.WriteRSTStream(id, http2.ErrCodeHTTP11Required) }, "POST", 200, 1},
		"GOAWAY":              {func(f *http2.Framer, id uint32) error { return f.WriteGoAway(id-1, http2.ErrCodeHTTP11Required, nil) }, "POST", 200, 2},
		"GOAWAY and an end":   {goAwayAndEnd, "GET", 200, 1},
		"GOAWAY after a POST": {goAwayAndEnd, "POST", 502, 1},
		"421":                 {func(f *http2.Framer, id uint32) error { return sendFrames(f, id, ":status=421|D:another.") }, "GET", 200, 3},
		"421 to a POST":       {func(f *http2.Framer, id uint32) error { return sendFrames(f, id, ":status=421|D:another.") }, "POST", 421, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, hello)
			asked := make(chan string, 100)
			s.rawH2Site(t, "old.test", func(f *http2.Framer, stream uint32, _, path string) error {
				asked <- path
				return c.says(f, stream)
			})
			r := newRigBefore(t, s)
			for n := range 3 {
				got := r.in(t).ask(mitmH1, question{method: c.method, host: "old.test", path: fmt.Sprint("/page", n)})
				want := c.status
				if want == 502 && n > 0 {
					want = 200 // it is known
				}
				if got.StatusCode != want || want == 200 && got.body != "over HTTP/1.1" {
					t.Errorf("%d: %s %q", n, got.Status, got.body)
				}
			}
			must.Equal(t, len(asked), c.later, "requests over HTTP/2")
		})
	}
}

// goAwayAndEnd ends the connection after a request that the site says to have processed.
func goAwayAndEnd(f *http2.Framer, stream uint32) error {
	_ = f.WriteGoAway(stream, http2.ErrCodeHTTP11Required, []byte("debug"))
	return io.EOF
}

// The same malformed answer over HTTP/1 and HTTP/2 has the same result for a client, unless
// one of the protocols has another rule for it.
func TestOddAnswers_BothProtocolsAgree(t *testing.T) {
	t.Parallel()
	rounds := 1000
	if testkit.Full {
		rounds = 10_000
	}
	s := newSite(t, hello)
	answers := make([]malformed2, rounds)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range answers {
		answers[i] = newMalformed2(source)
	}
	at := func(path string) *malformed2 {
		n, _ := strconv.Atoi(path[1:])
		return &answers[n]
	}
	s.rawH2Site(t, "odd.test", func(f *http2.Framer, stream uint32, _, path string) error {
		return sendFrames(f, stream, at(path).http2())
	})
	s.script(t, "odd.test:80", func(c net.Conn, r *http.Request) { _, _ = io.WriteString(c, at(r.URL.Path).http1()) })
	r := newRigBefore(t, s)
	differ := map[string]int{}
	for i := range answers {
		path := fmt.Sprint("/", i)
		c, prefix := r.rawTo(plain, "odd.test")
		c.Send(requestTo("odd.test", "GET", prefix, path, "Accept: text/plain"))
		one := refusalType(shown(c))
		c.Close()
		c, prefix = r.rawTo(mitmH1, "odd.test")
		c.Send(requestTo("odd.test", "GET", prefix, path, "Accept: text/plain"))
		two := refusalType(shown(c))
		c.Close()
		if one == two {
			continue
		}
		why := answers[i].differs(one, two)
		if differ[why]++; why == "" {
			t.Errorf("HTTP/1 %q, HTTP/2 %q: %q", one, two, answers[i])
		}
	}
	for _, why := range slices.Sorted(maps.Keys(differ)) {
		t.Logf("%d of %d differ: %s", differ[why], rounds, why)
	}
}

// malformed2 is an answer that can be written in both protocols.
type malformed2 struct {
	interim, status string
	fields          []string // NAME=VALUE
	length          string   // of Content-Length; empty: none
	body, trailer   string
}

func newMalformed2(r *rand.Rand) malformed2 {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	m := malformed2{
		interim: pick("", "", "", "", "100", "103", "102", "101", "199"),
		status:  pick("200", "200", "200", "200", "204", "205", "206", "301", "304", "404", "407", "426", "500", "600", "999", "099", "2000", "-20", "20", "OK", "101"),
		length:  pick("", "", "5", "5", "5", "5", "3", "9", "0", "5, 5", "5, 6", "+5", "-5", "0x5", "005", "99999999999999999999"),
		body:    pick("hello", "hello", "hello", "", "hello again"),
		trailer: pick("", "", "", "x-odd=a", "content-length=3", "x-odd=a\x01"),
	}
	for range r.IntN(3) {
		m.fields = append(m.fields, pick("x-odd=a", "x-odd=", "x-odd=a\tb", "x-odd=\xe4", "x-odd=a\x01b", "x-odd=a\x7f", "connection=x-odd", "connection=close",
			"keep-alive=timeout=5", "upgrade=websocket", "proxy-status=rig-7f3a", "x odd=a", "x(odd=a", "=a", "content-length=5", "content-length=6", "trailer=x-odd"))
	}
	return m
}

func (m *malformed2) heads() (interim, final []string) {
	if final = append([]string{":status=" + m.status}, m.fields...); m.length != "" {
		final = append(final, "content-length="+m.length)
	}
	return []string{":status=" + m.interim}, final
}

func (m *malformed2) http2() string {
	var frames []string
	interim, final := m.heads()
	if m.interim != "" {
		frames = append(frames, strings.Join(interim, "; "))
	}
	frames = append(frames, strings.Join(final, "; "))
	if m.body != "" {
		frames = append(frames, "D:"+m.body)
	}
	if m.trailer != "" {
		frames = append(frames, m.trailer)
	}
	return strings.Join(frames, "|") + "."
}

func (m *malformed2) http1() string {
	var b strings.Builder
	head := func(fields []string) {
		for i, field := range fields {
			name, value, _ := strings.Cut(field, "=")
			if i == 0 {
				fmt.Fprintf(&b, "HTTP/1.1 %s Odd\r\n", value)
			} else {
				fmt.Fprintf(&b, "%s: %s\r\n", name, value)
			}
		}
	}
	interim, final := m.heads()
	if m.interim != "" {
		head(interim)
		b.WriteString("\r\n")
	}
	if head(final); m.chunked() {
		fmt.Fprintf(&b, "transfer-encoding: chunked\r\n\r\n")
		if m.body != "" {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(m.body), m.body)
		}
		name, value, _ := strings.Cut(m.trailer, "=")
		fmt.Fprintf(&b, "0\r\n%s: %s\r\n\r\n", name, value)
		return strings.Replace(b.String(), "0\r\n: \r\n\r\n", "0\r\n\r\n", 1)
	}
	return b.String() + "\r\n" + m.body
}

// chunked reports whether the answer has chunks in HTTP/1: with a trailer and no length.
func (m *malformed2) chunked() bool {
	return m.trailer != "" && m.length == "" && !slices.ContainsFunc(m.fields, func(f string) bool { return strings.HasPrefix(f, "content-length") })
}

// differs returns the rule for which the results of HTTP/1 and HTTP/2 differ; empty: there
// is none.
func (m *malformed2) differs(one, two string) string {
	has := func(what ...string) bool {
		return slices.ContainsFunc(m.fields, func(f string) bool { return slices.Contains(what, f) })
	}
	sized := m.length != "" || has("content-length=5", "content-length=6")
	switch {
	case (m.interim == "101" || m.status == "101") && strings.Contains(one, "502 ") && strings.Contains(two, "502 "):
		return "over HTTP/1 nothing but a WebSocket follows 101, over HTTP/2 there is none (RFC 9113 §8.6); either is refused"
	case has("x odd=a", "x(odd=a", "=a"):
		return "a name that no field has is passed on over HTTP/1, where clients take it, and malformed over HTTP/2 (RFC 9113 §8.2.1)"
	case m.trailer != "" && sized:
		return "HTTP/1 has no trailers beside a length"
	case m.body == "" && has("trailer=x-odd") && strings.ReplaceAll(one, "(X-Odd) ", "") == two:
		return "that nothing follows is known from the head over HTTP/2, and over HTTP/1 at the end: trailers are announced there"
	case m.trailer == "x-odd=a\x01":
		return "net/http leaves out of the trailers over HTTP/2 what no field has"
	case sized && strings.HasPrefix(two, one[:min(len(one), 4)]) && strings.HasSuffix(two, ", cut off"),
		m.length == "0" && m.body != "" && strings.HasSuffix(two, "502 http_protocol_error"):
		return "the stream says where the content ends, beside its length (RFC 9113 §8.1.1); over HTTP/1 the length alone does"
	}
	return ""
}
