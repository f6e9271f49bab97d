package command_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
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

// newHAProxy starts Debian's HAProxy with the servers of one backend, and returns where it
// listens.
func newHAProxy(t *testing.T, servers string) (addr string) {
	t.Helper()
	addr = testkit.FreeAddr(t)
	file := testkit.Write(t, filepath.Join(t.TempDir(), "haproxy.cfg"), fmt.Sprintf(`
defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  timeout check 5s
frontend clients
  bind %s
  default_backend heeds
backend heeds
  balance roundrobin
  option httpchk GET /readyz
  default-server check inter 100ms
%s`, addr, servers))
	cmd := exec.Command(testkit.Program(t, "haproxy"), "-db", "-q", "-f", file)
	cmd.Stderr = os.Stderr
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testkit.Until(t, "HAProxy listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return addr
}

// clientAt is a client with an address of its own, each of whose requests has a connection.
func clientAt(proxy, from, user string) *http.Client {
	at := &url.URL{Scheme: "http", Host: proxy}
	if name, password, ok := strings.Cut(user, ":"); ok {
		at.User = url.UserPassword(name, password)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{Proxy: http.ProxyURL(at), DisableKeepAlives: true, DialContext: dialer.DialContext}}
}

// Behind a balancer for TCP, heed knows its clients by the PROXY protocol: access, [[client]]
// from, the count of wrong passwords and the record are those of the client.
func TestHeed_KnowsTheClientsOfALoadBalancer(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: newsbot\nDisallow: /news\n\nUser-agent: *\nDisallow: /private\n")
		}
	}))
	t.Cleanup(site.Close)
	hash := must.Get(bcrypt.GenerateFromPassword([]byte("sesame"), bcrypt.MinCost))(t)
	users := testkit.Write(t, filepath.Join(t.TempDir(), "users"), "ann:"+string(hash)+"\n")
	must.OK(t, os.Chmod(users, 0o600))
	var heeds []*testkit.Heed
	servers, ready := "", []string(nil)
	for i, how := range []string{"send-proxy-v2", "send-proxy"} {
		admin := testkit.FreeAddr(t)
		heeds = append(heeds, testkit.Start(t, testkit.Options{Config: testkit.AnyPort + fmt.Sprintf(`
proxy_protocol = ["127.0.0.1"]
[access]
clients = ["127.0.0.2/31", "127.0.0.5"]
users = %q
private_destinations = "allow"
[admin]
listen = %q
[log]
format = "json"
[[client]]
name = "news"
from = ["127.0.0.2"]
agent = ["newsbot"]
`, users, admin)}))
		ready = append(ready, "http://"+admin+"/readyz")
		servers += fmt.Sprintf("  server h%d %s %s port %s\n", i, heeds[i].Addr, how, admin[strings.LastIndexByte(admin, ':')+1:])
	}
	for _, url := range ready { // else HAProxy takes it for down, and the other gets all requests
		testkit.Until(t, "a heed is ready", func() bool {
			resp, err := http.Get(url)
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
	balancer := newHAProxy(t, servers)
	for _, c := range []struct {
		from, user, path string
		status           int
	}{
		{"127.0.0.2", "ann:sesame", "/news", 403}, // as newsbot
		{"127.0.0.3", "ann:sesame", "/news", 200},
		{"127.0.0.3", "ann:sesame", "/private", 403},
		{"127.0.0.4", "ann:sesame", "/open", 403}, // access
	} {
		for i := range 2 * len(heeds) { // one connection each, and that by which HAProxy was awaited may come between them
			must.Equal(t, status(t, clientAt(balancer, c.from, c.user), site.URL+c.path+fmt.Sprint(i)), c.status, "%+v", c)
		}
	}
	for _, h := range heeds {
		r := h.Await("the newsbot", func(r testkit.Record) bool {
			return strings.Contains(r.Text("url"), "/news") && r.Text("verdict") == "refuse"
		})
		must.True(t, strings.HasPrefix(r.Text("client"), "127.0.0.2:") && r.Text("client_name") == "news", "%v", r)
	}
	for range 24 { // more than ten for each heed
		status(t, clientAt(balancer, "127.0.0.5", "ann:guess"), site.URL+"/open")
	}
	must.Equal(t, status(t, clientAt(balancer, "127.0.0.5", "ann:guess"), site.URL+"/open"), 429, "the client that guesses passwords gets")
	must.Equal(t, status(t, clientAt(balancer, "127.0.0.3", "ann:sesame"), site.URL+"/open"), 200, "another client of the load balancer gets")
	turnsOfClients(t, balancer, heeds)
	forged := testkit.On(t, dialFrom(t, "127.0.0.9", heeds[0].Addr))
	forged.Send("PROXY TCP4 127.0.0.3 127.0.0.1 1 2\r\nGET " + site.URL + "/forged HTTP/1.1\r\n\r\n")
	if a := forged.Answer("GET"); a.StatusCode != 400 || !strings.Contains(string(a.Body), "proxy_protocol") {
		t.Errorf("a forged header: %s %s", a.Status, a.Body)
	}
	heeds[0].Await("the forged header", func(r testkit.Record) bool {
		return strings.HasPrefix(r.Text("client"), "127.0.0.9:") && r.Text("reason") == "malformed" && strings.Contains(r.Text("detail"), "the PROXY protocol came")
	})
}

// turnsOfClients sends many requests of one client to a site with a delay, then one of another
// to each heed, which is not the last to be served.
func turnsOfClients(t *testing.T, balancer string, heeds []*testkit.Heed) {
	t.Helper()
	arrived := make(chan string, 8)
	paced := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nCrawl-delay: 4\n")
			return
		}
		arrived <- r.URL.Path
	}))
	defer paced.Close()
	waiting := func(h *testkit.Heed) int {
		cmd := exec.Command(testkit.Binary(t), "pace", "list", "--json")
		cmd.Env = []string{"HEED_STATE=" + h.State}
		out, err := cmd.CombinedOutput()
		must.Need(t, err == nil, "%v: %s", err, out)
		var site struct{ Waiting int }
		_ = json.Unmarshal(out, &site) // of no site: none waits
		return site.Waiting
	}
	var all sync.WaitGroup
	send := func(n int, from, path string) {
		for range n {
			all.Go(func() { status(t, clientAt(balancer, from, "ann:sesame"), paced.URL+path) })
		}
	}
	send(6, "127.0.0.3", "/many") // one at each heed is served
	testkit.Until(t, "four requests wait", func() bool { return waiting(heeds[0])+waiting(heeds[1]) >= 4 })
	send(2, "127.0.0.2", "/few")
	var order []string
	for range 8 {
		order = append(order, <-arrived)
	}
	all.Wait() // HAProxy, which ends with the test, has passed all answers on
	must.Lack(t, strings.Join(order[6:], ""), "few", "the client with few requests came last: %v", order)
}

func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	return must.Get((&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to))(t)
}
