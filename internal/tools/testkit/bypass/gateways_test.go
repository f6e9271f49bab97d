package bypass

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
)

// gateway is a way through another proxy, which asks heed whether a request may pass.
const gateway way = "gateway"

// gateways are the proxies of the manual's lines that Debian has.
var gateways = []struct {
	name  string
	start func(t testing.TB, heed, site string) (addr string)
}{
	{"nginx", gateNginx}, {"caddy", gateCaddy}, {"haproxy", gateHAProxy},
}

// manualLines returns the manual's lines after a comment, where heed and the site have these
// addresses, and addr is the proxy's own.
func manualLines(t testing.TB, comment, heed, site, addr string) string {
	t.Helper()
	return strings.NewReplacer("127.0.0.1:3130", heed, "127.0.0.1:8080", addr, "http://:8080", "http://:"+addr[strings.LastIndexByte(addr, ':')+1:],
		"http://$http_host$request_uri", "http://"+site+"$request_uri", "{http.request.hostport}", site, "192.0.2.10:80", site).
		Replace(testkit.ManualLines(t, "other-proxies", comment))
}

func gateNginx(t testing.TB, heed, site string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		dir := t.TempDir()
		file := testkit.Write(t, filepath.Join(dir, "nginx.conf"), testkit.NginxAround(dir, manualLines(t, "# nginx.conf, in http", heed, site, addr)))
		return exec.Command(testkit.Program(t, "nginx"), "-c", file)
	})
}

func gateCaddy(t testing.TB, heed, site string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		file := testkit.Write(t, filepath.Join(t.TempDir(), "Caddyfile"), "{\n	admin off\n}\n"+manualLines(t, "# Caddyfile", heed, site, addr))
		cmd := exec.Command(testkit.Program(t, "caddy"), "run", "--config", file, "--adapter", "caddyfile")
		cmd.Env = append(cmd.Environ(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
		return cmd
	})
}

func gateHAProxy(t testing.TB, heed, site string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		lua := testkit.Write(t, filepath.Join(t.TempDir(), "heed.lua"), manualLines(t, "-- heed.lua", heed, site, addr))
		text := strings.Replace(manualLines(t, "# haproxy.cfg", heed, site, addr), "/etc/haproxy/heed.lua", lua, 1)
		return exec.Command(testkit.Program(t, "haproxy"), "-db", "-f", testkit.Write(t, filepath.Join(t.TempDir(), "haproxy.cfg"), text))
	})
}

// No spelling gets round heed where another proxy asks it with the manual's lines, and what that
// proxy sends is what heed was asked about, in the same bytes.
func TestHeed_NoSpellingGetsRoundTheProxiesThatAsk(t *testing.T) {
	t.Parallel()
	probes := append(listed(t), generate(rand.New(rand.NewPCG(seed, 2)), share())...)
	all := slices.Clone(probes)
	for _, p := range endProbes() { // Python's server cuts some of these octets off
		if !otherURL(p.target) {
			all = append(all, p)
		}
	}
	for _, s := range servers {
		if s.name != "nginx" && s.name != "python" && !testkit.Full {
			continue
		}
		for _, g := range gateways {
			t.Run(g.name+" before "+s.name, func(t *testing.T) {
				t.Parallel()
				at := testkit.FreeAddr(t)
				r := newRig(t, s, `access.private_destinations = "allow"`, "[[listener]]", fmt.Sprintf("address = %q", at), `mode = "authorize"`, `trust = ["127.0.0.1"]`,
					"[[client]]", `name = "all"`, `no_user_agent = "refuse"`)
				found := append(r.reach(probes), make([]bool, len(all)-len(probes))...)
				t.Run("asking", func(t *testing.T) { // the gateway ends with it, and its connections to the site
					r.gateway = g.start(t, at, r.witness.http)
					t.Logf("\n%s%s", heading, r.throughHeed(gateway, all, found).row())
					if got := r.unnamed("/open/page.html"); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
						t.Errorf("a request without a User-Agent is asked about with one: %.100q", got)
					}
				})
				r.recordsAgree()
				if arrived, _ := r.witness.arrivals(); len(arrived) < len(all)/50 {
					t.Errorf("of %d requests the site got %d", len(all), len(arrived))
				}
			})
		}
	}
}

// unnamed asks the gateway for a target without a User-Agent, and returns the answer.
func (r *rig) unnamed(target string) string {
	r.t.Helper()
	c := testkit.Dial(r.t, r.gateway)
	defer c.Close()
	c.Send("GET " + target + " HTTP/1.1\r\nHost: " + r.site + "\r\nConnection: close\r\n\r\n")
	return string(c.Rest())
}
