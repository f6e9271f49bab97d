package proxy

import (
	"os"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A client behind a mapped port asks for the files under the name and port that it knows.
func TestHeed_OwnPagesAreServedWhateverPortHostNames(t *testing.T) {
	file, _ := testkit.NewCA(t).Leaf(t, "proxy.test")
	r := newRig(t, hello, func(c *Config) {
		c.CACert = func() ([]byte, error) { return os.ReadFile(file) }
		c.Contact = func() string { return "https://example.org/bot" }
	})
	for _, c := range []struct{ path, accept, kind, want string }{
		{"/", "*/*", "text/plain; charset=utf-8", "http://mapped.test:8080/ca.pem"},
		{"/", "text/html,*/*", "text/html; charset=utf-8", "http://mapped.test:8080/ca.pem"},
		{"/proxy.pac", "*/*", "application/x-ns-proxy-autoconfig", `"PROXY mapped.test:8080"`},
		{"/ca.pem", "*/*", "application/x-pem-file", "BEGIN CERTIFICATE"},
		{"/ca.der", "*/*", "application/x-x509-ca-cert", ""},
	} {
		conn := testkit.Dial(t, r.addr)
		conn.Send("GET " + c.path + " HTTP/1.1\r\nHost: mapped.test:8080\r\nAccept: " + c.accept + "\r\n\r\n")
		a := conn.Answer("GET")
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != c.kind || !strings.Contains(string(a.Body), c.want) || len(a.Body) == 0 {
			t.Errorf("%s: %s %q\n%.300s", c.path, a.Status, a.Header.Get("Content-Type"), a.Body)
		}
		must.Lack(t, string(a.Body), "DIRECT", "%s: the word DIRECT is in it", c.path)
	}
}
