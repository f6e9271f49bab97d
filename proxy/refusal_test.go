package proxy

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// GET and HEAD are refused, and the connection goes on with the right answer
// to the next request, refused or not.
func TestConnectionGoesOnAfterARefusal(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/private/1") + rawRequest("HEAD", prefix, "/private/2") + get(prefix, "/private/ok/3") +
			rawRequest("HEAD", prefix, "/public/4") + get(prefix, "/private/5"))
		var lengths []int64
		for i, method := range []string{"GET", "HEAD", "GET", "HEAD", "GET"} {
			a := c.Answer(method)
			path := fmt.Sprintf("/%d", i+1)
			refused := i == 0 || i == 1 || i == 4
			want := map[bool]string{true: "403 Refused by heed: robots.txt line 3 Disallow: /private", false: "200 OK"}[refused]
			must.Is(t, a.Status, want, "answer %d", i+1)
			must.True(t, method != "GET" || strings.Contains(string(a.Body), path),
				"answer %d is not about %s: %s", i+1, path, a.Body)
			lengths = append(lengths, a.ContentLength)
		}
		must.True(t, lengths[0] > 0 && lengths[0] == lengths[1] && lengths[0] == lengths[4],
			"Content-Length of refusals to GET, HEAD, GET: %v", lengths)
	})
}

// Of a client that is declared under one name and shows another, the refusal and the log
// name the one that led to the group, and where it is from.
func TestHeed_ARefusalSaysWhereTheNameIsFromThatLedToTheGroup(t *testing.T) {
	t.Parallel()
	text := "User-agent: NewsBot\nDisallow: /news\n\nUser-agent: Lab\nDisallow: /lab\n"
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Clients: []acl.Client{{Agent: rules.Declare("NewsBot")}}})
		c.Policies = policiesFunc(func(o rules.Origin, _ string) *rules.Policy {
			return rules.New(rules.Source{Origin: o, State: rules.Available}, []byte(text))
		})
	})
	for path, want := range map[string][2]string{
		"/lab":  {`The piece \"Lab/1\" of the User-Agent led to the group`, "agent=lab agent_from=user-agent"},
		"/news": {`The declared name \"newsbot\" led to the group`, "agent=newsbot agent_from=declared"},
	} {
		a := r.ask(plain, question{path: path, header: []string{"User-Agent: Lab/1"}})
		must.True(t, a.StatusCode == 403 && strings.Contains(a.body, want[0]), "%s: %s, %s", path, a.Status, a.body)
		var log strings.Builder
		e := r.records.target(t, path)
		if l := audit.NewLog(slog.NewTextHandler(&log, nil), nil); l.Decided(&e) == nil {
			l.Ended(&e)
		}
		must.Contain(t, log.String(), want[1], "%s: the log has", path)
	}
}

// A client that obeys the groups for a purpose is refused what they disallow, and waits for as
// long as the longest delay: a group for no name of it otherwise says nothing.
func TestHeed_GroupsForAPurposeAreObeyedWhereTheyNameIt(t *testing.T) {
	t.Parallel()
	text := "User-agent: *\nDisallow: /star\nCrawl-delay: 1\n\nUser-agent: Lab\nCrawl-delay: 2\nDisallow: /lab\n\nUser-agent: CCBot\nDisallow: /dataset\nCrawl-delay: 7\n"
	clients := []acl.Client{{Name: "lab", UserAgent: acl.NewGlob("Lab/*"), Terms: acl.Terms{AlsoObey: acl.Names{"CCBot", "Google-Extended"}}}, {Name: "other", Terms: acl.Terms{AlsoObey: acl.Names{"Google-Extended"}}}}
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Clients: clients})
		c.Policies = policiesFunc(func(o rules.Origin, _ string) *rules.Policy {
			return rules.New(rules.Source{Origin: o, State: rules.Available}, []byte(text))
		})
	})
	for _, c := range []struct {
		agent, path string
		want        int
	}{
		{"Lab/1", "/lab", 403}, {"Lab/1", "/dataset/1", 403}, {"Lab/1", "/star", 200}, {"Lab/1", "/page", 200},
		{"Other/1", "/star", 403}, {"Other/1", "/dataset/2", 200},
	} {
		a := r.ask(plain, question{path: c.path, header: []string{"User-Agent: " + c.agent}})
		must.Equal(t, a.StatusCode, c.want, "%s as %s: %s", c.path, c.agent, a.Status)
	}
	e := r.records.target(t, "/dataset/1")
	must.True(t, e.Decision.Role == rules.Obeyed && e.Decision.Group == "CCBot" && slices.Equal(e.AlsoObey, clients[0].AlsoObey),
		"%+v, %q", e.Decision, e.AlsoObey)
	a := r.ask(plain, question{path: "/dataset/3", header: []string{"User-Agent: Lab/1"}})
	must.Contain(t, a.body, `is for \"ccbot\", which this client obeys besides its own names`)
	p := rules.New(rules.Source{State: rules.Available}, []byte(text))
	settled := &acl.Rules{Clients: clients}
	id := settled.For(&clients[0], e.Policy.Source().Origin, time.Now()).Identity("Lab/1", rules.Identify)
	must.Equal(t, rules.LongestDelay(id.RateHints(p), time.Now()), 7*time.Second, "the delay")
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
// for a body that is not read. heed would read on for an hour here: an answer
// that waited for the body or for that limit would not come within Patience.
func TestRefusedUploadIsAnsweredAtOnce(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits.DrainTime = time.Hour })
	eachUpload(t, r, func(c *testkit.Conn) {})
	must.Same(t, r.site.reached(), nil, "what the site saw")
}

// Afterwards the connection closes by itself, however little came of the body.
func TestRefusedUploadEndsTheConnection(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits.DrainTime = time.Millisecond })
	eachUpload(t, r, func(c *testkit.Conn) { c.Closed() })
}

func eachUpload(t *testing.T, r *rig, then func(c *testkit.Conn)) {
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		for _, u := range uploads {
			t.Run(u.name, func(t *testing.T) {
				c, prefix := r.in(t).raw(m)
				c.Send(rawRequest("POST", prefix, "/private/upload", u.header) + u.body)
				a := c.Answer("POST")
				must.True(t, a.StatusCode == 403 && a.Close, "%s, Connection: close %v", a.Status, a.Close)
				then(c)
			})
		}
	})
}

// What follows a refused upload on the wire is neither answered nor forwarded.
func TestBodyOfARefusedUploadIsNotARequest(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		smuggled := get(prefix, "/public/smuggled")
		c.Send(rawRequest("POST", prefix, "/private", fmt.Sprintf("Content-Length: %d", len(smuggled))) + smuggled + smuggled)
		must.Is(t, c.Answer("POST").StatusCode, 403)
		c.Closed()
	})
	must.Same(t, r.site.reached(), nil, "what the site saw")
}

// A client that reads only when it has sent its whole body gets the 403 too,
// and not a reset in its face.
func TestClientThatSendsAllBeforeReadingGetsTheRefusal(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		const size = 8 << 20
		c.Send(rawRequest("POST", prefix, "/private", fmt.Sprintf("Content-Length: %d", size)) + strings.Repeat("x", size))
		must.Is(t, c.Answer("POST").StatusCode, 403)
	})
}

// A client that sends without end is not read without end.
func TestHugeRefusedUploadIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(rawRequest("POST", prefix, "/private", "Content-Length: 1000000000000"))
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
		must.Is(t, c.Answer("POST").StatusCode, 403)
		n := <-sent
		must.True(t, n <= 2*maxDrain, "%d octets were taken from a client that was refused", n)
	})
}

// On HTTP/2 a refused upload ends its stream and nothing else: a stream that
// was open before goes on, and a new one is answered.
func TestHTTP2RefusalEndsTheStreamOnly(t *testing.T) {
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
		req := must.Get(http.NewRequestWithContext(t.Context(), method, "https://site.test"+path, body))(t)
		for _, h := range header {
			req.Header.Set(h, "100-continue")
		}
		resp, err := c.RoundTrip(req)
		must.OK(t, err, "%s %s", method, path)
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
		must.True(t, resp.StatusCode == 403 && strings.Contains(string(text), "Refused by heed") && err == nil,
			"%s: %s %q %v", name, resp.Status, text, err)
	}
	must.Status(t, ask("GET", "/after", nil), 200, "a new stream")
	close(release)
	text, err := io.ReadAll(open.Body)
	must.True(t, string(text) == "first rest" && err == nil, "the stream that was open before: %q %v", text, err)
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "private", "the site saw")
}

// Our own refusal is not taken for the site's answer by anything behind it:
// its fields are exactly ours, no Via, and the record says whose it was. It is not chunked, and as
// long as it states, for a client that reads exactly that much.
func TestRefusalIsNotTheSitesAnswer(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for _, method := range []string{"GET", "HEAD", "DELETE"} {
			path := "/private/" + method + "/" + string(m)
			a := r.in(t).ask(m, question{method: method, path: path})
			want := map[string]bool{"Content-Type": true, "Content-Length": true, "Cache-Control": true,
				"Proxy-Status": true, "X-Content-Type-Options": true, "Date": true}
			for name := range a.Header {
				must.True(t, want[name], "unexpected field %s: %q", name, a.Header[name])
				delete(want, name)
			}
			must.True(t, len(want) == 0 && a.Header.Get("Cache-Control") == "no-store",
				"missing fields %v, Cache-Control %q", want, a.Header.Get("Cache-Control"))
			length, err := strconv.Atoi(a.Header.Get("Content-Length"))
			must.True(t, err == nil && length > 0 && len(a.body) == map[bool]int{false: length}[method == "HEAD"] && len(a.TransferEncoding) == 0,
				"%s: %d octets of body, Content-Length %d, %v", method, len(a.body), length, a.TransferEncoding)
			e := r.records.target(t, path)
			must.True(t, !e.Outcome.FromSite && e.Outcome.Status == 403 && e.Decision.Reason == rules.ReasonRule, "record %+v", e)
			must.Equal(t, proxyStatusOf(t, a.Header), "http_request_denied", "error type")
		}
	})
}
