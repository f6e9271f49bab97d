package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// rawSite answers each request with octets; it keeps the connection open unless they end
// with "END".
func rawSite(t *testing.T, answer string) string {
	text, ends := strings.CutSuffix(answer, "END")
	return testkit.RawSite(t, func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if _, err := io.WriteString(c, text); err != nil || ends {
				return
			}
		}
	})
}

func newRequest(t *testing.T, ctx context.Context, method, addr string, body io.Reader) *http.Request {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(ctx, method, "http://"+addr+"/", body))(t)
	if _, isPipe := body.(*io.PipeReader); isPipe {
		r.ContentLength = -1
	}
	return r
}

// A client that leaves ends its request whatever the site is doing.
func TestSend_ARequestCanBeCancelledInEveryState(t *testing.T) {
	t.Parallel()
	left := errors.New("left")
	for state, answer := range map[string]string{
		"before the answer": "", "inside the head": "HTTP/1.1 200 OK\r\nCont", "after an early one": "HTTP/1.1 103 Early Hints\r\n\r\n",
		"inside the body": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhe", "inside a chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhe",
	} {
		for _, upload := range []bool{false, true} {
			t.Run(fmt.Sprint(state, upload), func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				gone := make(chan bool)
				addr := testkit.RawSite(t, func(c net.Conn) {
					defer c.Close()
					in := bufio.NewReader(c)
					if _, err := textproto.NewReader(in).ReadMIMEHeader(); err != nil && err != io.EOF && !strings.Contains(err.Error(), "malformed") {
						return
					}
					io.WriteString(c, answer)
					cancel(left)
					_, _ = io.Copy(io.Discard, in)
					close(gone)
				})
				method, body := "GET", io.Reader(nil)
				if upload {
					r, w := io.Pipe()
					t.Cleanup(func() { w.Close() })
					method, body = "POST", r
				}
				resp, err := newTransports(t, TransportConfig{}).RoundTrip(newRequest(t, ctx, method, addr, body))
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				must.True(t, errors.Is(err, left), "ended with %v", err)
				<-gone // the site's connection is closed
			})
		}
	}
	t.Run("before a connection", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			cancel(left)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		_, err := newTransports(t, TransportConfig{Connect: dial}).RoundTrip(newRequest(t, ctx, "GET", "site.test", nil))
		failed := new(Error)
		must.True(t, errors.Is(err, left) && errors.As(err, &failed) && failed.NotReached(), "ended with %v", err)
	})
}

// The octets that come with a 101 are the other protocol's, and so is the connection.
func TestSend_WhatFollowsA101IsTheCallers(t *testing.T) {
	t.Parallel()
	addr := testkit.RawSite(t, func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfirst ")
		_, _ = io.Copy(c, in)
	})
	r := newRequest(t, t.Context(), "GET", addr, nil)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"x"}}
	resp, err := newTransports(t, TransportConfig{}).RoundTrip(r)
	must.Need(t, err == nil && resp.StatusCode == 101, "%v %v", resp, err)
	both := resp.Body.(io.ReadWriteCloser)
	defer both.Close()
	io.WriteString(both, "then")
	_ = CloseWrite(both.(net.Conn))
	text, err := io.ReadAll(both)
	must.True(t, err == nil && string(text) == "first then", "%q, %v", text, err)
}

// Many sites close their idle connections: no request follows that would notice, and they
// do not stay half open.
func TestPool_ConnectionsThatSitesCloseAreClosed(t *testing.T) {
	t.Parallel()
	hosts := 100
	if testkit.Full {
		hosts = 1000
	}
	end := make(chan bool)
	addr := testkit.RawSite(t, func(c net.Conn) {
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		<-end
	})
	counts := &Counts{}
	resolve := map[string]string{}
	for i := range hosts {
		resolve[fmt.Sprintf("h%d.test:80", i)] = addr
	}
	w := newTransports(t, TransportConfig{Resolve: resolve, Counts: counts})
	for i := range hosts {
		resp := must.Get(w.RoundTrip(newRequest(t, t.Context(), "GET", fmt.Sprintf("h%d.test", i), nil)))(t)
		resp.Body.Close()
	}
	must.Is(t, counts.Read().Open, int64(hosts), "open connections")
	close(end)
	testkit.Until(t, "no connection is left", func() bool { return counts.Read().Open == 0 })
	testkit.Until(t, "no host is known", func() bool {
		p := w.others.pool
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.hosts) == 0 && p.lru.Len() == 0
	})
}

// A connection that was idle for too long is closed without a request that would find out;
// one that was used meanwhile stays.
func TestPool_ConnectionsThatAreIdleForTooLongAreClosed(t *testing.T) {
	t.Parallel()
	addr := rawSite(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
	counts := &Counts{}
	w := newTransports(t, TransportConfig{Resolve: map[string]string{"a.test:80": addr, "b.test:80": addr, "c.test:80": addr}, Counts: counts})
	ask := func(host string) {
		resp := must.Get(w.RoundTrip(newRequest(t, t.Context(), "GET", host, nil)))(t)
		must.Get(io.ReadAll(resp.Body))(t)
	}
	ask("a.test")
	ask("b.test")
	w.others.pool.age(idleUpstream - time.Minute)
	ask("b.test")
	ask("c.test")
	w.others.pool.age(time.Minute)
	testkit.Until(t, "the oldest connection is closed", func() bool { return counts.Read().Open == 2 })
	ask("c.test")
	must.Equal(t, counts.Read().Open, 2)
}

// Expect: 100-continue is the site's to answer. A body that it does not want is not sent.
func TestSend_ExpectContinue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, first, then, want string }{
		{"wanted", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "body"},
		{"refused", "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", "", ""},
		{"not answered", "", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := make(chan string, 1)
			addr := testkit.RawSite(t, func(conn net.Conn) {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				io.WriteString(conn, c.first)
				text, _ := io.ReadAll(r.Body)
				got <- string(text)
				io.WriteString(conn, c.then)
			})
			r := newRequest(t, t.Context(), "POST", addr, strings.NewReader("body"))
			r.Header.Set("Expect", "100-continue")
			resp := must.Get(newTransports(t, TransportConfig{}).RoundTrip(r))(t)
			resp.Body.Close()
			must.Equal(t, <-got, c.want, "the site")
		})
	}
}

// A request with a body is the last one of its connection, and an answer may overtake it.
func TestSend_AnAnswerOvertakesAnUpload(t *testing.T) {
	t.Parallel()
	ended := make(chan bool)
	addr := testkit.RawSite(t, func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	})
	body, client := io.Pipe()
	defer client.Close()
	resp, err := newTransports(t, TransportConfig{}).RoundTrip(newRequest(t, t.Context(), "POST", addr, body))
	must.Need(t, err == nil && resp.StatusCode == 413, "%v %v", resp, err)
	text, err := io.ReadAll(resp.Body)
	must.True(t, err == nil && string(text) == "no", "%q, %v", text, err)
	resp.Body.Close()
	<-ended
	for { // the upload ends with the connection
		if _, err := client.Write(make([]byte, 1<<10)); err != nil {
			break
		}
	}
}

// facts are the hooks' values.
type facts struct {
	attempts, written int
	late              int    // so many times it is too late
	pause             func() // in Attempt
	none              error  // of each Attempt but the first
	http2             bool
	interim           []int
}

func (f *facts) Attempt() error {
	if f.attempts++; f.pause != nil {
		f.pause()
	}
	if f.attempts > 1 {
		return f.none
	}
	return nil
}

func (f *facts) Connected(http2 bool) bool {
	f.http2 = http2
	f.late--
	return f.late < 0
}

func (f *facts) Written()                     { f.written++ }
func (f *facts) Interim(s int, _ http.Header) { f.interim = append(f.interim, s) }

// A request whose turn was over before its connection was open waits for another one with
// that connection. Where the site closes it meanwhile, it is sent on another.
func TestSend_ARequestThatIsLateKeepsItsConnection(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		gone, opened := make(chan bool), atomic.Int32{}
		addr := testkit.RawSite(t, func(c net.Conn) {
			defer c.Close()
			if opened.Add(1) == 1 && closes {
				c.Close()
				gone <- true
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		})
		f := &facts{late: 2}
		f.pause = func() {
			if closes && f.attempts == 2 {
				<-gone
			}
		}
		w := newTransports(t, TransportConfig{})
		resp := must.Get(w.Send(&Request{Request: newRequest(t, t.Context(), "GET", addr, nil), Hooks: f}))(t)
		resp.Body.Close()
		wanted := map[bool]int{false: 1, true: 2}[closes]
		n := int(opened.Load())
		must.True(t, n == wanted && f.attempts == 2+wanted, "closes %v: %d connections, %d turns", closes, n, f.attempts)
	}
}

// What heed's own fetches rest on: the address that was reached, when the head was
// written, and whether there was a connection at all.
func TestSend_WhatBecameOfARequestIsReported(t *testing.T) {
	t.Parallel()
	addr := rawSite(t, "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
	w := newTransports(t, TransportConfig{})
	f := &facts{}
	q := &Request{Request: newRequest(t, t.Context(), "GET", addr, nil), Hooks: f, Target: "/a|b"}
	resp := must.Get(w.Send(q))(t)
	resp.Body.Close()
	if q.Reached.String() != addr || f.attempts != 1 || f.written != 1 || f.http2 || len(f.interim) != 1 || f.interim[0] != 102 {
		t.Errorf("%v %+v", q.Reached, f)
	}
	dead, failed := testkit.FreeAddr(t), new(Error)
	q = &Request{Request: newRequest(t, t.Context(), "GET", dead, nil), Hooks: f}
	if _, err := w.Send(q); !errors.As(err, &failed) || !failed.NotReached() || q.Reached != nil || f.written != 1 {
		t.Errorf("%v, %v, %+v", err, q.Reached, f)
	}
}

// A site that accepts a request and says nothing is given up in time, and that is not the
// failure of a connection.
func TestSend_NoAnswerInTime(t *testing.T) {
	t.Parallel()
	addr := testkit.RawSite(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c); c.Close() })
	w := newTransports(t, TransportConfig{ResponseHeaderTimeout: 20 * time.Millisecond})
	for _, body := range []io.Reader{nil, strings.NewReader("body")} {
		_, err := w.RoundTrip(newRequest(t, t.Context(), "POST", addr, body))
		got := FailureOf(err)
		must.True(t, got.Status == 504 && got.Type == "http_response_timeout", "%v: %+v", err, got)
	}
}

// Octets beyond an answer belong to no request, however the answer is cut into segments; the
// client that has the connection asks again immediately.
func TestSend_SurplusInEverySegmenting(t *testing.T) {
	t.Parallel()
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nodd", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nodd\r\n0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n",
	} {
		var cut int
		addr := testkit.RawSite(t, func(c net.Conn) {
			defer c.Close()
			in := bufio.NewReader(c)
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if r.Header.Get("Good") != "" {
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
					continue
				}
				io.WriteString(c, answer[:cut])
				io.WriteString(c, answer[cut:]+poison)
			}
		})
		w := newTransports(t, TransportConfig{})
		ctx := WithClient(t.Context(), &Client{})
		ask := func(good string) string {
			r := newRequest(t, ctx, "GET", addr, nil)
			r.Header.Set("Good", good)
			resp := must.Get(w.RoundTrip(r))(t)
			defer resp.Body.Close()
			body := must.Get(io.ReadAll(resp.Body))(t)
			return string(body)
		}
		for cut = range len(answer) {
			got := ask("")
			must.Need(t, got != "EVIL", "%q at %d: %q", answer, cut, got)
			must.Is(t, ask("yes"), "good", "after %q at %d", answer, cut)
		}
	}
}

// age makes the idle connections of p as old as if nothing had come on them for d.
func (p *pool) age(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.lru.Front(); e != nil; e = e.Next() {
		c := e.Value.(*conn)
		c.since = c.since.Add(-d)
	}
}

// One client, many requests, one handshake: the session tickets of TLS do not end a
// connection, nor do answers whose body sites get wrong, after which there is silence.
func TestSend_HandshakesOfOneClient(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, "page")
	}))
	t.Cleanup(s.Close)
	counts := &Counts{}
	w := NewHostTransports(TransportConfig{Counts: counts}, HostRoute{Match: pattern(t, "127.0.0.1"), Route: Route{Site: &SiteCert{Any: true}}})
	t.Cleanup(w.CloseIdleConnections)
	ctx := WithClient(t.Context(), &Client{})
	for i := range 150 {
		status, want := http.StatusOK, "page"
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
		switch {
		case i >= 100:
			status, want = http.StatusNotModified, ""
			r.Header.Set("If-None-Match", "x")
		case i >= 50:
			r.Method, want = http.MethodHead, ""
		}
		resp := must.Get(w.RoundTrip(r))(t)
		body, err := io.ReadAll(resp.Body)
		must.Need(t, string(body) == want && err == nil && resp.StatusCode == status, "%s %q, %v", resp.Status, body, err)
		resp.Body.Close()
		if i >= 50 {
			w.transport("https", strings.TrimPrefix(s.URL, "https://")).pool.age(silence)
		}
	}
	n := counts.Read()
	must.True(t, n.OK == 1 && n.Open == 1, "%+v", n)
}

// A site that sends 1xx answers without end is given up, over HTTP/1 and HTTP/2.
func TestSend_EndlessInterimAnswers(t *testing.T) {
	t.Parallel()
	const enough = maxResponseHeader/interimLine + 1
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range enough {
			w.WriteHeader(http.StatusProcessing)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	plain := rawSite(t, strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", enough)+"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	for _, site := range []string{"http://" + plain, s.URL} {
		w := newTransports(t, TransportConfig{})
		if site == s.URL {
			w = NewHostTransports(TransportConfig{}, HostRoute{Match: pattern(t, "127.0.0.1"), Route: Route{Site: &SiteCert{Any: true}}})
			t.Cleanup(w.CloseIdleConnections)
		}
		r, _ := http.NewRequestWithContext(t.Context(), "GET", site, nil)
		resp, err := w.RoundTrip(r)
		must.True(t, err != nil && FailureOf(err).Type == "http_response_header_section_size", "%s: %v, %v", site, resp, err)
	}
}
