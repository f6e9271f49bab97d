package command_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// The passwords that are looked for. They have characters that are written in
// several ways.
const (
	clientPassword   = "s3cret-Pa55:w@rd" // of ann, for heed
	wrongPassword    = "gu3ss-Pa55:w@rd"
	upstreamPassword = "upstr3am-Pa55w@rd" // of heed, for the proxy behind it
	sitePassword     = "s1te-Pa55w@rd"     // of a client, for the site
)

// wire keeps every octet that came in through its listeners.
type wire struct {
	mu   sync.Mutex
	came strings.Builder
}

func (w *wire) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.came.String()
}

// tapped is a listener whose connections write what they read into the wire.
type tapped struct {
	net.Listener
	wire *wire
}

// tappedConn is one of its connections.
type tappedConn struct {
	net.Conn
	wire *wire
}

func (l tapped) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tappedConn{c, l.wire}, nil
}

func (c tappedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.wire.came.Write(p[:n])
	return n, err
}

// serveTapped serves on a free port until the test ends. With a configuration
// for TLS, the wire holds what was inside.
func serveTapped(t *testing.T, w *wire, secure *tls.Config, h http.Handler) (addr string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr = l.Addr().String()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{Handler: h}
	go server.Serve(tapped{l, w})
	t.Cleanup(func() { server.Close() })
	return addr
}

// leakSite is a site that keeps every octet it is sent.
func leakSite(t *testing.T, w *wire, authority *testkit.CA) (plain, secure string) {
	cert := must.Get(tls.LoadX509KeyPair(authority.Leaf(t, "leak.test")))(t)
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
		case strings.HasSuffix(r.URL.Path, "/info/refs"):
			fmt.Fprint(w, strings.Repeat("0123456789", 4)+"\trefs/heads/main\n")
		default:
			fmt.Fprintln(w, "the page")
		}
	})
	return serveTapped(t, w, nil, site), serveTapped(t, w, &tls.Config{Certificates: []tls.Certificate{cert}}, site)
}

// leakUpstream is a proxy that asks heed for a password and leads to the site.
func leakUpstream(t *testing.T, w *wire, plain, secure string) (addr string) {
	to := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", plain)
	}}
	t.Cleanup(to.CloseIdleConnections)
	forward := &httputil.ReverseProxy{Transport: to, Rewrite: func(*httputil.ProxyRequest) {}}
	return serveTapped(t, w, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("heed:"+upstreamPassword)) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method != http.MethodConnect {
			forward.ServeHTTP(w, r)
			return
		}
		site, err := net.Dial("tcp", secure)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer site.Close()
		client, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(site, buffered)
		io.Copy(client, site)
	}))
}

// spelled are the ways in which a password could stand somewhere.
func spelled(user, password string) []string {
	return []string{
		password, url.QueryEscape(password), url.PathEscape(password), url.UserPassword(user, password).String(),
		base64.StdEncoding.EncodeToString([]byte(user + ":" + password)), base64.StdEncoding.EncodeToString([]byte(password)),
	}
}

// nowhere checks that a text contains no spelling of a password.
func nowhere(t *testing.T, where, text, user, password string) {
	t.Helper()
	for _, s := range spelled(user, password) {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("%s contains %q: ...%q", where, s, text[max(0, i-200):i+len(s)])
		}
	}
}

// The credentials that clients and operators send to heed, and that heed sends to its own
// proxy, are in nothing that is forwarded, logged, stored or printed. Clients take the
// user and the password from the address of the proxy, as it is written into an
// environment.
func TestCredentialsDoNotLeak(t *testing.T) {
	t.Parallel()
	for _, upstream := range []bool{true, false} {
		if !upstream && !testkit.Full {
			break // the same without the one step
		}
		t.Run(map[bool]string{false: "directly", true: "through another proxy"}[upstream], func(t *testing.T) {
			testLeaks(t, upstream)
		})
	}
}

func testLeaks(t *testing.T, upstream bool) {
	authority, atSite, atUpstream := testkit.NewCA(t), &wire{}, &wire{}
	plain, secure := leakSite(t, atSite, authority)
	hash := must.Get(bcrypt.GenerateFromPassword([]byte(clientPassword), bcrypt.MinCost))(t)
	dir := t.TempDir()
	users := writeSecret(t, filepath.Join(dir, "users"), "ann:"+string(hash)+"\n")
	way := fmt.Sprintf("resolve = { \"leak.test:80\" = %q, \"leak.test:443\" = %q }\n", plain, secure)
	if upstream {
		at := url.URL{Scheme: "http", User: url.UserPassword("heed", upstreamPassword), Host: leakUpstream(t, atUpstream, plain, secure)}
		way = fmt.Sprintf("proxy = %q\n", at.String())
	}
	config := testkit.AnyPort + fmt.Sprintf("[log]\nlevel = \"debug\"\n[access]\nusers = %q\n[upstream]\nca_file = %q\n%s", users, authority.File, way)
	h := testkit.Start(t, testkit.Options{Config: config})

	shown := leakTraffic(t, h, dir)
	file := writeSecret(t, filepath.Join(dir, "proxy.toml"), config)
	for _, args := range [][]string{
		{"status"}, {"status", "--json"}, {"config", "show"}, {"config", "check"}, {"cache", "list"}, {"cache", "show", "leak.test"},
		{"check", "--explain", "--agent", "bot", "http://leak.test/private"}, {"env"}, {"run", "--", "curl", "-sS", "http://leak.test/"},
	} {
		cmd := exec.Command(testkit.Binary(t), args...)
		cmd.Env = append(os.Environ(), "HEED_STATE="+h.State, "HEED_CONFIG="+file, testkit.RaceOptions)
		out, _ := cmd.CombinedOutput() // what it shows counts, whatever it says
		must.True(t, len(out) > 0, "heed %v shows nothing", args)
		shown += string(out)
	}
	h.Signal(os.Interrupt)
	h.Exit()

	for where, text := range map[string]string{
		"sent to the site": atSite.text(), "sent to the upstream proxy": atUpstream.text(), "shown": shown,
		"logged": h.Stderr(), "stored": stored(t, h.State),
	} {
		nowhere(t, where, text, "ann", clientPassword)
		nowhere(t, where, text, "ann", wrongPassword)
		if where != "sent to the upstream proxy" {
			nowhere(t, where, text, "heed", upstreamPassword)
		}
		if !strings.HasPrefix(where, "sent") {
			nowhere(t, where, text, "guest", sitePassword)
		}
	}
	must.True(t, !upstream || strings.Contains(atUpstream.text(), spelled("heed", upstreamPassword)[4]),
		"heed does not show the upstream proxy its password, so that nothing was tested")
	must.Contain(t, h.Stderr(), `"user":"ann"`, "the log does not tell the user")
	must.Contain(t, atSite.text(), spelled("guest", sitePassword)[4], "the site did not get the password that was meant for it")
}

func writeSecret(t *testing.T, path, text string) string {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// stored is everything in a directory.
func stored(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must.OK(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all.WriteString(path + "\n" + string(data))
		return err
	}))
	return all.String()
}

// leakTraffic has real clients, which find user and password in their
// environment, and a few that do as they should not, ask for pages. It returns
// what heed answered.
func leakTraffic(t *testing.T, h *testkit.Heed, dir string) (shown string) {
	t.Helper()
	bundle := filepath.Join(dir, "bundle.pem")
	out, err := exec.Command("curl", "-sS", "--noproxy", "*", "-o", bundle, "http://"+h.Addr+"/bundle.pem").CombinedOutput()
	must.Need(t, err == nil, "%v: %s", err, out)
	clients := testkit.Clients(t)
	with := func(user, password string, args ...string) (string, error) {
		at := url.URL{Scheme: "http", User: url.UserPassword(user, password), Host: h.Addr}
		program := args[0]
		if strings.HasPrefix(program, "fetch-") {
			program = filepath.Join(clients, program)
		}
		cmd := exec.Command(program, args[1:]...)
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
			"http_proxy=" + at.String(), "https_proxy=" + at.String(), "HTTP_PROXY=" + at.String(), "HTTPS_PROXY=" + at.String(),
			"SSL_CERT_FILE=" + bundle, "CURL_CA_BUNDLE=" + bundle, "GIT_SSL_CAINFO=" + bundle, "PERL_LWP_SSL_CA_FILE=" + bundle,
			"NODE_EXTRA_CA_CERTS=" + bundle, "NODE_USE_ENV_PROXY=1", "PERL_LWP_ENV_PROXY=1", "GIT_TERMINAL_PROMPT=0",
		}
		out, err := cmd.CombinedOutput()
		shown += string(out)
		return string(out), err
	}
	for _, client := range [][]string{
		{"curl", "-sSf"}, {"wget", "-nv", "-O", "-", "--ca-certificate=" + bundle}, {"fetch-python"}, {"fetch-go"}, {"fetch-node"}, {"fetch-perl"}, {"git", "ls-remote"},
	} {
		for _, scheme := range []string{"http", "https"} {
			if out, err := with("ann", clientPassword, append(client, scheme+"://leak.test/page")...); err != nil {
				t.Errorf("%s, %s: %v: %s", client[0], scheme, err, out)
			}
			out, err := with("ann", clientPassword, append(client, scheme+"://leak.test/private")...)
			must.True(t, err != nil && strings.Contains(out, "403"), "%s, %s, refused: %v: %s", client[0], scheme, err, out)
			out, err = with("ann", wrongPassword, append(client, scheme+"://leak.test/page")...)
			must.True(t, err != nil, "%s, %s, with a wrong password: %v: %s", client[0], scheme, err, out)
		}
	}
	token := "Proxy-Authorization: Basic " + spelled("ann", clientPassword)[4]
	for _, args := range [][]string{
		{"curl", "-sS", "-i", "-H", token, "https://leak.test/inside"}, // inside the tunnel
		{"curl", "-sS", "-i", "-H", token, "-H", "Connection: proxy-authorization", "-H", "Trailer: Proxy-Authorization", "https://leak.test/named"},
		{"curl", "-sS", "-i", "--http1.1", "-H", token, "https://leak.test/inside"},
		{"curl", "-sS", "-i", "--http1.1", "-H", token, "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "https://leak.test/upgrade"},
		{"curl", "-sS", "-i", "-X", "TRACE", "-H", "Max-Forwards: 0", "http://leak.test/traced"},
		{"curl", "-sS", "-i", "-u", "guest:" + sitePassword, "http://leak.test/site"},
		{"curl", "-sS", "-i", "http://guest:" + url.PathEscape(sitePassword) + "@leak.test/site"},
		{"curl", "-sS", "-i", "-H", token, "http://" + h.Addr + "/"},
		{"curl", "-sS", "-i", "-X", "B@D", "http://leak.test/method"},
		{"curl", "-sS", "-i", "--request-target", "http://guest:" + url.PathEscape(sitePassword) + "@leak.test/private", "http://leak.test/"},
		{"curl", "-sS", "-i", "--request-target", "http://ann:" + url.PathEscape(clientPassword) + "@leak.test/%zz", "http://leak.test/"},
		{"curl", "-sS", "-i", "--request-target", "http://ann:" + clientPassword + "@leak.test:99999/x", "http://leak.test/"},
		{"curl", "-sS", "-i", "-H", "Host: other.test", "http://leak.test/mismatch"},
	} {
		with("ann", clientPassword, args...) // whatever it makes of it
	}
	return shown
}
