package command_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// trusting is client for one that trusts the heed's CA.
func trusting(t *testing.T, h *testkit.Heed) *http.Client {
	t.Helper()
	c := client(t, h)
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: h.Roots()}
	return c
}

// answer asks for an address and returns status, Proxy-Status and body.
func answer(t *testing.T, c *http.Client, address string) (status int, proxyStatus, body string) {
	t.Helper()
	resp := must.Get(c.Get(address))(t)
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header.Get("Proxy-Status"), string(text)
}

// far are two sites that only upstream proxies reach: one that is intercepted and
// one that is judged by its host alone.
type far struct {
	o                   *testkit.Origin
	web, secure, tunnel string // http and https of the one, https of the other
}

func newFar(t *testing.T, seen, tunnelled string) *far {
	t.Helper()
	site := testkit.Site{
		Robots: "User-agent: *\nDisallow: /private\n\nUser-agent: barred\nDisallow: /\n", Config: testkit.LetsUpstreamIn,
		Files: map[string]string{"/page.txt": "a page", "/private.txt": "no page"},
	}
	one, other := site, site
	one.Name, other.Name = seen, tunnelled
	f := &far{o: testkit.NewOrigin(t, one, other)}
	f.web, f.secure, f.tunnel = f.address(t, "http", seen), f.address(t, "https", seen), f.address(t, "https", tunnelled)
	return f
}

func (f *far) address(t *testing.T, scheme, name string) string {
	t.Helper()
	_, port := must.Two(net.SplitHostPort(f.o.Addr(name, scheme)))(t)
	return scheme + "://" + name + ":" + port
}

// config is a proxy.toml whose sites are reached through an upstream proxy.
func (f *far) config(upstream, more string) string {
	u, err := url.Parse(f.tunnel)
	if err != nil {
		panic(err) // it is ours
	}
	return fmt.Sprintf("%s[log]\nformat = \"json\"\n[upstream]\nproxy = %q\nca_file = %q\n[[host]]\nmatch = [%q]\nhttps = \"host-only\"\nports = [%s]\n%s",
		testkit.AnyPort, upstream, f.o.CA.File, u.Hostname(), u.Port(), more)
}

// visit asks for pages that are allowed and for some that are not, through a
// heed of these settings, and returns what it has said when it has ended.
func (f *far) visit(t *testing.T, options testkit.Options) string {
	t.Helper()
	h := testkit.Start(t, options)
	c := trusting(t, h)
	for _, site := range []string{f.web, f.secure} {
		status, _, body := answer(t, c, site+"/page.txt")
		must.True(t, status == http.StatusOK && body == "a page", "%s/page.txt is answered with %d %q", site, status, body)
		if status, _, body := answer(t, c, site+"/private.txt"); status != http.StatusForbidden || !strings.Contains(body, "robots.txt") {
			t.Errorf("%s/private.txt is answered with %d %q", site, status, body)
		}
	}
	direct := client(t, h)
	direct.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: f.o.CA.Pool()} // it sees the site's own certificate
	status, _, body := answer(t, direct, f.tunnel+"/page.txt")
	must.True(t, status == http.StatusOK && body == "a page", "the tunnel to %s gives %d %q", f.tunnel, status, body)
	barred := client(t, h)
	barred.Transport.(*http.Transport).ProxyConnectHeader = http.Header{"User-Agent": {"barred/1.0"}}
	if _, err := barred.Get(f.tunnel + "/page.txt"); err == nil || !strings.Contains(err.Error(), "Forbidden") && !strings.Contains(err.Error(), "robots.txt") {
		t.Errorf("who is barred from all of the site gets a tunnel: %v", err)
	}
	direct.CloseIdleConnections()
	h.Signal(syscall.SIGTERM) // its tunnels close, and are logged
	h.Exit()
	for _, name := range []string{f.web, f.secure} {
		u, _ := url.Parse(name)
		must.True(t, len(f.o.HitsOf(u.Hostname(), "/private.txt")) == 0, "a refused address reached the site")
	}
	must.Lack(t, h.Stderr(), testkit.UpstreamPassword, "the log contains the password")
	return h.Stderr()
}

// credentials are those that an upstream proxy asks for; nil when it does not.
func credentials(asks bool) *url.Userinfo {
	if !asks {
		return nil
	}
	return url.UserPassword(testkit.UpstreamUser, testkit.UpstreamPassword)
}

func TestSitesAndTheirRobotsTxtAreReachedThroughSquid(t *testing.T) {
	t.Parallel()
	f := newFar(t, "site.test", "tunnel.test")
	for _, asks := range []bool{false, true} {
		squid := testkit.NewSquid(t, f.o.CA, asks, "site.test", "tunnel.test")
		for scheme, addr := range map[string]string{"http": squid.Addr, "https": squid.TLS} {
			t.Run(fmt.Sprint(scheme, " asks=", asks), func(t *testing.T) {
				u, who := url.URL{Scheme: scheme, Host: addr, User: credentials(asks)}, "-"
				if asks {
					who = testkit.UpstreamUser
				}
				f.visit(t, testkit.Options{Config: f.config(u.String(), "")})
				squid.AwaitLog("GET "+f.web+"/robots.txt "+who+" 200", "GET "+f.web+"/page.txt "+who+" 200",
					"CONNECT "+strings.TrimPrefix(f.secure, "https://")+" "+who+" 200", "CONNECT "+strings.TrimPrefix(f.tunnel, "https://")+" "+who+" 200")
				must.Lack(t, squid.Log(), "private", "a refused address went to the proxy")
			})
		}
	}
}

// microsocks logs only hosts and ports. The rest is shown by the sites, which accept no
// other address, and by the rules of their robots.txt, which are kept.
func TestSitesAndTheirRobotsTxtAreReachedThroughSOCKS(t *testing.T) {
	t.Parallel()
	f := newFar(t, "localhost", "127.0.0.1")
	for _, asks := range []bool{false, true} {
		t.Run(fmt.Sprint("asks=", asks), func(t *testing.T) {
			socks := testkit.NewSOCKS(t, asks)
			u := url.URL{Scheme: "socks5", Host: socks.Addr, User: credentials(asks)}
			f.visit(t, testkit.Options{Config: f.config(u.String(), "")})
			for _, site := range []string{f.web, f.secure, f.tunnel} {
				_, hostPort, _ := strings.Cut(site, "://")
				socks.AwaitLog("connected to " + hostPort)
			}
		})
	}
}

func TestTheUpstreamProxyAndItsPasswordMayStandElsewhere(t *testing.T) {
	t.Parallel()
	f := newFar(t, "site.test", "tunnel.test")
	squid := testkit.NewSquid(t, f.o.CA, true, "site.test", "tunnel.test")
	u := url.URL{Scheme: "http", Host: squid.Addr, User: credentials(true)}
	secret := testkit.Write(t, filepath.Join(t.TempDir(), "upstream"), u.String()+"\n")
	f.visit(t, testkit.Options{Config: f.config("file:"+secret, "")})
	f.visit(t, testkit.Options{Config: f.config("env:NEXT_PROXY", ""), Env: []string{"NEXT_PROXY=" + u.String()}})

	must.OK(t, os.Chmod(secret, 0o604))
	open := testkit.Launch(t, testkit.Options{Config: f.config("file:"+secret, "")})
	if status := open.Exit(); status == 0 || !strings.Contains(open.Stderr(), "upstream.proxy: the file "+secret+" can be read by everyone (mode 0604): run `chmod o= "+secret+"`") {
		t.Errorf("with a file that everybody can read heed ends with %d:\n%s", status, open.Stderr())
	}
	gone := testkit.Launch(t, testkit.Options{Config: f.config("env:NEXT_PROXY", "")})
	if status := gone.Exit(); status == 0 || !strings.Contains(gone.Stderr(), "upstream.proxy: heed's environment has no variable NEXT_PROXY") {
		t.Errorf("without the variable heed ends with %d:\n%s", status, gone.Stderr())
	}
}

// What the upstream proxy does wrong is not told as a word of the site's.
func TestRFC9209_WhatTheUpstreamProxyDoesWrongIsA502(t *testing.T) {
	t.Parallel()
	f := newFar(t, "site.test", "tunnel.test")
	squid := testkit.NewSquid(t, f.o.CA, true, "site.test")
	socks := testkit.NewSOCKS(t, true)
	closed := testkit.FreeAddr(t)
	for upstream, want := range map[string]string{
		"http://" + closed:                  "connection_refused",
		"https://" + closed:                 "connection_refused",
		"socks5://" + closed:                "connection_refused",
		"http://" + squid.Addr:              "proxy_configuration_error",
		"http://news:wrong@" + squid.Addr:   "proxy_configuration_error",
		"socks5://" + socks.Addr:            "proxy_configuration_error",
		"socks5://news:wrong@" + socks.Addr: "proxy_configuration_error",
		"https://localhost" + squid.TLS[9:]: "tls_certificate_error", // it shows one for 127.0.0.1
	} {
		t.Run(upstream, func(t *testing.T) {
			h := testkit.Start(t, testkit.Options{Config: f.config(upstream, "")})
			c := trusting(t, h)
			status, proxyStatus, body := answer(t, c, f.secure+"/page.txt")
			must.True(t, status == http.StatusBadGateway && strings.Contains(proxyStatus, "error="+want),
				"%d, Proxy-Status %s\n%s", status, proxyStatus, body)
			must.Contain(t, body, "[upstream] proxy", "the answer does not say whose fault it is")
			must.True(t, !strings.Contains(body, "wrong") && !strings.Contains(h.Stderr(), "wrong"),
				"the answer or the log contains the password:\n%s\n%s", body, h.Stderr())
		})
	}
	must.Equal(t, len(f.o.HitsOf("site.test", "/page.txt")), 0, "times the site was reached")
}

// An upstream proxy that refuses heed's credentials is named by every answer, and makes
// heed unhealthy; a reload after its file was corrected is all that is needed.
func TestUpstream_WrongCredentialsAreTheProxysAndEndWithAReload(t *testing.T) {
	t.Parallel()
	f := newFar(t, "web.test", "tunnel.test")
	squid := testkit.NewSquid(t, f.o.CA, true, "web.test", "tunnel.test")
	secret := filepath.Join(t.TempDir(), "upstream")
	write := func(password string) {
		t.Helper()
		text := fmt.Sprintf("http://%s:%s@%s\n", testkit.UpstreamUser, password, squid.Addr)
		must.OK(t, os.WriteFile(secret, []byte(text), 0o600))
	}
	write("wrong")
	h := testkit.Start(t, testkit.Options{Config: f.config("file:"+secret, "")})
	c := trusting(t, h)
	for _, site := range []string{f.web, f.secure} {
		status, proxyStatus, body := answer(t, c, site+"/page.txt")
		if status != 502 || !strings.Contains(proxyStatus, "proxy_configuration_error") || !strings.Contains(body, "upstream proxy "+squid.Addr) || strings.Contains(body, "robots.txt was") {
			t.Errorf("%s: status %d, %s\n%s", site, status, proxyStatus, body)
		}
	}
	heed := func(verb string) (status int, out string) {
		cmd := exec.Command(testkit.Binary(t), verb)
		cmd.Env = append(os.Environ(), "HEED_STATE="+h.State)
		text, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(text)
	}
	if status, out := heed("status"); status != 1 || !strings.Contains(out, "the upstream proxy "+squid.Addr+" cannot be used: ") {
		t.Errorf("status %d:\n%s", status, out)
	}
	write(testkit.UpstreamPassword)
	if status, out := heed("reload"); status != 0 || !strings.Contains(out, "upstream.proxy ("+secret+"); dropped: 2 cached failures") {
		t.Errorf("reload: status %d:\n%s", status, out)
	}
	for _, site := range []string{f.web, f.secure} {
		status, _, body := answer(t, c, site+"/page.txt")
		must.True(t, status == http.StatusOK && body == "a page", "%s after the reload: status %d\n%s", site, status, body)
	}
	status, out := heed("status")
	must.True(t, status == 0, "after the reload: status %d:\n%s", status, out)
}
