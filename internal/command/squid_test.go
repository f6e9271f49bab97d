package command

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// Debian's Squid with the lines of the manual sends only what heed has allowed, whole, also
// while heed ends and begins again.
func TestSquidSendsOnlyWhatHeedAllows(t *testing.T) {
	t.Parallel()
	squidAsks(t, false)
}

// The same over https, which the Squid in .build/squid decrypts: with HEED_TEST_FULL=1.
func TestSquidSendsOnlyWhatHeedAllows_HTTPS(t *testing.T) {
	t.Parallel()
	if !testkit.Full {
		t.Skip("Squid with OpenSSL is not installed for the short form")
	}
	squidAsks(t, true)
}

func squidAsks(t *testing.T, https bool) {
	var seen sync.Map // "METHOD /path" that the site was asked for
	s := newSquidSite(t, https, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
			return
		}
		seen.Store(r.Method+" "+r.URL.Path, true)
		sum := sha256.New()
		io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%s %x", r.URL.Path, sum.Sum(nil))
	})
	state := testkit.StateDir(t)
	start := func() *testkit.Heed {
		return testkit.Start(t, testkit.Options{State: state, Config: testkit.AnyPort + "[access]\nprivate_destinations = \"allow\"\n" + s.config})
	}
	heeds := []*testkit.Heed{start()}
	squid := func() *http.Client { return s.client(t, s.lines(t, "# squid.conf")) }
	ask := func(c *http.Client, method, path string, body []byte) (status int, proxyStatus, text string) {
		req := must.Get(http.NewRequest(method, s.base+path, bytes.NewReader(body)))(t)
		resp, err := c.Do(req)
		if err != nil {
			return 0, "", err.Error()
		}
		defer resp.Body.Close()
		got, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header.Get("Proxy-Status"), string(got)
	}
	upload := make([]byte, 1<<20)
	rand.Read(upload)
	empty := sha256.Sum256(nil)
	page := func(path string) string { return fmt.Sprintf("%s %x", path, empty) }

	c := squid()
	status, _, text := ask(c, "GET", "/page", nil)
	must.True(t, status == 200 && text == page("/page"), "a page: %d %s", status, text)
	status, _, text = ask(c, "POST", "/upload", upload)
	must.True(t, status == 200 && text == fmt.Sprintf("/upload %x", sha256.Sum256(upload)), "an upload: %d %s", status, text)
	if status, proxyStatus, text := ask(c, "GET", "/private/canary", nil); status != 403 || !strings.Contains(proxyStatus, "error=http_request_denied") || !strings.Contains(text, "Disallow: /private") {
		t.Errorf("a canary: %d %s %s", status, proxyStatus, text)
	}
	var opened atomic.Int32
	counted := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			opened.Add(1)
		}
	}})
	for range 30 {
		resp := must.Get(c.Do(must.Get(http.NewRequestWithContext(counted, "GET", s.base+"/private/again", nil))(t)))(t)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	must.True(t, opened.Load() < 20, "Squid closes its client's connection behind refusals: %d of 30", opened.Load())
	if status, _, _ := ask(c, "POST", "/private/upload", upload); status != 403 && status != 0 { // closed while the client writes
		t.Errorf("an upload to a canary: %d", status)
	}
	if !https {
		c.Transport.(*http.Transport).ProxyConnectHeader = http.Header{"User-Agent": {"tunnels/1.0"}}
		resp, err := c.Get("https://site.test/")
		must.True(t, err != nil && strings.Contains(err.Error(), "Forbidden"), "a CONNECT: %v, %v", resp, err)
	}

	// Under load, heed ends and begins again.
	var answered sync.Map
	var over atomic.Bool
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := 0; !over.Load(); n++ {
				path := fmt.Sprintf("/load/%d/%d", i, n)
				if status, _, text := ask(c, "GET", path, nil); status == 200 && text == page(path) {
					answered.Store("GET "+path, true)
				} else if status == 200 {
					t.Errorf("%s: %s", path, text)
				}
				ask(c, "GET", fmt.Sprintf("/private/%d/%d", i, n), nil)
			}
		})
	}
	some := func(before int) {
		testkit.Until(t, "pages that come through", func() bool { return count(&answered) >= before+20 })
	}
	some(0)
	heeds[0].Signal(syscall.SIGTERM)
	heeds[0].Exit()
	heeds = append(heeds, start())
	some(count(&answered))
	over.Store(true)
	clients.Wait()

	heeds[1].Signal(syscall.SIGKILL)
	heeds[1].Exit()
	status, proxyStatus, _ := ask(c, "GET", "/without-heed", nil)
	must.True(t, status == 500 && proxyStatus == "", "without heed: %d %s", status, proxyStatus)
	heeds = append(heeds, start())
	status, _, text = ask(squid(), "GET", "/again", nil)
	must.True(t, status == 200 && text == page("/again"), "both are here again: %d %s", status, text)
	heeds[2].Signal(syscall.SIGTERM)
	heeds[2].Exit()

	allowed := map[string]bool{}
	list := exec.Command(testkit.Binary(t), "audit", "list", "--json", filepath.Join(state, "audit.db"))
	out, err := list.Output()
	must.OK(t, err, "heed audit list")
	for line := range strings.Lines(string(out)) {
		var d struct{ Method, URL, Verdict string }
		must.OK(t, json.Unmarshal([]byte(line), &d), "%q", line)
		if d.Verdict == "allow" {
			allowed[d.Method+" "+strings.TrimPrefix(d.URL, s.base)] = true
		}
	}
	seen.Range(func(request, _ any) bool {
		if text := request.(string); !allowed[text] || strings.Contains(text, "private") || strings.Contains(text, "without-heed") {
			t.Errorf("the site was asked for %s, which no record allows", text)
		}
		return true
	})
	t.Logf("%d requests reached the site, each in the record", count(&seen))
}

// What Squid has in its cache reaches no client whose request heed refuses, and each that it answers
// from there is in the record.
func TestSquidAsksHeedBeforeItLooksIntoItsCache(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int32
	s := newSquidSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: other\nDisallow: /page\n")
			return
		}
		fetched.Add(1)
		w.Header().Set("Cache-Control", "max-age=3600")
		io.WriteString(w, "page")
	})
	state := testkit.StateDir(t)
	heed := testkit.Start(t, testkit.Options{State: state, Config: testkit.AnyPort + "[access]\nprivate_destinations = \"allow\"\n" + s.config})
	c := s.client(t, s.lines(t, "# squid.conf")+"cache allow all\n")
	for i, want := range []struct {
		agent  string
		status int
		cached bool
	}{{"browser/1", 200, false}, {"browser/1", 200, true}, {"other/1", 403, false}, {"third/1", 200, true}} {
		req := must.Get(http.NewRequest(http.MethodGet, s.base+"/page", nil))(t)
		req.Header.Set("User-Agent", want.agent)
		resp := must.Get(c.Do(req))(t)
		resp.Body.Close()
		if cached := strings.HasPrefix(resp.Header.Get("X-Cache"), "HIT"); resp.StatusCode != want.status || cached != want.cached {
			t.Errorf("%d, %s: %s, X-Cache %q", i, want.agent, resp.Status, resp.Header.Get("X-Cache"))
		}
	}
	heed.Signal(syscall.SIGTERM)
	heed.Exit()
	list := must.Get(exec.Command(testkit.Binary(t), "audit", "list", "--json", filepath.Join(state, "audit.db")).Output())(t)
	if n, allowed := strings.Count(string(list), "\n"), strings.Count(string(list), `"verdict":"allow"`); fetched.Load() != 1 || n != 4 || allowed != 3 {
		t.Errorf("the site was asked %d times; of %d decisions %d allow, want 1, 4 and 3\n%s", fetched.Load(), n, allowed, list)
	}
}

func count(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// squidSite is the site behind a Squid that asks a heed.
type squidSite struct {
	base     string // of its URLs
	at       string // where heed is asked
	config   string // of heed, from a [[listener]] on
	ca, bump *testkit.CA
	roots    *x509.CertPool // of clients
}

// newSquidSite starts a site, with https one that Squid decrypts.
func newSquidSite(t *testing.T, https bool, serve http.HandlerFunc) *squidSite {
	site := httptest.NewUnstartedServer(serve)
	s := &squidSite{base: "http", at: testkit.FreeAddr(t), ca: testkit.NewCA(t)}
	s.roots = s.ca.Pool()
	s.config = strings.Replace(testkit.ManualLines(t, "other-proxies", "# heed.toml"), "127.0.0.1:1344", s.at, 1)
	if https {
		site.TLS = &tls.Config{Certificates: []tls.Certificate{must.Get(tls.LoadX509KeyPair(s.ca.Leaf(t, "site.test")))(t)}}
		site.StartTLS()
		s.base, s.bump = "https", testkit.NewCA(t)
		s.roots = s.bump.Pool()
		s.config += "connect = \"bumped\"\n"
	} else {
		site.Start()
	}
	t.Cleanup(site.Close)
	address := site.Listener.Addr().String()
	_, port, _ := strings.Cut(address, ":")
	s.base += "://site.test:" + port
	s.config += fmt.Sprintf("[upstream]\nca_file = %q\n[upstream.resolve]\n\"site.test:%s\" = %q\n", s.ca.File, port, address)
	return s
}

// lines returns those of the manual for Squid under the headings.
func (s *squidSite) lines(t *testing.T, headings ...string) (all string) {
	for _, h := range headings {
		all += testkit.ManualLines(t, "other-proxies", h) + "\n"
	}
	return strings.ReplaceAll(all, "127.0.0.1:1344", s.at)
}

// client returns a client of a new Squid with these lines.
func (s *squidSite) client(t *testing.T, lines string) *http.Client {
	proxy := &url.URL{Scheme: "http", Host: testkit.NewAsking(t, lines, s.bump, s.ca, "site.test").Addr}
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: s.roots}, ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testkit.Patience}
}
