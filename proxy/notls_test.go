package proxy

import (
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/refusal"
)

// Sites whose TLS crypto/tls cannot use, whatever is set: a client learns the cause, that a
// retry does not help, and what the operator can do.
func TestHeed_SitesThatItsTLSCannotUse(t *testing.T) {
	t.Parallel()
	dir, openssl := t.TempDir(), testkit.Program(t, "openssl")
	run := func(args ...string) {
		t.Helper()
		out, err := exec.Command(openssl, args...).CombinedOutput()
		must.Need(t, err == nil, "%v: %s", err, out)
	}
	key, cert, negative := filepath.Join(dir, "key"), filepath.Join(dir, "cert"), filepath.Join(dir, "negative")
	run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-subj", "/CN=site", "-days", "2")
	run("x509", "-in", cert, "-signkey", key, "-set_serial", "-5", "-days", "2", "-out", negative)
	s := newSite(t, hello)
	serve := func(name string, args ...string) {
		addr := testkit.FreeAddr(t)
		s.resolve[name+":443"] = addr
		server := exec.Command(openssl, append([]string{"s_server", "-quiet", "-www", "-accept", addr, "-key", key}, args...)...)
		must.OK(t, server.Start())
		t.Cleanup(func() {
			_ = server.Process.Kill()
			_ = server.Wait()
		})
		testkit.Until(t, name+" is served", func() bool {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	serve("dhe.test", "-cert", cert, "-tls1_2", "-cipher", "DHE-RSA-AES128-SHA")
	serve("negative.test", "-cert", negative)
	s.resolve["http.test:443"] = s.resolve["site.test:80"]
	r := newRigBefore(t, s)
	for host, c := range map[string]struct{ kind, title, detail string }{
		"dhe.test":      {"tls_alert_received", "heed reached dhe.test, but TLS with it failed: the site has ended the handshake: handshake failure", "key exchange with DHE only, is left to the client with https = \"tunnel\""},
		"negative.test": {"tls_certificate_error", "heed cannot reach negative.test: its certificate cannot be parsed", "With https = \"tunnel\" at the [[host]]"},
		"http.test":     {"tls_protocol_error", "heed reached http.test, but TLS with it failed: first record does not look like a TLS handshake", "no TLS connection with it came about; no rule of robots.txt is behind this. A retry will not help."},
	} {
		got := r.in(t).ask(absolute, question{host: host, path: "/page"})
		var problem refusal.Problem
		must.OK(t, json.Unmarshal([]byte(got.body), &problem))
		if got.StatusCode != 502 || problem.Title != c.title || problem.Retry != "no" || !strings.Contains(problem.Detail, c.detail) || !strings.Contains(got.Header.Get("Proxy-Status"), c.kind) {
			t.Errorf("%s: %s %s\n%s", host, got.Status, got.Header.Get("Proxy-Status"), got.body)
		}
	}
}
