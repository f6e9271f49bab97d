package cache

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

const file = "User-agent: *\nDisallow: /private\n"

// serve starts a site on loopback and returns its origin.
func serve(t testing.TB, h http.HandlerFunc) rules.Origin {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return originOf(t, s.URL)
}

func originOf(t testing.TB, address string) rules.Origin {
	t.Helper()
	u := must.Get(url.Parse(address))(t)
	return must.Get(rules.OriginOf(u))(t)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func testFetcher(t testing.TB) *fetcher {
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return fetcherOver(tr)
}

func fetch(t *testing.T, o rules.Origin) answer {
	t.Helper()
	return testFetcher(t).fetched(t.Context(), o, variantKey{}, validators{})
}

// fetched returns the answer to fetch.
func (f *fetcher) fetched(ctx context.Context, o rules.Origin, as variantKey, tags validators) (a answer) {
	f.fetch(ctx, o, as, tags, func(got *answer) { a = *got })
	return a
}

func fetcherOver(tr http.RoundTripper) *fetcher {
	return newFetcher(Config{Transport: reaching{tr}, UserAgent: "heed-test/1", Timeout: time.Minute}.withDefaults())
}

func zipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	w.Close()
	return b.Bytes()
}

func TestFetch_SendsOurNameAndNothingElse(t *testing.T) {
	var got *http.Request
	o := serve(t, func(w http.ResponseWriter, r *http.Request) { got = r; _, _ = io.WriteString(w, file) })
	a := fetch(t, o)
	must.Need(t, a.err == nil && a.status == 200 && string(a.body) == file && a.url == o.RobotsURL(), "answer %+v", a)
	must.True(t, got.Method == "GET" && got.RequestURI == "/robots.txt" && got.Host == o.Authority(),
		"%s %s of %s", got.Method, got.RequestURI, got.Host)
	must.Equal(t, got.UserAgent(), "heed-test/1", "User-Agent")
	must.Equal(t, got.Header.Get("Accept-Encoding"), "gzip, deflate, br, zstd", "Accept-Encoding")
	testFetcher(t).fetched(t.Context(), o, variantKey{userAgent: "Client/2"}, validators{})
	must.Equal(t, got.UserAgent(), "Client/2", "as the client: User-Agent")
	for name := range got.Header {
		must.True(t, name == "User-Agent" || name == "Accept" || name == "Accept-Encoding", "sends %s", name)
	}
}

func TestRFC9309_RedirectsAreFollowed(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, file) })
	var asked []string
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		to := map[string]string{
			"/robots.txt": "../sub/a?q=1#fragment",
			"/sub/a?q=1":  "//" + r.Host + "/b",
			"/b":          "c",
			"/c":          "?d",
			"/c?d":        other.RobotsURL(),
		}[r.RequestURI]
		status := []int{301, 302, 303, 307, 308}[len(asked)-1]
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	a := fetch(t, o)
	must.Need(t, a.err == nil && string(a.body) == file && a.origin == o && a.url == other.RobotsURL(), "answer %+v", a)
	want := "/robots.txt /sub/a?q=1 /b /c /c?d"
	must.True(t, strings.Join(asked, " ") == want, "asked %v, want %s", asked, want)
}

func TestHeed_CredentialsInALocationAreDropped(t *testing.T) {
	var authorization, uri string
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		authorization, uri = r.Header.Get("Authorization"), r.RequestURI
		if r.URL.Path == "/robots.txt" {
			w.Header().Set("Location", "http://user:secret@"+r.Host+"/there")
			w.WriteHeader(302)
		}
	})
	if a := fetch(t, o); a.err != nil || authorization != "" || uri != "/there" || strings.Contains(a.url, "secret") {
		t.Errorf("Authorization %q at %s, answer %+v", authorization, uri, a)
	}
}

func TestHeed_FromHTTPSToHTTPIsRefused(t *testing.T) {
	plainAsked := false
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) { plainAsked = true })
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.RobotsURL(), http.StatusMovedPermanently)
	}))
	t.Cleanup(s.Close)
	f := testFetcher(t)
	f.PerFetch = func() http.RoundTripper { return s.Client().Transport }
	a := f.fetched(t.Context(), originOf(t, s.URL), variantKey{}, validators{})
	must.True(t, a.err != nil && strings.Contains(a.err.Error(), "https to http") && !plainAsked,
		"err %v, asked %v", a.err, plainAsked)
}

func TestHeed_BodiesAreReadWholeOrNotAtAll(t *testing.T) {
	got := func(name, response, body, why string) {
		t.Helper()
		a := fetch(t, bad(t, says(response)))
		switch {
		case why == "" && (a.err != nil || string(a.body) != body):
			t.Errorf("%s: body %q, err %v", name, a.body, a.err)
		case why != "" && (a.err == nil || a.noConnection || !strings.Contains(a.err.Error(), why)):
			t.Errorf("%s: err %v, want %q", name, a.err, why)
		}
	}
	long := zipped(strings.Repeat(file, 100))
	got("whole", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na: b\n", "a: b\n", "")
	got("until the end of the connection", "HTTP/1.0 200 OK\r\n\r\na: b\n", "a: b\n", "")
	got("empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", "")
	got("empty, called gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", "", "")
	got("a name of no coding", "HTTP/1.1 200 OK\r\nContent-Encoding: utf-8\r\n\r\nDisallow: /\n", "Disallow: /\n", "")
	got("another one", "HTTP/1.1 200 OK\r\nContent-Encoding: iso-8859-1\r\n\r\nDisallow: /\xE9\n", "Disallow: /\xE9\n", "")
	got("one that is short", "HTTP/1.1 200 OK\r\nContent-Encoding: none\r\nContent-Length: 50\r\n\r\na: b\n", "", "unexpected EOF")
	got("one of gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: binary\r\n\r\n"+string(long), strings.Repeat(file, 100), "")
	got("one of no text", "HTTP/1.1 200 OK\r\nContent-Encoding: foo\r\n\r\n\x00\x01\x02", "", `name of no coding ("foo")`)
}

func TestHeed_OverHTTP2TheSameHolds(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, file)
		w.(http.Flusher).Flush()
		if r.ProtoMajor != 2 || r.UserAgent() == "cut/1" {
			panic(http.ErrAbortHandler)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	f, o := testFetcher(t), originOf(t, s.URL)
	f.PerFetch = func() http.RoundTripper { return s.Client().Transport }
	a := f.fetched(t.Context(), o, variantKey{}, validators{})
	must.True(t, a.err == nil && string(a.body) == file, "whole: %+v", a)
	a = f.fetched(t.Context(), o, variantKey{userAgent: "cut/1"}, validators{})
	must.True(t, a.err != nil && !a.noConnection, "cut off: %+v", a)
}

// A line cut in half is another rule, so a long file ends with a whole one.
func TestHeed_LongFilesAreCutAtALine(t *testing.T) {
	line := "Disallow: /private\n"
	long := strings.Repeat(line, maxBody/len(line)+10)
	want := maxBody / len(line) * len(line)
	cut := func(name, text string, size int) {
		t.Helper()
		a := fetch(t, serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, text) }))
		must.True(t, a.err == nil && len(a.body) == size && strings.Contains(a.note, "4 MiB"),
			"%s: %d bytes, note %q, err %v; want %d bytes", name, len(a.body), a.note, a.err, size)
	}
	cut("lines", long, want)
	cut("one line", strings.Repeat("x", maxBody+1), 0)

	exact := strings.Repeat("Allow: /\nAllow:/\n", maxBody/17+1)[:maxBody]
	a := fetch(t, serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, exact) }))
	must.True(t, a.err == nil && a.note == "" && string(a.body) == exact,
		"exactly as much as is read: %d bytes, note %q, err %v", len(a.body), a.note, a.err)
}

func TestHeed_PagesForPeopleAreNoted(t *testing.T) {
	noted := func(want bool, contentType, body string) {
		t.Helper()
		a := fetch(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
		}))
		got := strings.Contains(a.note, "HTML")
		must.True(t, got == want && a.err == nil, "%s %q: note %q, err %v", contentType, body, a.note, a.err)
	}
	noted(true, "text/html; charset=utf-8", file)
	noted(true, "text/plain", "\ufeff\n <!DOCTYPE html><title>Hello</title>")
	noted(true, "text/plain", "<HTML>")
	noted(false, "text/plain", file)
	noted(false, "text/plain", "")
}

func TestRFC9110_RevalidationAsksTheSameResource(t *testing.T) {
	var conditions []string
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conditions = append(conditions, r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since"))
		if r.URL.Path == "/robots.txt" {
			http.Redirect(w, r, "/real.txt", http.StatusFound)
			return
		}
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(304)
		}
	})
	a := testFetcher(t).fetched(t.Context(), o, variantKey{}, validators{URL: o.String() + "/real.txt", ETag: `"v1"`, LastModified: " then"})
	must.Need(t, a.err == nil && a.status == 304, "answer %+v", a)
	must.True(t, len(conditions) == 2 && conditions[0] == "" && strings.HasPrefix(conditions[1], `"v1"`),
		"conditions %q", conditions)
}

func TestHeed_AnOriginNeverReachedIsDistinguished(t *testing.T) {
	reached := func(name string, want bool, f *fetcher, o rules.Origin, target any) {
		t.Helper()
		a := f.fetched(t.Context(), o, variantKey{}, validators{})
		must.True(t, a.err != nil && a.noConnection != want && (target == nil || errors.As(a.err, target)),
			"%s: err %v (%T wanted), no connection %v", name, a.err, target, a.noConnection)
	}
	closed := originOf(t, "http://"+testkit.FreeAddr(t))
	reached("connect", false, testFetcher(t), closed, new(*net.OpError))
	reached("DNS", false, failingDial(&net.DNSError{Err: "no such host", Name: "site.test", IsNotFound: true}), site, new(*net.DNSError))

	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	reached("TLS", false, testFetcher(t), originOf(t, s.URL), new(*tls.CertificateVerificationError))

	reached("reset", true, testFetcher(t), bad(t, says("")), nil)
	reached("another site", true, testFetcher(t), serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, closed.RobotsURL(), http.StatusFound)
	}), new(*net.OpError))
}

func TestHeed_ADeadPooledConnectionIsNoConnection(t *testing.T) {
	l := listen(t)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		l.Close() // the site goes down, but for this connection
		buf := make([]byte, 4096)
		_, _ = c.Read(buf)
		_, _ = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		_, _ = c.Read(buf)
	}()
	f, o := testFetcher(t), originOf(t, "http://"+l.Addr().String())
	must.Is(t, f.fetched(t.Context(), o, variantKey{}, validators{}).status, 404)
	a := f.fetched(t.Context(), o, variantKey{}, validators{})
	must.True(t, a.err != nil && a.noConnection, "err %v, no connection %v", a.err, a.noConnection)
}

func failingDial(err error) *fetcher {
	return fetcherOver(&http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err },
	})
}

// The time of a fetch is that of all its redirects.
func TestHeed_AFetchEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fetcherOver(transport(func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(3 * time.Second):
				return reply(302, "Location", r.URL.Path+"x"), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}))
		f.Timeout = 10 * time.Second
		begun := time.Now()
		a := f.fetched(t.Context(), site, variantKey{}, validators{})
		must.True(t, errors.Is(a.err, context.DeadlineExceeded) && strings.Contains(a.err.Error(), "no answer within 10s"), "err %v", a.err)
		must.Equal(t, time.Since(begun), 10*time.Second, "it took")
	})
}
