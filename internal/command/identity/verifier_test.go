package identity

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/config"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/passport"
)

// site is a site in Node that verifies requests with the npm package web-bot-auth.
type site struct {
	ca    *testkit.CA
	ports map[string]string
	lines chan string // that it prints
}

// newVerifyingSite starts the site with what was published in www.
func newVerifyingSite(t *testing.T, www string) *site {
	t.Helper()
	packages := filepath.Join(testkit.Root(t), ".build/web-bot-auth/node_modules")
	if _, err := os.Stat(packages); err != nil {
		t.Fatalf("this test needs the npm package web-bot-auth (%v)\nsh internal/tools/testkit/all.sh installs it", err)
	}
	s := &site{ca: testkit.NewCA(t), lines: make(chan string, 4096)}
	args := []string{"testdata/verifier.mjs", packages, filepath.Join(www, "news/keys.json"), filepath.Join(www, "news/card.json")}
	for name, version := range map[string]string{"site.test": "h2", "h1.test": "h1", "old.test": "h2"} {
		cert, key := s.ca.Leaf(t, name)
		args = append(args, name+"="+cert+"="+key+"="+version)
	}
	cmd := exec.Command(testkit.Node(t), args...)
	cmd.Stderr = os.Stderr
	testkit.NotOrphaned(cmd)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.OK(t, err)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	in := bufio.NewScanner(out)
	must.Need(t, in.Scan() && json.Unmarshal(in.Bytes(), &s.ports) == nil,
		"the verifying site does not start: %s", in.Text())
	go func() {
		for in.Scan() {
			s.lines <- in.Text()
		}
	}()
	return s
}

// reach returns settings by which the site is reached.
func (s *site) reach() string {
	text := fmt.Sprintf("[upstream]\nca_file = %q\n[upstream.resolve]\n", s.ca.File)
	for _, name := range slices.Sorted(maps.Keys(s.ports)) {
		text += fmt.Sprintf("%q = %q\n", name, s.ports[name])
	}
	return text
}

// found is what the site found out about a request.
type found struct {
	verdict, version string
	signature        map[string]string
}

func readFound(t *testing.T, resp *http.Response) found {
	t.Helper()
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	f := found{verdict: resp.Header.Get("X-Verdict"), version: resp.Header.Get("X-Version")}
	if text := resp.Header.Get("X-Signature"); text != "" {
		must.OK(t, json.Unmarshal([]byte(text), &f.signature))
	}
	return f
}

// A verifier that others have written finds the requests of a signed client valid: over HTTP/1
// and HTTP/2 on either side of heed, plain and intercepted, in both forms, with queries, bodies,
// redirects, and when they are sent again. What is changed or used again is not valid.
func TestHeed_AnotherVerifierFindsItsSignaturesValid(t *testing.T) {
	t.Parallel()
	dir, www := t.TempDir(), t.TempDir()
	key := made(t, filepath.Join(dir, "news.key"), 0)
	_, errors, status := run(t, &PublishCmd{FileFlags: config.FileFlags{Config: newsSettings(t, dir, "")}, Days: 28, Trigger: "crawler", Dir: www})
	must.Need(t, status == 0, "%s", errors)
	s := newVerifyingSite(t, www)
	h := testkit.Start(t, testkit.Options{Config: testkit.AnyPort + s.reach() + `
[[client]]
name = "news"
from = ["127.0.0.0/8"]
agent = ["NewsBot"]
send_user_agent = "NewsBot/2.1 (+https://bots.test/news/robot.html)"
sign = { key = "file:` + filepath.Join(dir, "news.key") + `", agent = "https://bots.test/news/keys.json" }
[[host]]
match = ["old.test"]
sign_form = "string"
[[host]]
match = ["plain.test"]
sign_http = true
`})
	client := func(http2 bool) *http.Client {
		tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr}), TLSClientConfig: &tls.Config{RootCAs: h.Roots()}, ForceAttemptHTTP2: http2}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr, Timeout: testkit.Patience}
	}
	h1, h2 := client(false), client(true)
	ways := []struct {
		client  *http.Client
		url     string
		version string // between heed and the site
	}{
		{h1, "https://site.test/page/%d", "2.0"},
		{h2, "https://site.test/page?n=%d&a=b%%20c&a=", "2.0"},
		{h2, "https://h1.test/a%%2Fb/%d?x=/../y", "1.1"},
		{h1, "https://h1.test/flaky/%d", "1.1"},
		{h2, "https://old.test/%d?q='", "2.0"},
		{h1, "https://old.test/x/../%d/%%7Eu", "2.0"},
		{h1, "http://plain.test/%d;v=1?q=http://other.test/", "1.1"},
		{h1, "https://site.test/jump/h1.test/after/%d?a=b", "1.1"},
		{h2, "https://h1.test/jump/old.test/after?n=%d", "2.0"},
	}
	requests := 100
	if testkit.Full {
		requests = 1000
	}
	var last found
	seen := map[string]bool{}
	for i := range requests {
		way := ways[i%len(ways)]
		method, body := http.MethodGet, io.Reader(nil)
		if !strings.Contains(way.url, "jump") && !strings.Contains(way.url, "flaky") && i%4 == 3 {
			method, body = http.MethodPost, strings.NewReader("a body")
		}
		r := must.Get(http.NewRequest(method, fmt.Sprintf(way.url, i), body))(t)
		resp := must.Get(way.client.Do(r))(t)
		if last = readFound(t, resp); last.verdict != "valid" || last.version != way.version || seen[last.signature["signature"]] {
			t.Fatalf("%d. %s %s over HTTP/%s: %+v", i, method, r.URL, last.version, last)
		}
		seen[last.signature["signature"]] = true
	}
	again := len(s.lines)
	for range again {
		line := <-s.lines
		must.True(t, strings.HasSuffix(line, " valid"), "before it was sent again: %s", line)
	}
	t.Logf("%d requests, %d of them sent twice, since the site closed the connection", requests, again)
	s.refusesWhatIsChanged(t, key)
}

// direct sends a request to the site without heed.
func (s *site) direct(t *testing.T, method, host, target string, h http.Header) string {
	t.Helper()
	c := testkit.Dial(t, s.ports["h1.test:443"]).TLS(&tls.Config{RootCAs: s.ca.Pool(), ServerName: "h1.test"})
	text := method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n"
	for name, lines := range h {
		text += name + ": " + lines[0] + "\r\n"
	}
	c.Send(text + "\r\n")
	return readFound(t, c.Head(method)).verdict
}

// refusesWhatIsChanged sends signatures of heed's with other requests, at other times, again.
func (s *site) refusesWhatIsChanged(t *testing.T, key *passport.Key) {
	t.Helper()
	signer := must.Get(passport.NewSigner(key, "https://bots.test/news/keys.json"))(t)
	r := &passport.Request{Method: "GET", Scheme: "https", Authority: "h1.test", Target: "/page?a=b"}
	signed := func(form passport.Form, at time.Time) http.Header {
		h := http.Header{}
		signer.Sign(h, r, form, at)
		return h
	}
	for _, form := range []passport.Form{passport.Dictionary, passport.String} {
		h := signed(form, time.Now())
		for _, want := range []string{"valid", "invalid: replayed"} {
			must.Equal(t, s.direct(t, "GET", "h1.test", "/page?a=b", h), want)
		}
		for name, c := range map[string]struct{ method, host, target string }{
			"another method": {"DELETE", "h1.test", "/page?a=b"}, "another host": {"GET", "site.test", "/page?a=b"}, "another path": {"GET", "h1.test", "/other?a=b"},
		} {
			must.Equal(t, s.direct(t, c.method, c.host, c.target, signed(form, time.Now())), "invalid: invalid signature", name)
		}
		h = signed(form, time.Now())
		h.Set("Signature-Input", strings.Replace(h.Get("Signature-Input"), `nonce="`, `nonce="AAAA`, 1))
		must.Equal(t, s.direct(t, "GET", "h1.test", "/page?a=b", h), "invalid: invalid signature", "another nonce")
		for want, at := range map[string]time.Time{"invalid: created in the future": time.Now().Add(time.Hour), "invalid: Signature expired": time.Now().Add(-2 * time.Minute)} {
			must.Equal(t, s.direct(t, "GET", "h1.test", "/page?a=b", signed(form, at)), want)
		}
	}
	must.Equal(t, s.direct(t, "GET", "h1.test", "/page?a=b", nil), "unsigned", "unsigned")
}
