package transparent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// fields are those of a message, by name in lower case.
type fields = map[string][]string

// answer is what a client made of a site's answer.
type answer struct {
	major   int
	version string   // "1.1", "1.0" or "2"
	interim []string // 1xx answers, each with its fields
	status  int
	phrase  string // empty over HTTP/2
	header  fields
	body    string
	trailer fields
	broken  bool // no clean end
}

// direct asks the site itself.
func (w *world) direct(m way, s *shape) *answer {
	w.t.Helper()
	via := "Via: " + s.via(m)
	if !m.https() {
		return w.inBytes(testkit.Dial(w.t, w.addrs[s.host()+":80"]), "", s, via)
	}
	protocols := []string{"http/1.1"}
	if s.host() != scripted {
		protocols = []string{"h2"}
	}
	c := testkit.Dial(w.t, w.addrs[s.host()+":443"]).TLS(&tls.Config{
		ServerName: s.host(), RootCAs: w.origin.CA.Pool(), NextProtos: protocols})
	if s.host() != scripted {
		return w.inFrames(c, s, via)
	}
	return w.inBytes(c, "", s, via)
}

// through asks by way of heed.
func (w *world) through(m way, s *shape) *answer {
	w.t.Helper()
	c, prefix := w.reach(m, s.host())
	if m == h2 {
		return w.inFrames(c, s)
	}
	return w.inBytes(c, prefix, s)
}

// reach opens a connection by which a host is asked through heed, and returns
// the text before the path in its request lines.
func (w *world) reach(m way, host string) (c *testkit.Conn, prefix string) {
	w.t.Helper()
	c = testkit.Dial(w.t, w.heed.Addr)
	switch m {
	case plain:
		return c, "http://" + host
	case absolute:
		return c, "https://" + host
	case inTunnel:
		return c.Connect(host + ":80"), ""
	}
	protocol := map[way]string{h1: "http/1.1", h2: "h2"}[m]
	return c.Connect(host + ":443").TLS(&tls.Config{ServerName: host, RootCAs: w.ours, NextProtos: []string{protocol}}), ""
}

// inBytes asks over HTTP/1.
func (w *world) inBytes(c *testkit.Conn, prefix string, s *shape, extra ...string) *answer {
	w.t.Helper()
	text := w.inText(prefix, s, extra...)
	if !s.waits {
		c.Send(text)
		return w.hear(c, s, extra, func() {})
	}
	head, body, _ := strings.Cut(text, "\r\n\r\n")
	c.Send(head + "\r\n\r\n")
	return w.hear(c, s, extra, func() { c.Send(body) })
}

// inText is the request as HTTP/1.
func (w *world) inText(prefix string, s *shape, extra ...string) string {
	target := prefix + s.path()
	if s.path() == "*" && prefix != "" {
		target = prefix // RFC 9112 §3.2.4
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s %s\r\nHost: %s\r\n", s.verb(), target, cmp.Or(s.version, "HTTP/1.1"), s.host())
	for _, f := range s.all(extra...) {
		text.WriteString(f + "\r\n")
	}
	switch {
	case s.chunked:
		return text.String() + "Transfer-Encoding: chunked\r\n\r\n" + inChunks(s.body, s.trailers)
	case s.body != "" || s.waits:
		fmt.Fprintf(&text, "Content-Length: %d\r\n", len(s.body))
	}
	return text.String() + "\r\n" + s.body
}

func inChunks(body string, trailers []string) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(len(body), 1000)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	b.WriteString("0\r\n")
	for _, t := range trailers {
		b.WriteString(t + "\r\n")
	}
	return b.String() + "\r\n"
}

// hear reads answers until the final one is whole.
func (w *world) hear(c *testkit.Conn, s *shape, direct []string, goOn func()) *answer {
	w.t.Helper()
	a := &answer{}
	for {
		c.SetReadDeadline(time.Now().Add(testkit.Patience))
		head := rawHead(w, c.R)
		a.header = fieldsOf(head)
		in := bufio.NewReader(io.MultiReader(bytes.NewReader(head), c.R))
		resp, err := http.ReadResponse(in, &http.Request{Method: s.verb()})
		must.OK(w.t, err, "%q", head)
		c.R = in
		if resp.StatusCode < 200 && resp.StatusCode != 101 {
			if resp.StatusCode == 100 {
				goOn()
			} else {
				a.interim = append(a.interim, interim(resp.StatusCode, a.header, direct))
			}
			continue
		}
		a.major, a.version = resp.ProtoMajor, fmt.Sprintf("%d.%d", resp.ProtoMajor, resp.ProtoMinor)
		a.status = resp.StatusCode
		line, _, _ := strings.Cut(string(head), "\r\n")
		a.phrase = line[min(len(line), len("HTTP/1.1 200 ")):]
		a.rest(resp)
		return a
	}
}

// interim is a 1xx answer as text. Directly, it is what heed has to make of it.
func interim(code int, h fields, direct []string) string {
	via := slices.Clone(h["via"])
	switch {
	case len(direct) > 0:
		mustChange(h)
	case len(via) == 0 || !strings.HasSuffix(via[len(via)-1], " "+name):
		return fmt.Sprintf("%d without heed's Via: %v", code, h)
	default:
		h["via"] = via[:len(via)-1]
	}
	return fmt.Sprint(code, nonEmpty(h))
}

// rawHead reads a head as it is on the wire.
func rawHead(w *world, in *bufio.Reader) []byte {
	w.t.Helper()
	var head []byte
	for {
		line, err := in.ReadBytes('\n')
		head = append(head, line...)
		must.OK(w.t, err, "after %q", head)
		if len(line) <= 2 {
			return head
		}
	}
}

// fieldsOf are the fields of a head, empty values included.
func fieldsOf(head []byte) fields {
	h := fields{}
	for i, line := range strings.Split(string(head), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && i > 0 {
			name = strings.ToLower(name)
			h[name] = append(h[name], strings.Trim(value, " \t"))
		}
	}
	return h
}

// rest reads the body and what comes after it.
func (a *answer) rest(resp *http.Response) {
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	a.body, a.broken, a.trailer = string(body), err != nil, lower(resp.Trailer)
	for name, values := range a.trailer { // announced and not sent
		if values == nil {
			delete(a.trailer, name)
		}
	}
}

// inFrames asks over HTTP/2.
func (w *world) inFrames(c *testkit.Conn, s *shape, extra ...string) *answer {
	w.t.Helper()
	a := &answer{major: 2, version: "2"}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		if code != 100 {
			a.interim = append(a.interim, interim(code, lower(h), extra))
		}
		return nil
	}})
	req := must.Get(http.NewRequestWithContext(ctx, s.verb(), "https://"+s.host()+"/", nil))(w.t)
	if u, err := url.ParseRequestURI(s.path()); s.path() == "*" {
		req.URL.Opaque = "*"
	} else if err != nil {
		w.t.Fatal(err)
	} else {
		u.Scheme, u.Host = "https", s.host()
		req.URL = u
	}
	req.Header["User-Agent"] = nil
	for _, f := range s.all(extra...) {
		name, value, _ := strings.Cut(f, ":")
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(ofOneHop, strings.ToLower(name)) && name != "Te" || name == "Trailer" {
			continue // not for HTTP/2
		}
		req.Header[name] = append(req.Header[name], strings.Trim(value, " \t"))
	}
	if s.body != "" || s.chunked {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(s.body)), int64(len(s.body))
		if s.chunked {
			req.ContentLength = -1
		}
	}
	for _, t := range s.trailers {
		name, value, _ := strings.Cut(t, ": ")
		if req.Trailer == nil {
			req.Trailer = http.Header{}
		}
		req.Trailer[http.CanonicalHeaderKey(name)] = append(req.Trailer[http.CanonicalHeaderKey(name)], value)
	}
	resp, err := c.HTTP2().RoundTrip(req)
	must.OK(w.t, err, "over HTTP/2")
	a.status, a.header = resp.StatusCode, lower(resp.Header)
	a.rest(resp)
	return a
}

func lower(h fields) fields {
	l := fields{}
	for name, values := range h {
		l[strings.ToLower(name)] = values
	}
	return l
}
