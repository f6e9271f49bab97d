package proxy

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A request that has been here before is 502, however it comes back.
func TestViaLoopIsRefused(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		path := "/loop/" + string(m)
		for _, via := range []string{"1.1 rig-7f3a", "1.0 fred, HTTP/1.1 rig-7f3a (comment)", "2 rig-7f3a"} {
			a := r.in(t).ask(m, question{path: path, header: []string{"Via: " + via}})
			got := proxyStatusOf(t, a.Header)
			must.True(t, a.StatusCode == 502 && got == "proxy_loop_detected", "Via %q: %s %q", via, a.Status, got)
		}
		e := r.records.target(t, path)
		must.True(t, e.Decision.Reason == rules.ReasonLoop && e.Host == "site.test", "record %+v", e)
		a := r.in(t).ask(m, question{path: "/other", header: []string{"Via: 1.1 rig-7f3a2, 1.1 other-rig-7f3a"}})
		must.Equal(t, a.StatusCode, 200, "another proxy is no loop: %s", a.Status)
	})
	c := testkit.Dial(t, r.addr)
	c.Send("CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\nVia: 1.1 rig-7f3a\r\n\r\n")
	a := c.Answer("GET")
	must.True(t, a.StatusCode == 502 && proxyStatusOf(t, a.Header) == "proxy_loop_detected", "CONNECT: %s", a.Status)
	must.Lack(t, strings.Join(r.site.reached(), "\n"), "/loop", "the site saw")
}

// heed does not talk to itself: by address, the unspecified one too, by CONNECT, or by a name that
// leads to it, whatever the path. One request of a client stays one request.
func TestProxyingToItselfIsRefused(t *testing.T) {
	r := newRig(t, hello)
	_, port, _ := net.SplitHostPort(r.addr)
	for _, path := range []string{"/page", "/robots.txt", "/ca.pem"} {
		for _, authority := range []string{r.addr, "[::ffff:127.0.0.1]:" + port, "0.0.0.0:" + port, "[::]:" + port, "self.test"} {
			c := testkit.Dial(t, r.addr)
			c.Send(requestTo(authority, "GET", "http://"+authority, path))
			a := c.Answer("GET")
			got := proxyStatusOf(t, a.Header)
			must.True(t, a.StatusCode == 502 && got == "proxy_loop_detected", "http://%s%s: %s %q", authority, path, a.Status, got)
		}
		a := r.ask(absolute, question{host: "self.test", path: path})
		got := proxyStatusOf(t, a.Header)
		must.True(t, a.StatusCode == 502 && got == "proxy_loop_detected", "https://self.test%s: %s %q", path, a.Status, got)
		for _, m := range []mode{mitmH1, mitmH2, inTunnel} {
			if a := r.ask(m, question{host: "self.test", path: path}); a.StatusCode != 502 || proxyStatusOf(t, a.Header) != "proxy_loop_detected" {
				t.Errorf("%s to self.test%s: %s", m, path, a.Status)
			}
		}
	}
	c := testkit.Dial(t, r.addr)
	c.Send("CONNECT " + r.addr + " HTTP/1.1\r\nHost: " + r.addr + "\r\n\r\n")
	a := c.Answer("GET")
	must.True(t, a.StatusCode == 502 && proxyStatusOf(t, a.Header) == "proxy_loop_detected", "CONNECT to itself: %s", a.Status)
	r.records.await(t, "the CONNECT", func(e *audit.Entry) bool {
		return e.Method == "CONNECT" && e.Host == r.addr && e.Decision.Reason == rules.ReasonLoop
	})
	for _, e := range r.records.all() {
		must.Equal(t, e.Outcome.Status, 502, "a request came back: %+v", e)
	}
}

// A name whose address is not known before it is dialled leads to heed. Also requests that
// no robots.txt decides on are recorded as loops, and observed ones are refused.
func TestNamesOfHeedItselfAreRecordedAsLoops(t *testing.T) {
	for name, change := range map[string]func(*Config){"enforced": func(*Config) {}, "observed": observing} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, hello, change)
			_, port, _ := net.SplitHostPort(r.addr)
			for _, path := range []string{"/page", "/robots.txt"} {
				c := testkit.Dial(t, r.addr)
				c.Send(requestTo("self.test:"+port, "GET", "http://self.test:"+port, path))
				a := c.Answer("GET")
				must.True(t, a.StatusCode == 502 && proxyStatusOf(t, a.Header) == "proxy_loop_detected", "%s: %s", path, a.Status)
				if e := r.records.target(t, path); e.Decision.Reason != rules.ReasonLoop || e.Decision.Verdict != rules.Refuse || e.Judged != audit.NotJudged {
					t.Errorf("%s is recorded as %+v", path, e)
				}
			}
		})
	}
}

const proxyTrap = "PROXY_TRAP_ADDRESS"

// Proxy variables in heed's own environment are ignored, by requests and by
// the fetches of robots.txt. net/http reads the environment once per process,
// so the test runs in a child of its own.
func TestProxyVariablesAreIgnored(t *testing.T) {
	if os.Getenv(proxyTrap) != "" {
		r := newRig(t, hello)
		eachMode(t, allModes, func(t *testing.T, m mode) {
			a := r.in(t).ask(m, question{path: "/page"})
			must.True(t, a.StatusCode == 200, "%s %s", a.Status, a.body)
		})
		return
	}
	caught := make(chan string, 100)
	trap := testkit.RawSite(t, func(c net.Conn) {
		head := make([]byte, 200)
		n, _ := c.Read(head)
		caught <- string(head[:n])
		c.Close()
	})
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), proxyTrap+"=1", "NO_PROXY=", "no_proxy=")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		cmd.Env = append(cmd.Env, name+"=http://"+trap, strings.ToLower(name)+"=http://"+trap)
	}
	out, err := cmd.CombinedOutput()
	must.True(t, err == nil && strings.Contains(string(out), "--- PASS: "+t.Name()), "%v\n%s", err, out)
	for len(caught) > 0 {
		t.Errorf("the proxy of the environment was asked: %q", <-caught)
	}
}
