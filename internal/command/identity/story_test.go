package identity

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/passport"
)

// witness is a site, and another one, that remember what they were sent. The site answers 403
// to heed itself, and redirects to the other for the robots.txt that it gives to clients.
type witness struct {
	ca    *testkit.CA
	reach string // settings by which both are reached

	mu   sync.Mutex
	seen []passport.Message
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{ca: testkit.NewCA(t)}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: w}
	t.Cleanup(func() { server.Close() })
	w.reach = fmt.Sprintf("[upstream]\nca_file = %q\n[upstream.resolve]\n", w.ca.File)
	for _, name := range []string{"site.test", "other.test"} {
		cert, key := w.ca.Leaf(t, name)
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		w.reach += fmt.Sprintf("%q = %q\n", name+":443", l.Addr())
		go server.ServeTLS(l, cert, key)
	}
	return w
}

// ServeHTTP implements http.Handler.
func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, passport.Message{Method: r.Method, Scheme: "https", Authority: r.Host, Target: r.RequestURI, Header: r.Header})
	switch {
	case r.Host == "other.test":
	case strings.HasPrefix(r.UserAgent(), "heed/"):
		rw.WriteHeader(http.StatusForbidden)
	case r.URL.Path == "/robots.txt":
		http.Redirect(rw, r, "https://other.test/rules", http.StatusFound)
	}
}

// signedBy returns by which of the keys the last request for a target by a client was signed.
func (w *witness) signedBy(t *testing.T, target, userAgent string, keys map[string]*passport.Key) string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.seen) - 1; i >= 0; i-- {
		m := &w.seen[i]
		if m.Target != target || !strings.HasPrefix(m.Header.Get("User-Agent"), userAgent) {
			continue
		}
		c, err := passport.Read(m)
		if err == passport.ErrUnsigned {
			return "unsigned"
		} else if err != nil {
			return err.Error()
		}
		for name, k := range keys {
			if o, _ := c.Verify([]passport.ListedKey{{PublicKey: k.PublicKey}}, time.Now()); o == passport.Verified {
				return name
			}
		}
		return "no valid signature"
	}
	return "not sent"
}

// heed runs a command of heed and returns its output and its status.
func heed(t *testing.T, state string, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "HEED_STATE=" + state, testkit.RaceOptions}
	cmd.Dir = state
	text, err := cmd.CombinedOutput()
	must.Need(t, cmd.ProcessState != nil, "%v", err)
	return string(text), cmd.ProcessState.ExitCode()
}

// A key is changed, broken and ended while heed runs: a reload takes it whole or not at all,
// status warns before the end, and after it nothing is signed.
func TestHeed_AKeyIsChangedAndEndsWhileHeedRuns(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWitness(t)
	keys := map[string]*passport.Key{}
	for name, days := range map[string]int{"first": 0, "second": 0, "short": 3, "own": 0} {
		keys[name] = made(t, filepath.Join(dir, name), days)
	}
	use := func(text string) {
		t.Helper()
		must.OK(t, os.WriteFile(filepath.Join(dir, "news.key"), []byte(text), 0o600))
	}
	use(testkit.Read(t, filepath.Join(dir, "first")))
	h := testkit.Start(t, testkit.Options{Config: testkit.AnyPort + w.reach + `
[robots]
sign = { key = "file:` + dir + `/own", agent = "https://bots.test/heed.json" }
[[client]]
name = "news"
from = ["127.0.0.0/8"]
agent = ["NewsBot"]
send_user_agent = "NewsBot/2.1"
sign = { key = "file:` + dir + `/news.key", agent = "https://bots.test/news.json" }
`})
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr}), TLSClientConfig: &tls.Config{RootCAs: h.Roots()}}
	t.Cleanup(tr.CloseIdleConnections)
	signed := func(step, want string) {
		t.Helper()
		target := "/" + strings.ReplaceAll(step, " ", "-")
		resp := must.Get((&http.Client{Transport: tr, Timeout: testkit.Patience}).Get("https://site.test" + target))(t)
		resp.Body.Close()
		if got := w.signedBy(t, target, "NewsBot/2.1", keys); got != want || resp.StatusCode != 200 {
			t.Errorf("%s: signed by %s, want %s; status %d", step, got, want, resp.StatusCode)
		}
	}
	signed("first", "first")
	for _, c := range []struct{ target, userAgent, want string }{
		{"/robots.txt", "heed/1.0", "own"}, {"/robots.txt", "NewsBot/2.1", "first"}, {"/rules", "NewsBot/2.1", "first"}, {"/rules", "heed/1.0", "not sent"},
	} {
		must.Equal(t, w.signedBy(t, c.target, c.userAgent, keys), c.want, "%s as %s: signed by", c.target, c.userAgent)
	}
	must.OK(t, os.Remove(filepath.Join(dir, "news.key")))
	signed("the file is not read again", "first")
	for _, step := range []struct{ name, file, reload, status, want string }{
		{"another key", testkit.Read(t, filepath.Join(dir, "second")), "in force", "client news as https://bots.test/news.json (key " + keys["second"].Thumbprint + ", no end)", "second"},
		{"a broken key", "{\"kty\":\"OKP\"}", "client.sign: ", "key " + keys["second"].Thumbprint, "second"},
		{"no key at all", "", "it contains no key", "key " + keys["second"].Thumbprint, "second"},
		{"a short one", testkit.Read(t, filepath.Join(dir, "short")), "in force", "not well: the key of client news ends on ", "short"},
		{"an ended one", strings.Replace(testkit.Read(t, filepath.Join(dir, "first")), "{", `{"exp":1700000000,`, 1), "in force", "not well: the key of client news has ended on 2023-11-14", "unsigned"},
	} {
		use(step.file)
		out, _ := heed(t, h.State, "reload")
		must.True(t, strings.Contains(out, step.reload), "%s: the reload says %s", step.name, out)
		signed(step.name, step.want)
		if out, status := heed(t, h.State, "status"); !strings.Contains(out, step.status) || (status == 1) != (strings.Contains(step.status, "not well") || step.reload != "in force") {
			t.Errorf("%s: status %d\n%s", step.name, status, out)
		}
	}
	out, status := heed(t, h.State, "audit", "list", "--json")
	for name, want := range map[string]int{"first": 2, "second": 3, "short": 1, "own": 0} {
		n := strings.Count(out, `"signed_key":"`+keys[name].Thumbprint+`","signed_by":"https://bots.test/news.json"`)
		must.True(t, n == want && status == 0, "the record has %d requests signed by the %s key, want %d", n, name, want)
	}
}

// heed run --sign signs the requests of one command, by settings without a key.
func TestHeed_ARunIsSigned(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWitness(t)
	keys := map[string]*passport.Key{"key": made(t, filepath.Join(dir, "news.key"), 0)}
	state := testkit.StateDir(t)
	settings := testkit.Write(t, filepath.Join(dir, "proxy.toml"), w.reach)
	run := func(flags ...string) (string, int) {
		t.Helper()
		args := append([]string{"run", "--config", settings}, flags...)
		return heed(t, state, append(args, "--", testkit.Program(t, "curl"), "-sS", "-A", "Curl/1", "https://site.test/page")...)
	}
	const agent = "https://bots.test/news.json"
	if out, status := run("--sign", filepath.Join(dir, "news.key"), "--sign-agent", agent); status != 0 || w.signedBy(t, "/page", "Curl/1", keys) != "key" || !strings.Contains(out, "  signed: 1 of 1 allowed request\n") {
		t.Errorf("%d, signed by %s\n%s", status, w.signedBy(t, "/page", "Curl/1", keys), out)
	}
	out, status := run()
	must.True(t, status == 0 && w.signedBy(t, "/page", "Curl/1", keys) == "unsigned", "without --sign: %d\n%s", status, out)
	for want, flags := range map[string][]string{
		"--sign needs --sign-agent": {"--sign", filepath.Join(dir, "news.key")},
		"--sign-agent needs --sign": {"--sign-agent", agent},
		"no such file":              {"--sign", filepath.Join(dir, "none"), "--sign-agent", agent},
		"not an absolute https URL": {"--sign", filepath.Join(dir, "news.key"), "--sign-agent", "http://bots.test/"},
		"it contains no key":        {"--sign", settings, "--sign-agent", agent},
	} {
		out, status := run(flags...)
		must.True(t, status == 2 && strings.Contains(out, want), "%q: %d\n%s", flags, status, out)
	}
}
