package command

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A client with a purpose is served behind a Squid that also brings heed the answers, with the
// lines of the manual: it gets each page whose site does not reserve its use, octet for octet, and
// no other.
func TestSquidBringsHeedTheAnswers(t *testing.T) {
	t.Parallel()
	squidAnswers(t, false)
}

// The same over https, which the Squid in .build/squid decrypts: with HEED_TEST_FULL=1.
func TestSquidBringsHeedTheAnswers_HTTPS(t *testing.T) {
	t.Parallel()
	if !testkit.Full {
		t.Skip("Squid with OpenSSL is not installed for the short form")
	}
	squidAnswers(t, true)
}

// answerPages are those of the site: whether the use of each is reserved, and how it is answered.
var answerPages = []struct {
	path     string
	reserved bool
	header   http.Header
	body     string
}{
	{"/plain", false, nil, "<html><head><title>x</title></head>text"},
	{"/search-only", false, http.Header{"Content-Signal": {"search=yes"}}, "<html><head></head>text"},
	{"/tag", true, http.Header{"X-Robots-Tag": {"noai"}}, "<html><head></head>text"},
	{"/signal", true, http.Header{"Content-Signal": {"ai-train=no"}}, "<html><head></head>text"},
	{"/tdm", true, http.Header{"Tdm-Reservation": {"1"}}, "<html><head></head>text"},
	{"/meta", true, nil, `<html><head><meta name="robots" content="noai"></head>text`},
	{"/gzip/meta", true, nil, `<html><head><meta name="robots" content="noai"></head>text`},
	{"/gzip/plain", false, nil, "<html><head></head>" + strings.Repeat("text ", 40_000)},
	{"/long-head", false, nil, "<html><head><style>" + strings.Repeat("p{} ", 12_000) + "</style></head>text"},
	{"/long-head/meta", true, nil, "<html><head><style>" + strings.Repeat("p{} ", 12_000) + `</style><meta name="robots" content="noai"></head>text`},
	{"/big", false, nil, "<html><head></head>" + strings.Repeat("0123456789abcdef", 256<<10)},
	{"/big/tag", true, http.Header{"X-Robots-Tag": {"noai"}}, "<html><head></head>" + strings.Repeat("0123456789abcdef", 256<<10)},
	{"/file", false, http.Header{"Content-Type": {"application/octet-stream"}}, strings.Repeat("\x00\xff\r\n", 500_000)},
	{"/file/tag", true, http.Header{"Content-Type": {"application/pdf"}, "X-Robots-Tag": {"noai"}}, strings.Repeat("\x00\xff\r\n", 500_000)},
	{"/empty", false, nil, ""},
	{"/empty/tag", true, http.Header{"X-Robots-Tag": {"noai"}}, ""},
}

// gzipped returns text in that coding.
func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func squidAnswers(t *testing.T, https bool) {
	pages := map[string]int{}
	for i := range answerPages {
		pages[answerPages[i].path] = i
	}
	s := newSquidSite(t, https, func(w http.ResponseWriter, r *http.Request) {
		i, found := pages[r.URL.Path]
		if r.URL.Path == "/longest-head" {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html><head><style>"+strings.Repeat("p{} ", 30_000)+"</style></head>text")
			return
		}
		if !found {
			http.NotFound(w, r)
			return
		}
		p := &answerPages[i]
		w.Header().Set("Content-Type", "text/html")
		for name, lines := range p.header {
			w.Header()[name] = lines
		}
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		body := p.body
		if strings.HasPrefix(p.path, "/gzip/") {
			w.Header().Set("Content-Encoding", "gzip")
			body = gzipped(body)
		}
		if len(body)%2 == 0 {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		}
		io.WriteString(w, body)
	})
	state := testkit.StateDir(t)
	heed := testkit.Start(t, testkit.Options{State: state, Config: testkit.AnyPort + "profile = \"strict\"\n[access]\nprivate_destinations = \"allow\"\n" + s.config +
		"[[client]]\nname = \"trainer\"\nuser_agent = \"Trainer/*\"\npurpose = [\"training\"]\n"})
	type answer struct {
		status int
		body   string
		header http.Header
	}
	ask := func(c *http.Client, agent, method, path string, fields ...string) answer {
		t.Helper()
		req := must.Get(http.NewRequest(method, s.base+path, nil))(t)
		req.Header.Set("User-Agent", agent)
		if len(fields) > 0 {
			req.Header.Set(fields[0], fields[1])
		}
		resp, err := c.Do(req)
		must.OK(t, err, "%s %s", method, path)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must.True(t, err == nil, "%s %s: %v", method, path, err)
		return answer{resp.StatusCode, string(body), resp.Header}
	}
	refused := func(a answer) bool {
		return a.status == 403 && strings.Contains(a.header.Get("Proxy-Status"), "error=http_request_denied")
	}
	lines := s.lines(t, "# squid.conf", "# squid.conf: answers")
	c := s.client(t, lines)
	outcomes := map[string]string{} // "METHOD /path" of the trainer
	for _, p := range answerPages {
		body := p.body
		if strings.HasPrefix(p.path, "/gzip/") {
			body = gzipped(body)
		}
		if a := ask(c, "Browser/1.0", "GET", p.path); a.status != 200 || a.body != body {
			t.Errorf("%s for a client without a purpose: %d, %d octets", p.path, a.status, len(a.body))
		}
		for method, sent := range map[string]string{"GET": body, "HEAD": ""} {
			outcomes[method+" "+p.path] = "answered"
			a := ask(c, "Trainer/1.0", method, p.path)
			inPage := strings.Contains(p.path, "meta") // of which HEAD sees nothing
			if p.reserved && !(inPage && method == "HEAD") {
				outcomes[method+" "+p.path] = "refused-by-heed"
				if a.status == http.StatusBadGateway && a.header.Get("X-Squid-Error") != "" { // Squid, now and then, over https
					t.Logf("%s %s: %s", method, p.path, a.header.Get("X-Squid-Error"))
					a = ask(c, "Trainer/1.0", method, p.path)
				}
				must.True(t, refused(a) && (!strings.Contains(a.body, "text") || method != "HEAD"),
					"%s %s is not refused: %d %q", method, p.path, a.status, a.header["X-Squid-Error"])
			} else if a.status != 200 || a.body != sent {
				t.Errorf("%s %s: %d, %d octets, want 200, %d", method, p.path, a.status, len(a.body), len(sent))
			}
		}
	}
	if testkit.Full { // five seconds, after which it counts as not read: Squid sends no more of it
		a := ask(c, "Trainer/1.0", "GET", "/longest-head")
		must.True(t, refused(a), "a head that Squid does not bring whole: %d", a.status)
	}
	for path, want := range map[string]int{"/plain": 304, "/tag": 403, "/meta": 403} { // heed has seen what they state
		a := ask(c, "Trainer/1.0", "GET", path, "If-None-Match", `"1"`)
		must.True(t, a.status == want, "a revalidation of %s: %d, want %d", path, a.status, want)
	}
	a := ask(c, "Trainer/1.0", "GET", "/missing")
	must.True(t, a.status == 404, "a page that is not there: %d", a.status)
	outcomes["GET /missing"] = "answered"

	// A Squid without the one or the other line gives a client with a purpose no page.
	for _, without := range []string{"adaptation_masterx_shared_names", "adaptation_meta"} {
		var kept strings.Builder
		for line := range strings.Lines(lines) {
			if !strings.HasPrefix(line, without) {
				kept.WriteString(line)
			}
		}
		a := ask(s.client(t, kept.String()), "Trainer/1.0", "GET", "/plain?"+without)
		must.True(t, a.status == 403 || a.status == 500, "without %s: %d", without, a.status)
	}
	heed.Signal(syscall.SIGTERM)
	heed.Exit()
	out, err := exec.Command(testkit.Binary(t), "audit", "list", "--json", filepath.Join(state, "audit.db")).Output()
	must.OK(t, err, "heed audit list")
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		var d struct {
			Method, URL string
			Outcome     struct {
				Status    int
				FromSite  bool `json:"from_site"`
				Elsewhere bool
			}
			Client string `json:"client_name"`
		}
		must.OK(t, json.Unmarshal([]byte(line), &d), "%q", line)
		request := d.Method + " " + strings.TrimPrefix(d.URL, s.base)
		want, found := outcomes[request]
		if d.Client != "trainer" {
			want = "not-seen"
		} else if !found || seen[request] {
			continue
		} else {
			seen[request] = true
		}
		got := "refused-by-heed"
		if d.Outcome.Elsewhere {
			got = "not-seen"
		} else if d.Outcome.FromSite {
			got = "answered"
		}
		must.True(t, got == want, "%s of %s is recorded as %s (%d), want %s", request, d.Client, got, d.Outcome.Status, want)
	}
	must.True(t, len(seen) == len(outcomes), "%d requests are in the record, want %d", len(seen), len(outcomes))
}
