package proxy

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A request that net/http refuses before a handler runs is answered as heed answers
// others, and recorded with what could be read of it.
func TestARequestThatNetHTTPRefusesHasAFullAnswerAndEntry(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { c.Limits.HeaderBytes = 4 << 10 })
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, b := range []struct {
			head, body, says string
			status           int
		}{
			{"", "", "the request has no Host field", 400},
			{"Host: site.test\r\nHost: h1.test\r\n", "", "more than one Host field", 400},
			{"Host: site.test\r\nTransfer-Encoding: x\r\n", "", "the transfer coding is not known", 501},
			{"Host: site.test\r\nExpect: tea\r\nContent-Length: 1\r\n", "x", "the expectation cannot be met", 417},
			{"Host: site.test\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n", "", "limit header_bytes (4096 octets) reached", 431},
		} {
			c, prefix := r.raw(m)
			self := c.LocalAddr().String()
			c.Send("GET " + prefix + "/odd%zz?q HTTP/1.1\r\nUser-Agent: ExampleBot/2\r\n" + b.head + "\r\n" + b.body)
			a := c.Answer("GET")
			var problem struct {
				Title, Reason, DecisionID string
				Status                    int
			}
			if err := json.Unmarshal(a.Body, &problem); err != nil || problem.Status != b.status || a.StatusCode != b.status || !strings.Contains(problem.Title, b.says) {
				t.Errorf("%.40q: %s %q, %v", b.head, a.Status, a.Body, err)
			}
			if proxyStatusOf(t, a.Header) != "http_request_error" || a.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%.40q: %v", b.head, a.Header)
			}
			c.Closed()
			e := r.records.await(t, b.says, func(e *audit.Entry) bool { return e.Client == self && e.Decision.Reason != rules.ReasonNoRule })
			if e.Method != "GET" || e.Target != "/odd%zz?q" || e.Host != "site.test" || e.UserAgent != "ExampleBot/2" || e.Outcome.Status != b.status || e.Agent == nil {
				t.Errorf("%.40q: recorded as %+v", b.head, e)
			}
		}
	})
}

// The format is what the client accepts, and an answer to HEAD has no body.
func TestAnAnswerWithoutARequestSuitsItsClient(t *testing.T) {
	r := newRig(t, hello)
	c, prefix := r.raw(plain)
	c.Send("GET " + prefix + "/ HTTP/1.1\r\nAccept: text/plain\r\n\r\n")
	a := c.Answer("GET")
	must.True(t, strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain"), "%v", a.Header)
	c, prefix = r.raw(plain)
	c.Send("HEAD " + prefix + "/ HTTP/1.1\r\n\r\n")
	rest, _ := io.ReadAll(c.R)
	must.True(t, !strings.Contains(string(rest), "{") && strings.HasPrefix(string(rest), "HTTP/1.1 400 "), "%q", rest)
}

// heardConn keeps what is read.
type heardConn struct {
	net.Conn
	text strings.Builder
}

// Read implements net.Conn.
func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.text.Write(p[:n])
	return n, err
}

// The user is recorded whose password is right, and no other; credentials in the
// target are not recorded.
func TestTheEntryOfARefusedRequestHasItsUser(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{Users: oneUser{}}) })
	for credentials, user := range map[string]string{"ann:open sesame": "ann", "ann:secret": "", "": ""} {
		c, _ := r.raw(plain)
		self := c.LocalAddr().String()
		c.Send("GET http://bob:secret@site.test/ HTTP/1.1\r\nProxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(credentials)) + "\r\n\r\n")
		c.Answer("GET")
		e := r.records.await(t, credentials, func(e *audit.Entry) bool { return e.Client == self })
		must.True(t, e.User == user && !strings.Contains(e.Raw+e.Target+e.Host+e.Detail, "secret"),
			"%q: recorded as %+v", credentials, e)
	}
}

// Octets of another protocol are recognised at once, also where no line ends.
func TestAnotherProtocolOnThePlainPortIsNamed(t *testing.T) {
	r := newRig(t, hello)
	for octets, says := range map[string]string{
		"\x05\x01\x00":                              "SOCKS came in place of HTTP: the client takes heed for a SOCKS proxy; write its address with http:// (curl -x http://" + r.addr + ")",
		"\x04\x01\x00\x50":                          "SOCKS came",
		"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n":        "SSH came in place of HTTP: reach SSH servers by CONNECT (ProxyCommand nc -X connect -x " + r.addr + " %h %p)",
		"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n":    "the PROXY protocol came",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c":    "the PROXY protocol came",
		"EHLO client.test\r\n":                      "SMTP came in place of HTTP: heed forwards HTTP alone; give the client the address of the mail server",
		"\x00\x00\x00\x08\x04\xd2\x16/":             "PostgreSQL came",
		"*1\r\n$4\r\nPING\r\n":                      "Redis came",
		"\x10\x10\x00\x04MQTT\x04":                  "MQTT came",
		"\x03\x00\x00\x13\x0e\xe0":                  "RDP came",
		"OPTIONS rtsp://a.test/ RTSP/1.0\r\n\r\n":   "RTSP came",
		"\x13BitTorrent protocol":                   "BitTorrent came",
		"\x01\x02":                                  "the request does not begin with a method",
		"*one two HTTP/1.1\r\nHost: a.test\r\n\r\n": "the request target is neither a URL nor a path",
	} {
		c := testkit.Dial(t, r.addr)
		self := c.LocalAddr().String()
		c.Send(octets)
		a := c.Answer("GET")
		must.True(t, a.StatusCode == 400 && strings.Contains(a.Status, says), "%q: %s", octets, a.Status)
		e := r.records.await(t, octets, func(e *audit.Entry) bool { return e.Client == self })
		must.True(t, e.Decision.Reason == rules.ReasonMalformed && strings.Contains(e.Detail, says),
			"%q: recorded as %+v", octets, e)
	}
}

// A client that takes heed for an https proxy is answered in plain text, and the record
// has the name that it asked for.
func TestATLSHelloOnThePlainPortIsNamed(t *testing.T) {
	r := newRig(t, hello)
	c := testkit.Dial(t, r.addr)
	self := c.LocalAddr().String()
	heard := &heardConn{Conn: c.Conn}
	err := tls.Client(heard, &tls.Config{ServerName: "Proxy.Example"}).Handshake()
	must.True(t, err != nil, "a handshake was made")
	_, _ = io.Copy(io.Discard, heard)
	text := heard.text.String()
	must.True(t, strings.HasPrefix(text, "HTTP/1.1 400 ") && strings.Contains(text, "https proxy"), "answered %q", text)
	e := r.records.await(t, "the hello", func(e *audit.Entry) bool { return e.Client == self })
	if e.Host != "proxy.example" || e.Decision.Reason != rules.ReasonMalformed || e.Outcome.Status != http.StatusBadRequest || !strings.Contains(e.Detail, "curl -x http://") {
		t.Errorf("recorded as %+v", e)
	}
}
