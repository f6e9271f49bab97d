package proxy

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// mirrorSite sends back what it gets, after a greeting.
func mirrorSite(t *testing.T, s *site, hostPort, greeting string) {
	go testkit.Accept(s.listen(t, hostPort), func(c net.Conn) {
		defer c.Close()
		_, _ = io.WriteString(c, greeting)
		_, _ = io.Copy(c, c)
	})
}

// However a request or a TLS hello begins, and however slowly: where other protocols pass,
// it does not pass as one of them.
func TestTransparent_NoBeginningOfARequestPassesAsAnotherProtocol(t *testing.T) {
	s := newSite(t, hello)
	mirrorSite(t, s, elsewhere+":80", "")
	r := newRigBefore(t, s, func(c *Config) {
		c.Limits.ConnectTime, c.Limits.HandshakeTime = 300*time.Millisecond, 300*time.Millisecond
	})
	at := r.redirectedTo(elsewhere+":80", func(l *Transparent) { l.TunnelOther = func() bool { return true } })
	const rest = "/private HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n"
	for first, pause := range map[string]bool{
		strings.Repeat("\r\n", 9) + "GET ": false, strings.Repeat("\n", 40) + "GET ": false, "\r\nGET ": false, " GET ": false, "\tGET ": false,
		"get ": false, "FOO ": false, "(GET ": false, strings.Repeat("A", 100) + " ": false, strings.Repeat("A", 5000) + " ": false,
		"PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\nGET ": false, "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00GET ": false,
		"G": true, "GE": true, "F": true, "\r\n": true, "PRI": true, "\x16": true, "\x16\x03\x01\x00\x05\x01": true, "\x80\x2e\x01\x03\x01": true, "\x15\x03\x01": true,
	} {
		before := len(r.records.all())
		c := testkit.Dial(t, at)
		c.Send(first)
		if pause {
			c.Closed()
		} else {
			c.Send(rest)
			got, _ := io.ReadAll(c.R)
			must.True(t, !strings.Contains(string(got), "Host: site.test\r\n"), "%.40q passed: %.100q", first, got)
		}
		e := r.records.after(t, before)
		must.True(t, e.Decision.Verdict == rules.Refuse, "%q: %+v", first, e.Decision)
	}
}

// A client that waits until it is taken for one of a protocol in which the server speaks
// first cannot send a request then.
func TestTransparent_AClientThatWaitsCannotSendARequestLater(t *testing.T) {
	s := newSite(t, hello)
	mirrorSite(t, s, elsewhere+":2222", "220 server\r\n")
	r := newRigBefore(t, s, func(c *Config) { c.Limits.ConnectTime = 100 * time.Millisecond })
	at := r.redirectedTo(elsewhere+":2222", func(l *Transparent) { l.TunnelOther = func() bool { return true } })
	refusals := func() (n int) {
		for _, e := range r.records.all() {
			if e.Revises != nil && e.Decision.Verdict == rules.Refuse && e.Decision.Reason == rules.ReasonHandshake {
				n++
			}
		}
		return n
	}
	for later, passes := range map[string]bool{
		"EHLO client.test\r\n": true, "\x00\x01\x02\x03": true,
		"GET /private HTTP/1.1\r\n\r\n": false, "\r\nGET /private HTTP/1.0\r\n\r\n": false, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": false, "\x16\x03\x01\x00": false,
	} {
		c := testkit.Dial(t, at)
		line, err := c.R.ReadString('\n')
		must.Need(t, err == nil && line == "220 server\r\n", "%q, %v", line, err) // the connection was passed on
		before := refusals()
		c.Send(later)
		if passes {
			got := make([]byte, len(later))
			_, err := io.ReadFull(c.R, got)
			must.True(t, err == nil && string(got) == later, "%q: %q, %v", later, got, err)
			c.Close()
			continue
		}
		got, _ := io.ReadAll(c.R)
		must.True(t, len(got) == 0, "%q passed: %q", later, got)
		testkit.Until(t, "the record", func() bool { return refusals() == before+1 })
	}
}
