package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// spellings are hosts that lead to a listener on all addresses of this machine, and others
// that programs take for those: heed takes no address that is not in canonical form.
var spellings = []string{
	"127.0.0.1", "localhost", "LocalHost", "localhost.", "a.localhost", "127.0.0.2", "127.255.255.254", "127.1", "127.0.1", "2130706433",
	"0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0.0.0.0", "0", "[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
	"[::127.0.0.1]", "[64:ff9b::7f00:1]", "[::ffff:127.9.9.9]", "x.y.LOCALHOST", "127.3.2.1", "[::0001]", "127.0.0.1.", "inside.test", "%31%32%37.0.0.1", "１２７.0.0.1",
	"LOCALHOST.", "[::FFFF:7F00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::1%25lo]", "[::1%lo]", "[::ffff:127.0.0.1%25lo]", "[::ffff:0:127.0.0.1]", "[2002:7f00:1::]", "0x7f.0x0.0x0.0x1", "0177.1", "00000127.0.0.1", "127.000.000.001",
}

// ownNames are the addresses of this machine, and the names that its resolver has for them.
func ownNames(t *testing.T) (all []string) {
	t.Helper()
	addresses := must.Get(net.InterfaceAddrs())(t)
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Addr().Is4():
			all = append(all, p.Addr().String(), "[::ffff:"+p.Addr().String()+"]")
		default:
			all = append(all, "["+p.Addr().WithZone("").String()+"]")
		}
	}
	return all
}

// A bot that is wrapped by heed tries to read the admin listener, and to act on it.
func TestAttack_TheAdminListenerIsNotReachedThroughHeed(t *testing.T) {
	t.Parallel()
	free := testkit.FreeAddr(t)
	_, port, _ := net.SplitHostPort(free)
	o := testkit.NewOrigin(t,
		testkit.Site{Name: "site.test", Redirects: map[string]string{"/to": "http://127.0.0.1:" + port + "/metrics"}},
		testkit.Site{Name: "robots.test", Redirects: map[string]string{"/robots.txt": "http://127.0.0.1:" + port + "/metrics"}},
	)
	h := start(t, o, "0.0.0.0:"+port, fmt.Sprintf("\"inside.test:%s\" = %q\n", port, free))
	status, _ := h.read("/metrics")
	must.Need(t, status == http.StatusUnauthorized, "without a token: %d", status)
	loops := 0
	refused := func(what string, resp *http.Response, body string) {
		t.Helper()
		bad := resp.StatusCode == http.StatusBadRequest // what is no host
		if !bad && (resp.StatusCode != http.StatusBadGateway || !strings.Contains(resp.Header.Get("Proxy-Status"), "proxy_loop_detected")) || strings.Contains(body, "admin listener") {
			t.Errorf("%s: %s %q %.100s", what, resp.Status, resp.Header.Get("Proxy-Status"), body)
		}
		if !bad {
			loops++
		}
	}
	for _, host := range slices.Concat(spellings, ownNames(t)) {
		// The port in another form, and TLS to the listener, which has none.
		for _, request := range []string{"GET http://%s:%s/metrics", "POST http://%s:%s/try", "GET http://%s:%s/robots.txt", "GET https://%s:%s/metrics", "GET http://%s:00%s/metrics"} {
			what := fmt.Sprintf(request, host, port)
			c := testkit.Dial(t, h.Addr)
			c.Send(what + " HTTP/1.1\r\nHost: " + host + ":" + port + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			a := c.Answer("GET")
			refused(what, a.Response, string(a.Body))
		}
		h.throughTunnels(host, port, refused)
	}
	must.True(t, loops >= 120, "only %d requests of 7 for each of 20 spellings were refused as loops", loops)
	h.redirects(refused)
	for _, r := range h.Records() {
		if url := r.Text("url"); strings.Contains(url, ":"+port) && r.Text("reason") != "loop" && r.Text("reason") != "malformed" {
			t.Errorf("%s is recorded as %s", url, r.Text("reason"))
		}
	}
}

// throughTunnels opens tunnels to host, and requests the metrics inside those that are opened:
// the address of a name is known when it is dialled only.
func (h *heed) throughTunnels(host, port string, refused func(string, *http.Response, string)) {
	h.t.Helper()
	for _, port := range []string{port, "0" + port} {
		what := "CONNECT " + host + ":" + port
		c := testkit.Dial(h.t, h.Addr)
		c.Send(what + " HTTP/1.1\r\nHost: " + host + ":" + port + "\r\n\r\n")
		resp := c.Head(http.MethodConnect)
		if resp.StatusCode == http.StatusOK {
			c.Send("GET /metrics HTTP/1.1\r\nHost: " + host + ":" + port + "\r\nConnection: close\r\n\r\n")
			a := c.Answer("GET")
			resp = a.Response
		}
		refused(what, resp, "")
	}
}

// redirects follows what sites say, through heed.
func (h *heed) redirects(refused func(string, *http.Response, string)) {
	h.t.Helper()
	following := h.client()
	following.CheckRedirect = nil
	resp := must.Get(following.Get("http://site.test/to"))(h.t)
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	refused("a redirect", resp, string(body))
	resp = must.Get(h.client().Get("http://robots.test/page"))(h.t)
	resp.Body.Close()
	must.True(h.t, resp.StatusCode != http.StatusOK, "robots.txt from the admin listener: %s", resp.Status)
}

// A heed behind a Unix socket has no address that a client could name, and replaces the
// socket of one that was killed.
func TestAdmin_AUnixSocketIsForItsGroup(t *testing.T) {
	t.Parallel()
	o := testkit.NewOrigin(t, testkit.Site{Name: "site.test"})
	path := filepath.Join(t.TempDir(), "admin.sock")
	config := o.Config("[admin]\nlisten = \"unix:" + path + "\"\n")
	get := func() string {
		t.Helper()
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
		resp := must.Get(c.Get("http://localhost/readyz"))(t)
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	first := testkit.Start(t, testkit.Options{Config: config})
	must.Equal(t, get(), "heed is ready\n")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket: %v %v", info.Mode(), err)
	}
	first.Signal(syscall.SIGKILL)
	first.Exit()
	second := testkit.Start(t, testkit.Options{Config: config})
	must.Equal(t, get(), "heed is ready\n", "after a kill")
	second.Signal(syscall.SIGTERM)
	second.Exit()
	_, err := os.Stat(path)
	must.True(t, err != nil, "the socket is left behind")
}

// heed stops while a download runs: it is not ready any more while it still serves the
// download, and status says the same.
func TestReady_EndsBeforeTheDrain(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	site := testkit.RawSite(t, func(c net.Conn) {
		buf := make([]byte, 4<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if strings.HasPrefix(string(buf[:n]), "GET /robots.txt") {
				io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
				continue
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n12")
			<-answer
			io.WriteString(c, "34")
		}
	})
	admin := testkit.FreeAddr(t)
	h := &heed{testkit.Start(t, testkit.Options{Config: testkit.AnyPort + "[admin]\nlisten = \"" + admin + "\"\n[upstream.resolve]\n\"site.test:80\" = \"" + site + "\"\n"}), t, admin}
	resp := must.Get(h.client().Get("http://site.test/download"))(t)
	defer resp.Body.Close()
	status, _ := h.read("/readyz")
	must.Need(t, status == http.StatusOK, "ready: %d", status)
	h.Signal(syscall.SIGTERM)
	testkit.Until(t, "heed is not ready", func() bool {
		status, text := h.read("/-/ready")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "not ready: heed is about to end\n")
	})
	status, _ = h.read("/healthz")
	must.True(t, status == http.StatusOK, "healthz: %d", status)
	out, code := h.command("status")
	must.True(t, code == 1 && strings.Contains(out, "not ready: heed is about to end\n"), "status: %d %s", code, out)
	must.Equal(t, h.sum("heed_requests_in_flight"), 1, "requests under way during the drain")
	close(answer)
	body, err := io.ReadAll(resp.Body)
	must.True(t, err == nil && string(body) == "1234", "the download: %q %v", body, err)
	must.Equal(t, h.Exit(), 0, "heed ended with")
}

// What does not keep heed from serving is shown by both, and both say that it serves: a store
// that is away once it was reached.
func TestReady_AgreesWithStatus(t *testing.T) {
	t.Parallel()
	o, store := testkit.NewOrigin(t, testkit.Site{Name: "site.test"}), testkit.NewRedis(t)
	h := start(t, o, testkit.FreeAddr(t), "[fleet]\nurl = \"redis://"+store.Addr+"\"\n")
	testkit.Until(t, "the store is reached", func() bool {
		_, text := h.read("/readyz")
		return text == "heed is ready\n"
	})
	store.Kill()
	testkit.Until(t, "the store is found away", func() bool {
		status, text := h.read("/readyz")
		return status == http.StatusOK && strings.HasPrefix(text, "heed is ready\nnot well: the fleet's store is away: ")
	})
	out, code := h.command("status", "--json")
	var status struct {
		Well, Ready bool
		Why         []string `json:"why_not"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil || code != 1 || status.Well || !status.Ready || len(status.Why) != 1 {
		t.Errorf("status: %d %v %s", code, err, out)
	}
	must.True(t, h.sum("heed_fleet_up") == 0 && h.sum("heed_fleet_errors_total") >= 1,
		"heed_fleet_up %d, heed_fleet_errors_total %d", h.sum("heed_fleet_up"), h.sum("heed_fleet_errors_total"))
}

// A reload takes another token from the file; one that fails is a metric.
func TestAdmin_AReloadChangesTheToken(t *testing.T) {
	t.Parallel()
	o := testkit.NewOrigin(t, testkit.Site{Name: "site.test"})
	file := testkit.Write(t, filepath.Join(t.TempDir(), "token"), strings.Repeat("a", 32)+"\n")
	must.OK(t, os.Chmod(file, 0o600))
	admin := testkit.FreeAddr(t)
	h := testkit.Start(t, testkit.Options{Config: o.Config("[admin]\nlisten = \"" + admin + "\"\ntoken = \"file:" + file + "\"\n")})
	metrics := func(token string) (int, string) {
		q, _ := http.NewRequest(http.MethodGet, "http://"+admin+"/metrics", nil)
		q.Header.Set("Authorization", "Bearer "+token)
		resp := must.Get(http.DefaultClient.Do(q))(t)
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	before, after := strings.Repeat("a", 32), strings.Repeat("b", 32)
	if status, text := metrics(before); status != http.StatusOK || !strings.Contains(text, "\nheed_config_last_reload_successful 1\n") {
		t.Errorf("at the start: %d", status)
	}
	testkit.Write(t, file, after)
	h.Signal(syscall.SIGHUP)
	testkit.Until(t, "the new token is accepted", func() bool { status, _ := metrics(after); return status == http.StatusOK })
	status, _ := metrics(before)
	must.True(t, status == http.StatusUnauthorized, "the old token: %d", status)
	testkit.Write(t, file, "short")
	h.Signal(syscall.SIGHUP)
	testkit.Until(t, "the failed reload is a metric", func() bool {
		_, text := metrics(after)
		return strings.Contains(text, "\nheed_config_last_reload_successful 0\n")
	})
}
