package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"heed/cache"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
)

// A refusal because there are no rules says in words what the site did in place of
// sending them.
func TestHeed_ARefusalSaysWhatBecameOfRobotsTxt(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "User-agent: *\nDisallow: /private\n")
	z.Close()
	answers := map[string]struct {
		robots http.HandlerFunc
		says   string
	}{
		"cut.test": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "User-agent: *\n")
		}, "robots.txt was cut off before its end."},
		"zip.test": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes()[:zipped.Len()/2])
		}, "robots.txt could not be decoded as gzip."},
		"coding.test": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "compress")
			fmt.Fprint(w, "x")
		}, "robots.txt came in a content coding that was not offered"},
		"nocoding.test": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "foo\u202e")
			fmt.Fprint(w, "\x00")
		}, "robots.txt is not text, and its Content-Encoding is the name of no coding"},
		"bomb.test": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bytes.Repeat([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 300_000))
		}, "robots.txt came in a longer gzip form than 4 MiB can have."},
		"circle.test": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/robots.txt", http.StatusFound)
		}, "robots.txt redirects in a circle."},
		"far.test": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, "robots.txt redirects more than 10 times."},
		"nowhere.test": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }, "robots.txt redirects without saying where to (status 302 without a Location)."},
		"noturl.test": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://[::bad/")
			w.WriteHeader(http.StatusFound)
		}, "robots.txt redirects to what is no valid URL."},
		"inward.test": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/robots.txt", http.StatusFound)
		}, "robots.txt redirects to an address that heed may not reach."},
		"down.test": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://less.test/robots.txt", http.StatusFound)
		}, "robots.txt redirects to a less public address than its own, which is not followed."},
		"wall.test": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cf-Mitigated", "challenge")
			fmt.Fprint(w, "<html>")
		}, "robots.txt was answered with a bot wall's challenge page (Cloudflare)."},
		"header.test": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 65<<10))
		}, "robots.txt was answered with a header longer than 64 KiB."},
		"busy.test":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, "robots.txt was answered with status 429."},
		"part.test":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPartialContent) }, "robots.txt was answered with status 206."},
		"silent.test": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "robots.txt was not answered: the site closed the connection."},
		"wild.test": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "User-agent: *\n"+strings.Repeat("Disallow: /"+strings.Repeat("*a", 4096)+"\n", 257))
		}, "robots.txt has more than 1,048,576 wildcards"},
	}
	s := newSite(t, hello)
	for name, a := range answers {
		s.serve(t, name, &http.Server{Handler: a.robots})
	}
	s.resolve["less.test:80"] = "127.0.0.2:9"
	r := newRigBefore(t, s, func(c *Config) {
		w := upstream.NewHostTransports(upstream.TransportConfig{Resolve: s.resolve, Destinations: &acl.Destinations{ClassOf: func(a netip.Addr) acl.Class {
			if a.String() == "127.0.0.1" { // where the sites of this test are
				return acl.Public
			}
			return acl.Classify(a)
		}}})
		t.Cleanup(w.CloseIdleConnections)
		c.Policies = cache.New(cache.Config{Transport: w, PerFetch: w.GuardRedirects()})
	})
	for name, want := range answers {
		a := r.in(t).ask(plain, question{host: name, path: "/page", header: []string{"Accept: text/plain"}})
		must.True(t, a.StatusCode == http.StatusServiceUnavailable && strings.Contains(a.body, ": "+want.says),
			"%s: %s\n%s\nwant %s", name, a.Status, a.body, want.says)
		must.True(t, !strings.ContainsAny(a.body, "\u202e\u0080") && utf8.ValidString(a.body), "%s: %q", name, a.body)
	}
}
