package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/fetch"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// codings are the content codings that the head of a page is read in.
var codings = map[string]func([]byte) []byte{
	"": func(b []byte) []byte { return b },
	"gzip": func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	},
	"br": func(b []byte) []byte {
		var out bytes.Buffer
		w := brotli.NewWriter(&out)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	},
	"zstd": func(b []byte) []byte {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			panic(err)
		}
		return w.EncodeAll(b, nil)
	},
}

// codedSite serves body in a coding, with a length or without, and with a trailer.
func codedSite(t testing.TB, coding string, body []byte, length bool) *site {
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html")
		if coding != "" {
			h.Set("Content-Encoding", coding)
		}
		if length {
			h.Set("Content-Length", fmt.Sprint(len(body)))
		} else {
			h.Set("Trailer", "X-Sum")
		}
		for half := range 2 {
			_, _ = w.Write(body[half*len(body)/2 : (half+1)*len(body)/2])
			if !length {
				_ = http.NewResponseController(w).Flush()
			}
		}
		if !length {
			h.Set("X-Sum", "17")
		}
	})
	s.robots = "User-agent: *\nDisallow: /private\n"
	return s
}

// The head of a page is read in every coding, and the coded octets, their length or their
// trailer reach the client that may have them.
func TestUse_CodedPages(t *testing.T) {
	page := []byte("<head><title>t</title><meta name=robots content=noindex></head>" + strings.Repeat("<p>text of the page", 3000))
	for coding, encode := range codings {
		for _, length := range []bool{true, false} {
			t.Run(fmt.Sprintf("%q, length %v", coding, length), func(t *testing.T) {
				t.Parallel()
				sent := encode(page)
				for _, purpose := range []signal.Purpose{"archive", "search"} {
					r := newRigBefore(t, codedSite(t, coding, sent, length), purposeOf(purpose))
					eachMode(t, []mode{plain, mitmH2}, func(t *testing.T, m mode) {
						got := r.in(t).ask(m, question{path: "/page"})
						if purpose == "search" {
							must.Equal(t, got.StatusCode, http.StatusForbidden)
							return
						}
						trailer := got.Trailer.Get("X-Sum")
						if got.StatusCode != 200 || got.err != nil || got.body != string(sent) || got.Header.Get("Content-Encoding") != coding ||
							(trailer == "17") == length || length && got.ContentLength != int64(len(sent)) {
							t.Errorf("%d %v, trailer %q, %d octets of %d, %v", got.StatusCode, got.Header, trailer, len(got.body), len(sent), got.err)
						}
					})
				}
			})
		}
	}
}

// A page that is made to be read without end is delivered as it is, and recorded as one
// that was not read; the profile strict withholds it.
func TestUse_HostilePagesAreBounded(t *testing.T) {
	spaces := bytes.Repeat([]byte(" "), 20<<20)
	pages := map[string]struct {
		coding string
		sent   []byte
	}{
		"a bomb in gzip":             {"gzip", codings["gzip"](append([]byte("<head>"), spaces...))},
		"a bomb in br":               {"br", codings["br"](append([]byte("<head>"), spaces...))},
		"a bomb in zstd":             {"zstd", codings["zstd"](append([]byte("<head>"), spaces...))},
		"an attribute of 10 MB":      {"", append([]byte("<head><meta name=robots content='"), spaces[:10<<20]...)},
		"elements without end":       {"", bytes.Repeat([]byte("<meta name=robots content=all>"), 20_000)},
		"octets that are no gzip":    {"gzip", []byte("<head></head>")},
		"half of a gzip":             {"gzip", codings["gzip"](bytes.Repeat([]byte("<p>x"), 1000))[:20]},
		"a coding that heed has not": {"compress", []byte("<head></head>")},
	}
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, strict := range []bool{false, true} {
				changes := []func(*Config){purposeOf(signal.PurposeSearch)}
				if strict {
					changes = append(changes, profile(rules.Strict))
				}
				r := newRigBefore(t, codedSite(t, p.coding, p.sent, true), changes...)
				got := r.ask(plain, question{path: "/page"})
				if strict != (got.StatusCode == http.StatusForbidden) || !strict && got.body != string(p.sent) {
					t.Errorf("strict %v: %d, %d octets of %d, %v", strict, got.StatusCode, len(got.body), len(p.sent), got.err)
				}
				if e := r.records.target(t, "/page"); !strings.Contains(e.Outcome.Signals, `"page":"`) || strings.Contains(e.Outcome.Signals, `"whole"`) {
					t.Errorf("strict %v: recorded %s", strict, e.Outcome.Signals)
				}
			}
		})
	}
}

// A licence that a site has heed look for in heed's own network is never requested there.
func TestUse_ALicenceReachesNothingThatTheClientCouldNot(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"site.test": "127.1.0.1", "inside.test": "127.2.0.1", "meta.test": "169.254.169.254"})
	var asked atomic.Int32
	inside := n.Serve("127.2.0.1", func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); io.WriteString(w, "<rsl/>") })
	var licence, redirect atomic.Pointer[string]
	site := n.Serve("127.1.0.1", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprintf(w, "License: %s\nUser-agent: *\nDisallow: /private\n", *licence.Load())
		case "/licence.xml":
			http.Redirect(w, r, *redirect.Load(), http.StatusFound)
		default:
			io.WriteString(w, "hello")
		}
	})
	own := "http://site.test:" + site + "/licence.xml"
	for _, private := range []string{
		"http://inside.test:" + inside + "/x", "http://127.2.0.1:" + inside + "/x", "http://localhost:" + inside + "/x", "http://meta.test/latest/",
		"http://169.254.169.254/latest/", "http://10.0.0.1/",
	} {
		for _, redirected := range []bool{false, true} {
			licence.Store(&private)
			if redirected {
				licence.Store(&own)
				redirect.Store(&private)
			}
			d := &acl.Destinations{Allow: []acl.Destination{destination(t, "*"), destination(t, "0.0.0.0/0")}}
			r := rigIn(t, n, d, purposeOf(signal.PurposeTraining), func(c *Config) {})
			policies := r.proxy.config.Policies.(*cache.Cache)
			r.proxy.config.Live().Signals.Documents = &fetch.Documents{Site: policies}
			got := r.ask(plain, question{host: "site.test:" + site, path: "/page"})
			e := r.records.target(t, "/page")
			must.True(t, got.StatusCode == http.StatusOK && strings.Contains(e.Signals, "cannot be read"),
				"%s, redirected %v: %d %s, recorded %s", private, redirected, got.StatusCode, got.body, e.Signals)
		}
	}
	if len(n.Outside()) > 0 || asked.Load() > 0 {
		t.Errorf("dialled %v; %d requests inside", n.Outside(), asked.Load())
	}
}

// A redirect does not make heed fetch a licence where robots.txt does not let the agent.
func TestUse_ALicenceIsNotFetchedWhereRobotsTxtForbidsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/licence.xml" {
			http.Redirect(w, r, "http://h1.test/private/licence.xml", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "hello")
	})
	s.robots = "License: http://site.test/licence.xml\nLicense: http://site.test/private/other.xml\nUser-agent: *\nDisallow: /private\n"
	r := newRigBefore(t, s, purposeOf(signal.PurposeTraining))
	got := r.ask(plain, question{path: "/page"})
	must.True(t, got.StatusCode == http.StatusOK, "%d %s", got.StatusCode, got.body)
	for _, a := range r.site.requests() {
		must.True(t, !strings.HasPrefix(a.Target, "/private"), "the site saw %+v", a)
	}
	e := r.records.target(t, "/page")
	must.True(t, strings.Count(e.Signals, "cannot be read") == 2, "recorded: %s", e.Signals)
}

// Under the profile strict a licence that cannot be read refuses, and a contract that the
// settings name lets the page be fetched.
func TestUse_AnUnreadableLicence(t *testing.T) {
	for _, c := range []struct {
		name     string
		strict   bool
		contract bool
		refused  bool
	}{{"standard", false, false, false}, {"strict", true, false, true}, {"strict, with a contract", true, true, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/licence.xml" {
					_, _ = w.Write(bytes.Repeat([]byte("<rsl>"), 1<<20)) // 5 MB
					return
				}
				w.Header().Set("Content-Type", "text/plain")
				_, _ = io.WriteString(w, "hello")
			})
			s.robots = "License: http://site.test/licence.xml\nUser-agent: *\nDisallow: /private\n"
			changes := []func(*Config){purposeOf(signal.PurposeAgent)}
			if c.strict {
				changes = append(changes, profile(rules.Strict))
			}
			if c.contract {
				changes = append(changes, func(c *Config) {
					match, _ := acl.ParseHostPattern("site.test")
					c.Rules.Hosts = []acl.Host{{Match: []acl.HostPattern{match}, Licence: &acl.Licence{Reference: "4711"}}}
				})
			}
			r := newRigBefore(t, s, changes...)
			got := r.ask(plain, question{path: "/page"})
			must.Equal(t, got.StatusCode == http.StatusForbidden, c.refused, "%d %s", got.StatusCode, got.body)
			if e := r.records.target(t, "/page"); !strings.Contains(e.Signals, "cannot be read") || c.refused && e.Decision.Reason != rules.ReasonLicence {
				t.Errorf("recorded: %v %s", e.Decision, e.Signals)
			}
		})
	}
}

// A TDMRep file is requested for the purposes that it can refuse, when robots.txt lets the
// agent fetch it.
func TestUse_TDMRep(t *testing.T) {
	for _, c := range []struct {
		name, robots string
		purposes     []signal.Purpose
		fetched      bool
		status       int
	}{
		{"tdm", "", []signal.Purpose{"tdm"}, true, 403},
		{"training", "", []signal.Purpose{"training"}, true, 403},
		{"search", "", []signal.Purpose{"search"}, false, 200},
		{"none", "", nil, false, 200},
		{"disallowed", "User-agent: *\nDisallow: /.well-known/\n", []signal.Purpose{"tdm"}, false, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == signal.TDMRepPath {
					_, _ = io.WriteString(w, `[{"location": "/", "tdm-reservation": 1}]`)
					return
				}
				_, _ = io.WriteString(w, "hello")
			})
			s.robots = c.robots
			if s.robots == "" {
				s.robots = "User-agent: *\nDisallow: /private\n"
			}
			r := newRigBefore(t, s, purposeOf(c.purposes...))
			for range 2 {
				got := r.ask(plain, question{path: "/page"})
				must.True(t, got.StatusCode == c.status, "%d %s", got.StatusCode, got.body)
			}
			fetches := 0
			for _, a := range r.site.requests() {
				if a.Target == signal.TDMRepPath {
					fetches++
				}
			}
			want := map[bool]int{true: 1}[c.fetched]
			must.True(t, fetches == want, "requested %d times", fetches)
		})
	}
}

// Documents are requested only where they can change the verdict: not for a page that
// robots.txt refuses, by a rule or by what it states of the use, even when an exception of
// the operator allows that page.
func TestUse_DocumentsAreNotRequestedForWhatIsRefused(t *testing.T) {
	exception := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/private"}, Reason: "agreed"}))(t)
	match, _ := acl.ParseHostPattern("*")
	const declares = "License: http://site.test/licence.xml\nUser-agent: *\nDisallow: /private\n"
	for _, c := range []struct {
		name, robots, path string
		mode               acl.Mode
		status, fetches    int
		recorded           bool
	}{
		{"a page that is allowed", declares, "/page", acl.Enforce, 403, 2, true},
		{"a rule", declares, "/private", acl.Enforce, 403, 0, false},
		{"a rule, observed", declares, "/private", acl.Observe, 200, 0, false},
		{"a rule, and an exception", declares, "/private/x", acl.Enforce, 200, 0, false},
		{"a statement", declares + "Content-Signal: ai-train=no\n", "/page", acl.Enforce, 403, 0, true},
		{"a statement, observed", declares + "Content-Signal: ai-train=no\n", "/page", acl.Observe, 200, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == signal.TDMRepPath {
					_, _ = io.WriteString(w, `[{"location": "/", "tdm-reservation": 1}]`)
					return
				}
				w.Header().Set("X-Robots-Tag", "noarchive")
				_, _ = io.WriteString(w, "hello")
			})
			s.robots = c.robots
			r := newRigBefore(t, s, purposeOf(signal.PurposeTraining), func(config *Config) {
				config.Rules.Clients[0].Mode = &c.mode
				if strings.HasSuffix(c.name, "exception") {
					config.Rules.Hosts = []acl.Host{{Match: []acl.HostPattern{match}, Exceptions: []*acl.Exception{exception}}}
				}
			})
			got := r.ask(plain, question{path: c.path})
			must.True(t, got.StatusCode == c.status, "%d %s", got.StatusCode, got.body)
			fetches := 0
			for _, a := range r.site.requests() {
				if a.Target == signal.TDMRepPath || a.Target == "/licence.xml" {
					fetches++
				}
			}
			e := r.records.target(t, c.path)
			must.True(t, fetches == c.fetches && (e.Signals != "") == c.recorded,
				"%d documents were requested, recorded %q", fetches, e.Signals)
		})
	}
}

// What a site states is recorded for clients without a purpose, of what its header has.
func TestUse_WithoutAPurposeAStatementIsRecordedOnly(t *testing.T) {
	t.Parallel()
	r := newRigBefore(t, usageSite(t, managed, "<head><meta name=robots content=noindex></head>", "X-Robots-Tag: noarchive"))
	got := r.ask(plain, question{path: "/page"})
	must.True(t, got.StatusCode == 200 && got.Header.Get("Robots-Verdict") == "", "%d %v", got.StatusCode, got.Header)
	must.Status(t, r.ask(plain, question{path: "/private"}).Response, 403)
	e := r.records.target(t, "/page")
	if !strings.Contains(e.Outcome.Signals, "noarchive") || strings.Contains(e.Outcome.Signals, "noindex") || e.Signals != "" || e.Outcome.Late != nil || e.Purposes != nil {
		t.Errorf("recorded: %+v", e)
	}
	e = r.records.await(t, "/private", func(e *audit.Entry) bool { return e.Target == "/private" })
	must.True(t, e.Signals == "" && e.Outcome.Signals == "", "of a page that may not be crawled: %+v", e)
}

// What the site's TDMRep file alone refuses is requested, and delivered when the page itself
// lifts the reservation, in its header or its head; until then its body is withheld. Where
// anything else refuses, and for what is no page, the request does not leave.
func TestUse_APageOverridesTheTDMRepFile(t *testing.T) {
	for _, c := range []struct {
		name, field, html string
		robots            string
		method            string
		status            int
		reached           bool
	}{
		{name: "the header", field: "0", html: "<p>text", status: 200, reached: true},
		{name: "the head", html: "<head><meta name=tdm-reservation content=0></head>", status: 200, reached: true},
		{name: "neither", html: "<head></head><p>text", status: 403, reached: true},
		{name: "both, the head reserves", field: "0", html: "<head><meta name=tdm-reservation content=1></head>", status: 403, reached: true},
		{name: "robots.txt refuses too", field: "0", html: "<p>text", robots: "Content-Signal: ai-train=no\n", status: 403},
		{name: "a form", field: "0", html: "<p>text", method: "POST", status: 403},
		{name: "no page", field: "0", html: "", method: "HEAD", status: 200, reached: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == signal.TDMRepPath {
					_, _ = io.WriteString(w, `[{"location": "/", "tdm-reservation": 1}]`)
					return
				}
				if w.Header().Set("Content-Type", "text/html"); c.field != "" {
					w.Header().Set("Tdm-Reservation", c.field)
				}
				_, _ = io.WriteString(w, c.html)
			})
			s.robots = "User-agent: *\nDisallow: /private\n" + c.robots
			r := newRigBefore(t, s, purposeOf(signal.PurposeTraining))
			got := r.ask(plain, question{path: "/page", method: c.method})
			if got.StatusCode != c.status || got.StatusCode == 403 && c.html != "" && strings.Contains(got.body, c.html) {
				t.Errorf("%d %s", got.StatusCode, got.body)
			}
			reached := strings.Contains(strings.Join(s.reached(), " "), "/page")
			if e := r.records.target(t, "/page"); reached != c.reached || reached && c.status == 403 && (e.Outcome.Late == nil || e.Outcome.Late.Reason != rules.ReasonSignal) {
				t.Errorf("it reached the site: %v; recorded %+v, then %+v", reached, e.Decision, e.Outcome.Late)
			}
		})
	}
}
