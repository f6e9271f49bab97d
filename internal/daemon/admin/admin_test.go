package admin

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const token = "0123456789abcdef"

// large is more than a client with small buffers takes.
var large = bytes.Repeat([]byte("heed_x 1\n"), 1<<15)

// oneUser knows the user admin.
type oneUser struct{ wait time.Duration }

func (u oneUser) Verify(_ context.Context, _ netip.Addr, user, password string) (bool, time.Duration) {
	return user == "admin" && password == "right" && u.wait == 0, u.wait
}

// health is what the end points of health report.
type health struct{ notReady, unwell []string }

// rig is a server on a loopback address.
type rig struct {
	t        *testing.T
	addr     string
	settings atomic.Pointer[Settings]
	health   atomic.Pointer[health]
	log      lockedLog
	lasting  chan context.Context // of requests for /lasting, which end with their client
}

// lockedLog is a log that may be read while it is written.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T, s Settings) *rig {
	t.Helper()
	r := &rig{t: t, lasting: make(chan context.Context)}
	r.settings.Store(&s)
	r.health.Store(&health{})
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.addr = l.Addr().String()
	server := New(Config{
		Live: r.settings.Load, Health: func() (notReady, unwell []string) { h := r.health.Load(); return h.notReady, h.unwell }, ProxyName: "heed-7",
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) }),
		Log:     slog.New(slog.NewTextHandler(&r.log, nil)),
		Dashboard: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			switch q.URL.Path {
			case "/fault":
				panic("a fault")
			case "/lasting":
				r.lasting <- q.Context()
				<-q.Context().Done()
			}
			r := q
			fmt.Fprintf(w, "dashboard %s may act: %v", r.URL.Path, MayAct(r.Context()))
		}),
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		server.Shutdown(ctx)
		must.OK(t, <-served, "Serve")
	})
	return r
}

// ask sends a request, with fields "Name: value", and returns status and body.
func (r *rig) ask(method, path string, fields ...string) (int, string) {
	r.t.Helper()
	c := testkit.Dial(r.t, r.addr)
	host := "Host: " + r.addr
	for i, f := range fields {
		if strings.HasPrefix(f, "Host:") {
			host, fields = f, append(fields[:i:i], fields[i+1:]...)
			break
		}
	}
	c.Send(method + " " + path + " HTTP/1.1\r\n" + strings.Join(append([]string{host}, fields...), "\r\n") + "\r\nConnection: close\r\n\r\n")
	a := c.Answer(method)
	for _, name := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Cross-Origin-Resource-Policy"} {
		if a.StatusCode != http.StatusBadRequest && a.Header.Get(name) == "" {
			r.t.Errorf("%s %s: the answer %s has no %s", method, path, a.Status, name)
		}
	}
	return a.StatusCode, string(a.Body)
}

func (r *rig) expect(status int, method, path string, fields ...string) string {
	r.t.Helper()
	got, body := r.ask(method, path, fields...)
	must.True(r.t, got == status, "%s %s %q: %d, want %d\n%.200s", method, path, fields, got, status, body)
	return body
}

// A page in the operator's browser resolves its own name to 127.0.0.1.
func TestAdmin_OnlyTheNamesOfTheListenerAreServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{Hosts: []string{"heed.example.org"}})
	_, port, _ := net.SplitHostPort(r.addr)
	for _, host := range []string{r.addr, "localhost", "localhost:" + port, "LOCALHOST.:80", "127.0.0.1", "127.9.9.9:1", "[::1]:" + port, "[::ffff:127.0.0.1]", "heed.example.org", "Heed.Example.Org:443"} {
		r.expect(200, "GET", "/metrics", "Host: "+host)
	}
	for _, host := range []string{"evil.test", "evil.test:" + port, "127.0.0.1.evil.test", "localhost.evil.test", "evil.localhost", "192.0.2.1", "[2001:db8::1]", "0.0.0.0:" + port, "heed.example.org.evil.test", "xheed.example.org", "2130706433", "localhost:x", "[::1", ""} {
		for _, path := range []string{"/metrics", "/", "/healthz", "/readyz", "/debug/pprof/"} {
			status, body := r.ask("GET", path, "Host: "+host)
			must.True(t, status == 421 || status == 400, "Host %q: %d %.60s", host, status, body)
		}
	}
	r.expect(400, "CONNECT", "127.0.0.1:80")
	r.expect(400, "GET", "http://127.0.0.1/metrics")
}

func TestAdmin_ARequestThatCameThroughHeedIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{Token: token})
	for _, via := range []string{"Via: 1.1 heed-7", "Via: 1.1 other, 1.1 heed-7 (comment)"} {
		r.expect(403, "GET", "/metrics", via, "Authorization: Bearer "+token)
	}
	r.expect(200, "GET", "/metrics", "Via: 1.1 other", "Authorization: Bearer "+token)
}

func TestAdmin_WithoutCredentialsOnlyHealthIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{Token: token, Users: oneUser{}, Actions: true, Pprof: true})
	r.health.Store(&health{notReady: []string{"the secret reason"}, unwell: []string{"the other secret"}})
	basic := func(user, password string) string {
		q, _ := http.NewRequest(http.MethodGet, "/", nil)
		q.SetBasicAuth(user, password)
		return "Authorization: " + q.Header.Get("Authorization")
	}
	for _, wrong := range []string{"X: y", "Authorization: Bearer", "Authorization: Bearer " + token + "0", "Authorization: Bearer " + token[1:], basic("admin", "wrong"), basic("", ""), basic(token, ""), "Authorization: Token " + token, "Cookie: token=" + token} {
		for _, path := range []string{"/", "/metrics", "/debug/pprof/heap", "/any/page", "/metrics?token=" + token} {
			r.expect(401, "GET", path, wrong)
			r.expect(401, "POST", path, wrong)
		}
		must.Lack(t, r.expect(503, "GET", "/readyz", wrong), "secret", "a reason without credentials")
		r.expect(200, "GET", "/-/healthy", wrong)
	}
	for _, right := range []string{"Authorization: Bearer " + token, "authorization: bearer  " + token, basic("anyone", token), basic("admin", "right")} {
		r.expect(200, "GET", "/metrics", right)
		must.Contain(t, r.expect(200, "POST", "/page", right), "may act: true", right)
		must.Contain(t, r.expect(503, "GET", "/-/ready", right), "not ready: the secret reason\nnot well: the other secret\n", right)
	}
	r.settings.Store(&Settings{Users: oneUser{wait: time.Minute}})
	r.expect(429, "GET", "/", basic("admin", "right"))
}

// On a loopback address without credentials every request reads and none acts.
func TestAdmin_ActionsNeedCredentialsAndTheSetting(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{Actions: true})
	must.Contain(t, r.expect(200, "POST", "/x"), "may act: false")
	r.settings.Store(&Settings{Token: token})
	must.Contain(t, r.expect(200, "POST", "/x", "Authorization: Bearer "+token), "may act: false")
}

func TestAdmin_PagesOfOtherSitesCannotUseIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{})
	for _, fields := range [][]string{
		{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"}, {"Sec-Fetch-Site: cross-site"},
	} {
		r.expect(403, "GET", "/metrics", fields...)
		r.expect(403, "POST", "/x", fields...)
	}
	r.expect(403, "POST", "/x", "Origin: http://evil.test")
	r.expect(403, "POST", "/x", "Origin: null")
	r.expect(403, "POST", "/x", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
	followed := []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Sec-Fetch-User: ?1"}
	r.expect(200, "GET", "/", followed...)
	r.expect(403, "GET", "/", followed[:3]...) // a script leads to it
	for _, dest := range []string{"iframe", "frame", "embed", "object", "image", ""} {
		r.expect(403, "GET", "/", followed[0], followed[1], "Sec-Fetch-Dest: "+dest, followed[3])
	}
	r.expect(200, "POST", "/x", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors")
	r.expect(200, "POST", "/x", "Origin: http://"+r.addr)
	r.expect(200, "GET", "/metrics", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate")
}

// An operator watches a live page when the token is replaced: the page is not served any
// more.
func TestAdmin_AnAnswerThatLastsEndsWithItsCredentials(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{Token: token})
	c := testkit.Dial(t, r.addr)
	c.Send("GET /lasting HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n\r\n")
	ctx := <-r.lasting
	must.True(t, StillAdmitted(ctx), "it is not admitted at first")
	r.settings.Store(&Settings{Token: token, Pprof: true})
	must.True(t, StillAdmitted(ctx), "other settings with the same token end it")
	r.settings.Store(&Settings{Token: strings.Repeat("n", 16)})
	must.True(t, !StillAdmitted(ctx), "it goes on with a token that was replaced")
	must.True(t, !StillAdmitted(t.Context()), "a request that was never admitted is admitted still")
}

// A fault in a page ends neither heed nor the connection unnoticed.
func TestAdmin_AFaultIsLoggedAndAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{})
	r.expect(500, "GET", "/fault")
	if text := r.log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, `panic="a fault"`) || !strings.Contains(text, "admin_test.go") {
		t.Errorf("the log: %s", text)
	}
	r.expect(200, "GET", "/page")
}

func TestAdmin_PathsLeadToNoFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{})
	for _, path := range []string{"/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/../../etc/passwd", "//etc/passwd", "/debug/pprof/../../etc/passwd", `/..\..\etc\passwd`, "/debug/pprof/%2e%2e/x"} {
		status, body := r.ask("GET", path)
		must.True(t, !strings.Contains(body, "root:") && status < 500, "%s: %d %s", path, status, body)
	}
	r.expect(404, "GET", "/debug/pprof/heap")
	r.expect(404, "GET", "/debug/pprof/")
	r.settings.Store(&Settings{Pprof: true})
	r.expect(200, "GET", "/debug/pprof/goroutine?debug=1")
	r.expect(404, "GET", "/debug/pprof/cmdline")
}

func TestAdmin_HealthIsReadOnlyAndHasBothNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{})
	for _, path := range []string{"/healthz", "/-/healthy", "/readyz", "/-/ready"} {
		r.expect(200, "GET", path)
		r.expect(200, "HEAD", path)
		r.expect(405, "POST", path)
	}
	r.health.Store(&health{notReady: []string{"heed is about to end"}})
	r.expect(200, "GET", "/healthz")
	must.Equal(t, r.expect(503, "GET", "/readyz"), "heed is not ready\nnot ready: heed is about to end\n")
}

// A thousand clients ask for a large answer and do not read it; one more is served while
// they do not, and connections beyond the bound are closed instead of waiting.
func TestAdmin_SlowReadersDoNotStopOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{})
	var slow []net.Conn
	defer func() {
		for _, c := range slow {
			c.Close()
		}
	}()
	for len(slow) < 1000 {
		c := must.Get(net.Dial("tcp", r.addr))(t)
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		slow = append(slow, c)
		fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: %s\r\n\r\n", r.addr)
	}
	r.expect(200, "GET", "/metrics")
	for len(slow) < maxConns {
		c := must.Get(net.Dial("tcp", r.addr))(t)
		slow = append(slow, c)
	}
	c := must.Get(net.Dial("tcp", r.addr))(t)
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
	_, err := c.Read(make([]byte, 1))
	must.True(t, err != nil && !strings.Contains(err.Error(), "timeout"), "connection %d: %v, want its end", maxConns+1, err)
	for _, c := range slow {
		c.Close()
	}
	testkit.Until(t, "a connection is accepted again", func() bool {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			return false
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /healthz HTTP/1.0\r\nHost: %s\r\n\r\n", r.addr)
		head, err := bufio.NewReader(c).ReadString('\n')
		return err == nil && strings.Contains(head, "200")
	})
}

func TestAdmin_LargeHeadsAndBodiesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, Settings{})
	c := testkit.Dial(t, r.addr)
	c.Send("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10))
	must.Status(t, c.Head("GET"), 431, "a large head")
	c = testkit.Dial(t, r.addr)
	c.Send("GET / HTTP/1.0\r\n\r\n")
	must.Status(t, c.Answer("GET").Response, 421, "without Host")
}

func FuzzHostname(f *testing.F) {
	for _, field := range []string{"localhost:80", "[::1]:80", "a.b", "[", ":"} {
		f.Add(field)
	}
	r := Server{}
	f.Fuzz(func(t *testing.T, field string) {
		name := hostname(field)
		q := &http.Request{Host: field}
		if r.named(q.WithContext(context.Background()), nil) && name != "localhost" {
			a, err := netip.ParseAddr(name)
			must.True(t, err == nil && a.Unmap().IsLoopback(), "%q passes as %q", field, name)
		}
	})
}
