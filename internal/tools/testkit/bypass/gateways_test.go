package bypass

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
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

// manualLines returns the lines of the manual that begin with a comment, where heed and the site
// have these addresses, and addr is the proxy's own.
func manualLines(t testing.TB, comment, heed, site, addr string) string {
	t.Helper()
	_, after, found := strings.Cut(testkit.Read(t, testkit.Root(t)+"/internal/output/manual/other-proxies.md"), "    "+comment+"\n")
	if !found {
		t.Fatalf("the manual has no lines %q", comment)
	}
	lines, _, _ := strings.Cut(after, "\n\n")
	return strings.NewReplacer("127.0.0.1:3130", heed, "127.0.0.1:8080", addr, "http://:8080", "http://:"+addr[strings.LastIndexByte(addr, ':')+1:],
		"http://$http_host$request_uri", "http://"+site+"$request_uri", "{http.request.hostport}", site, "192.0.2.10:80", site).Replace(lines) + "\n"
}

func gateNginx(t testing.TB, heed, site string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		dir := t.TempDir()
		text := "daemon off;\npid " + dir + "/pid;\nerror_log " + dir + "/log;\nevents {}\nhttp {\naccess_log off;\n"
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			text += kind + "_temp_path " + dir + "/" + kind + ";\n"
		}
		file := testkit.Write(t, filepath.Join(dir, "nginx.conf"), text+manualLines(t, "# nginx.conf, in http", heed, site, addr)+"}\n")
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
	asked := servers[:1]
	if testkit.Full {
		asked = servers
	}
	for _, s := range asked {
		for _, g := range gateways {
			t.Run(g.name+" before "+s.name, func(t *testing.T) {
				t.Parallel()
				at := testkit.FreeAddr(t)
				r := newRig(t, s, `access.private_destinations = "allow"`, "[[listener]]", fmt.Sprintf("address = %q", at), `mode = "authorize"`, `trust = ["127.0.0.1"]`)
				found := r.reach(probes)
				t.Run("asking", func(t *testing.T) { // the gateway ends with it, and its connections to the site
					r.gateway = g.start(t, at, r.witness.http)
					t.Logf("\n%s%s", heading, r.throughHeed(gateway, probes, found).row())
				})
				r.recordsAgree()
				if arrived, _ := r.witness.arrivals(); len(arrived) < len(probes)/50 {
					t.Errorf("of %d requests the site got %d", len(probes), len(arrived))
				}
			})
		}
	}
}
