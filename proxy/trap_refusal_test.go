package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/testkit"
	"heed/rules"
)

// GET and HEAD are refused, and the connection goes on with the right answer
// to the next request, refused or not.
func TestTrap03_ConnectionGoesOnAfterARefusal(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/private/1") + request("HEAD", prefix, "/private/2") + get(prefix, "/public/3") +
			request("HEAD", prefix, "/public/4") + get(prefix, "/private/5"))
		var lengths []int64
		for i, method := range []string{"GET", "HEAD", "GET", "HEAD", "GET"} {
			a := c.Answer(method)
			path := fmt.Sprintf("/%d", i+1)
			refused := i == 0 || i == 1 || i == 4
			if refused != (a.StatusCode == 403) {
				t.Fatalf("answer %d: %s", i+1, a.Status)
			}
			if method == "GET" && !strings.Contains(string(a.Body), path) {
				t.Errorf("answer %d is not about %s: %s", i+1, path, a.Body)
			}
			lengths = append(lengths, a.ContentLength)
		}
		if lengths[0] <= 0 || lengths[0] != lengths[1] || lengths[0] != lengths[4] {
			t.Errorf("Content-Length of refusals to GET, HEAD, GET: %v", lengths)
		}
	})
}

// A refusal has its length stated, and none of it is left over for a client
// that reads exactly that much. Nothing is chunked.
func TestTrap04_RefusalsCarryContentLength(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, method := range []string{"GET", "HEAD", "DELETE"} {
			a := r.in(t).ask(m, question{method: method, path: "/private"})
			length, err := strconv.Atoi(a.Header.Get("Content-Length"))
			if a.StatusCode != 403 || err != nil || len(a.TransferEncoding) > 0 {
				t.Fatalf("%s: %s, Content-Length %q, %v", method, a.Status, a.Header.Get("Content-Length"), a.TransferEncoding)
			}
			if method == "HEAD" != (len(a.body) == 0) || method != "HEAD" && len(a.body) != length {
				t.Errorf("%s: %d octets of body, Content-Length %d", method, len(a.body), length)
			}
		}
	})
}

// upload is one way of sending a body that will be refused.
type upload struct {
	name   string
	header string
	body   string // sent with the head; the rest never comes
}

var uploads = []upload{
	{"whole", "Content-Length: 5", "hello"},
	{"chunked", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"},
	{"never comes", "Content-Length: 100", ""},
	{"never comes, chunked", "Transfer-Encoding: chunked", ""},
	{"half", "Content-Length: 10", "hello"},
	{"half a chunk", "Transfer-Encoding: chunked", "ff\r\nhello"},
	{"huge, never comes", "Content-Length: 10000000000", ""},
	{"Expect", "Content-Length: 5\r\nExpect: 100-continue", ""},
	{"Expect, huge", "Content-Length: 10000000000\r\nExpect: 100-continue", ""},
	{"Expect, chunked", "Transfer-Encoding: chunked\r\nExpect: 100-continue", ""},
}

// The 403 to an upload comes whether the body comes or not, and no 100 is sent
// for a body that nobody wants. heed would read on for an hour here: an answer
// that waited for the body or for that limit would not come within Patience.
func TestTrap03_RefusedUploadIsAnsweredAtOnce(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.limits.drain = time.Hour })
	eachUpload(t, r, func(c *testkit.Conn) {})
	if seen := r.site.reached(); len(seen) > 0 {
		t.Errorf("the site saw %q", seen)
	}
}

// Afterwards the connection closes by itself, however little came of the body.
func TestTrap03_RefusedUploadEndsTheConnection(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.limits.drain = time.Millisecond })
	eachUpload(t, r, func(c *testkit.Conn) { c.Closed() })
}

func eachUpload(t *testing.T, r *rig, then func(c *testkit.Conn)) {
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		for _, u := range uploads {
			t.Run(u.name, func(t *testing.T) {
				c, prefix := r.in(t).raw(m)
				c.Send(request("POST", prefix, "/private/upload", u.header) + u.body)
				if a := c.Answer("POST"); a.StatusCode != 403 || !a.Close {
					t.Errorf("%s, Connection: close %v", a.Status, a.Close)
				}
				then(c)
			})
		}
	})
}

// What follows a refused upload on the wire is neither answered nor forwarded.
func TestTrap03_BodyOfARefusedUploadIsNotARequest(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		smuggled := get(prefix, "/public/smuggled")
		c.Send(request("POST", prefix, "/private", fmt.Sprintf("Content-Length: %d", len(smuggled))) + smuggled + smuggled)
		if a := c.Answer("POST"); a.StatusCode != 403 {
			t.Fatal(a.Status)
		}
		c.Closed()
	})
	if seen := r.site.reached(); len(seen) > 0 {
		t.Errorf("the site saw %q", seen)
	}
}

// A client that reads only when it has sent its whole body gets the 403 too,
// and not a reset in its face.
func TestTrap03_ClientThatSendsAllBeforeReadingGetsTheRefusal(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		const size = 8 << 20
		c.Send(request("POST", prefix, "/private", fmt.Sprintf("Content-Length: %d", size)) + strings.Repeat("x", size))
		if a := c.Answer("POST"); a.StatusCode != 403 {
			t.Fatal(a.Status)
		}
	})
}

// A client that sends without end is not read without end.
func TestTrap03_HugeRefusedUploadIsBounded(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(request("POST", prefix, "/private", "Content-Length: 1000000000000"))
		sent := make(chan int)
		c.SetWriteDeadline(time.Now().Add(testkit.Patience))
		go func() {
			n, chunk := 0, make([]byte, 1<<20)
			for {
				w, err := c.Write(chunk)
				if n += w; err != nil {
					sent <- n
					return
				}
			}
		}()
		if a := c.Answer("POST"); a.StatusCode != 403 {
			t.Fatal(a.Status)
		}
		if n := <-sent; n > 2*maxDrain {
			t.Errorf("%d octets were taken from a client that was refused", n)
		}
	})
}

// On HTTP/2 a refused upload ends its stream and nothing else: a stream that
// was open before goes on, and a new one is answered.
func TestTrap03_HTTP2RefusalEndsTheStreamOnly(t *testing.T) {
	held, release := make(chan bool), make(chan bool)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			fmt.Fprint(w, "first ")
			w.(http.Flusher).Flush()
			held <- true
			<-release
		}
		fmt.Fprint(w, "rest")
	})
	c := r.h2("site.test")
	ask := func(method, path string, body io.Reader, header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://site.test"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range header {
			req.Header.Set(h, "100-continue")
		}
		resp, err := c.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return resp
	}
	open := ask("GET", "/held", nil)
	<-held
	silent, end := io.Pipe()
	defer end.Close()
	for name, body := range map[string]io.Reader{
		"small": strings.NewReader("hello"), "large": bytes.NewReader(make([]byte, 8<<20)), "never comes": silent,
	} {
		resp := ask("POST", "/private", body)
		text, err := io.ReadAll(resp.Body)
		if resp.StatusCode != 403 || !strings.Contains(string(text), "Refused by heed") || err != nil {
			t.Errorf("%s: %s %q %v", name, resp.Status, text, err)
		}
	}
	if resp := ask("GET", "/after", nil); resp.StatusCode != 200 {
		t.Errorf("a new stream: %s", resp.Status)
	}
	close(release)
	if text, err := io.ReadAll(open.Body); string(text) != "first rest" || err != nil {
		t.Errorf("the stream that was open before: %q %v", text, err)
	}
	for _, seen := range r.site.reached() {
		if strings.Contains(seen, "private") {
			t.Errorf("the site saw %s", seen)
		}
	}
}

// Our own refusal is not taken for the site's answer by anything behind it:
// its fields are exactly ours, no Via, and the record says whose it was.
func TestTrap23_RefusalIsNotTheSitesAnswer(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		path := "/private/" + string(m)
		a := r.in(t).ask(m, question{path: path})
		want := map[string]bool{"Content-Type": true, "Content-Length": true, "Cache-Control": true,
			"Proxy-Status": true, "X-Content-Type-Options": true, "Date": true}
		for name := range a.Header {
			if !want[name] {
				t.Errorf("unexpected field %s: %q", name, a.Header[name])
			}
			delete(want, name)
		}
		if len(want) > 0 || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("missing fields %v, Cache-Control %q", want, a.Header.Get("Cache-Control"))
		}
		if e := r.records.target(t, path); e.Outcome.FromSite || e.Outcome.Status != 403 || e.Decision.Reason != rules.ReasonRule {
			t.Errorf("record %+v", e)
		}
	})
}

// The answer is what the client can show: HTML for a browser, plain text for
// who asks for it, problem+json for everybody else.
func TestHeed_RefusalComesInTheFormatAsked(t *testing.T) {
	r := newRig(t, hello)
	for accept, want := range map[string]string{
		"":                 "application/problem+json",
		"*/*":              "application/problem+json",
		"application/json": "application/problem+json",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html; charset=utf-8",
		"text/*":                          "text/html; charset=utf-8",
		"text/plain":                      "text/plain; charset=utf-8",
		"text/html;q=0.1, text/plain":     "text/plain; charset=utf-8",
		"text/html;q=0":                   "application/problem+json",
		"text/html;q=0, */*;q=0.1":        "application/problem+json",
		"image/png":                       "application/problem+json",
		"TEXT/HTML":                       "text/html; charset=utf-8",
		"text/html;q=garbage":             "text/html; charset=utf-8",
		";;;,,,/;q=":                      "application/problem+json",
		"application/problem+json;q=0.01": "application/problem+json",
	} {
		var header []string
		if accept != "" {
			header = []string{"Accept: " + accept}
		}
		a := r.ask(plain, question{path: "/private", header: header})
		if got := a.Header.Get("Content-Type"); got != want || a.StatusCode != 403 {
			t.Errorf("Accept %q: %s %q, want %q", accept, a.Status, got, want)
		}
		if !strings.Contains(a.body, "Refused by heed: robots.txt line 3 Disallow: /private") {
			t.Errorf("Accept %q: %s", accept, a.body)
		}
	}
}

// What a site writes into robots.txt can hurt neither a browser, a terminal,
// a log, nor a parser of status lines and fields.
func TestHeed_HostileRuleTextIsHarmless(t *testing.T) {
	r := newRig(t, hello)
	const hostile = "/x<script>alert(1)</script>\"'&\\{{.}}\x1b[31m\r\nX: y\x00\x07\u009b\u202e\u200b\xff\tend"
	for name, text := range map[string]string{"hostile": hostile, "long": "/" + strings.Repeat("g\u00e9", 100_000)} {
		for _, accept := range []string{"text/html", "text/plain", "application/json"} {
			x := r.proxy.newExchange(&http.Request{})
			x.entry.Policy = rules.New(rules.Source{}, nil)
			x.refuse(rules.Decision{Reason: rules.ReasonRule, Line: 3,
				Rule: "Disallow: " + text, Group: text, Token: text, Piece: text}, "")
			resp := x.refusalResponse(&http.Request{Method: "GET", Header: http.Header{"Accept": {accept}}})
			body, _ := io.ReadAll(resp.Body)
			resp.Status = "403 " + x.refusal.phrase
			t.Run(name+" "+accept, func(t *testing.T) { harmless(t, &reply{Response: resp, body: string(body)}) })
			if strings.Contains(string(body), "<script>") && accept != "text/plain" {
				t.Errorf("markup of the site stands in the page:\n%s", body)
			}
		}
	}
}

// The same on the wire: markup in a rule that really decides stays text.
func TestHeed_MarkupInARuleStaysText(t *testing.T) {
	s := newSite(t, hello)
	s.robots = "User-agent: *\nDisallow: /x<script>alert(1)</script>\x1b[31m\n"
	r := newRigBefore(t, s)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, accept := range []string{"text/html", "text/plain", "application/json"} {
			a := r.in(t).ask(m, question{path: "/x%3Cscript%3Ealert(1)%3C/script%3E%1B[31m", header: []string{"Accept: " + accept}})
			if a.StatusCode != 403 || accept != "text/plain" && strings.Contains(a.body, "<script>") {
				t.Errorf("%s %s", a.Status, a.body)
			}
			harmless(t, a)
		}
	})
}

// The longest rule a site may write goes over every wire, bounded.
func TestHeed_LongRuleIsBoundedOnTheWire(t *testing.T) {
	s := newSite(t, hello)
	s.robots = "User-agent: *\nDisallow: /long" + strings.Repeat("g", 10_000) + "\n"
	r := newRigBefore(t, s)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{path: "/long" + strings.Repeat("g", 10_000)})
		if a.StatusCode != 403 {
			t.Error(a.Status)
		}
		harmless(t, a)
	})
}

// harmless checks what holds for every answer of heed's own.
func harmless(t *testing.T, a *reply) {
	t.Helper()
	if len(a.body) > 8<<10 {
		t.Errorf("a refusal of %d octets", len(a.body))
	}
	if len(a.Status) > maxPhrase+4 {
		t.Errorf("a reason phrase of %d octets", len(a.Status)-4)
	}
	for _, s := range []string{a.Status, a.Header.Get("Proxy-Status")} {
		if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("not printable ASCII: %q", s)
		}
	}
	if i := strings.IndexFunc(a.body, func(c rune) bool {
		return c < ' ' && c != '\n' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e' || c == '\u200b'
	}); i >= 0 {
		t.Errorf("a deceiving character at %d of the body: %q", i, a.body)
	}
	proxyStatusOf(t, a.Header)
}

// The same holds for what a client writes: its text comes back bounded.
func TestHeed_TextOfTheClientComesBackBounded(t *testing.T) {
	r := newRig(t, hello)
	long := strings.Repeat("a", 60_000)
	for name, q := range map[string]string{
		"target":     get("http://site.test", "/private/"+long),
		"host":       requestTo("site.test", "GET", "http://"+long+".test", "/"),
		"scheme":     requestTo("site.test", "GET", long+"://site.test", "/"),
		"user agent": get("http://site.test", "/private", "User-Agent: BadBot/"+long),
		"connect":    "CONNECT " + long + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		c := testkit.Dial(t, r.addr)
		c.Send(q)
		a := c.Answer("GET")
		if a.StatusCode < 400 {
			t.Errorf("%s: %s", name, a.Status)
		}
		t.Run(name, func(t *testing.T) { harmless(t, &reply{Response: a.Response, body: string(a.Body)}) })
	}
}

// A problem says all it knows in members of their own, and what the site wrote
// stands in one that says so.
func TestRFC9457_ProblemNamesPieceAndQuotesTheSite(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		path := "/public/" + string(m)
		a := r.in(t).ask(m, question{path: path, header: []string{"User-Agent: Mozilla/5.0 (compatible; BadBot/1.0)"}})
		var p problem
		if err := json.Unmarshal([]byte(a.body), &p); err != nil {
			t.Fatalf("%v in %s", err, a.body)
		}
		if p.Line != 7 || p.Quoted == nil || p.Quoted.Group != "BadBot" || p.Token != "badbot" || p.Piece == "" ||
			p.URL != m.scheme()+"://site.test"+path || p.Type != "urn:heed:rule" || p.Retry != "no" {
			t.Errorf("%s", a.body)
		}
		for _, advice := range []string{"curl", "Mozilla/", "another", "instead"} {
			if strings.Contains(p.Detail, advice) {
				t.Errorf("the detail suggests another name: %s", p.Detail)
			}
		}
	})
}
