package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/internal/audit"
	"heed/internal/base/safetext"
	"heed/proxy/http1"
	"heed/proxy/limit"
	"heed/proxy/refusal"
	"heed/rules"
)

// Unread implements server.Client. It answers a request that cannot be read for err. A connection that has ended,
// or on which nothing came, gets no answer.
func (c *clientConn) Unread(err error) {
	var over *limit.Exceeded
	var fault *http1.Fault
	a := refusal.Case{Reason: rules.ReasonLimit}
	switch {
	case errors.As(err, &over):
		a.Err = over
	case errors.As(err, &fault) && (fault.Kind == http1.HeadTooLarge || fault.Kind == http1.ManyFields):
		a.Err = c.proxy.gate.CountExceeded(limit.HeaderBytes)
	case fault != nil:
		a.Reason, a.Status, a.Detail = rules.ReasonMalformed, fault.Status, fault.Error()
		if c.tunnel == nil {
			a.Detail = cmp.Or(foreignText(c.h1.Buffered(), fault.Kind, c.client.Listener), a.Detail)
		}
	case errors.Is(err, os.ErrDeadlineExceeded) && len(c.h1.Buffered()) > 0:
		a.Err = c.proxy.gate.CountExceeded(limit.HeaderTime)
	default:
		return
	}
	c.reject(a, rules.Origin{})
}

// foreignProtocols are what people send to a proxy's port by mistake: how it begins, what it
// is, and what to set instead. ADDR is replaced by the address that the client uses.
var foreignProtocols = []struct{ begins, name, advice string }{
	{"\x05", "SOCKS", asSOCKS},
	{"\x04", "SOCKS", asSOCKS},
	{"SSH-", "SSH", "reach SSH servers by CONNECT (ProxyCommand nc -X connect -x ADDR %h %p)"},
	{"PROXY ", proxyProtocol, noProxyProtocol},
	{"\x00\r\nQUIT\n", proxyProtocol, noProxyProtocol}, // after line ends, which are skipped
	{"EHLO ", "SMTP", noService + "mail server"},
	{"HELO ", "SMTP", noService + "mail server"},
	{"\x00\x00\x00\x08\x04\xd2\x16/", "PostgreSQL", noService + "database"},
	{"*", "Redis", noService + "store"},
	{"\x10", "MQTT", noService + "broker"},
	{"\x03\x00\x00", "RDP", noService + "desktop"},
	{"OPTIONS rtsp:", "RTSP", noService + "server"},
	{"\x13BitTorrent", "BitTorrent", "turn off the proxy for peers in the client"},
}

const (
	asSOCKS         = "the client takes heed for a SOCKS proxy; write its address with http:// (curl -x http://ADDR)"
	noService       = "heed forwards HTTP alone; give the client the address of the "
	proxyProtocol   = "the PROXY protocol"
	noProxyProtocol = "a load balancer in front of heed sends it; name its address in proxy_protocol (heed help fleets), or turn it off there"
)

// foreignText returns what is said of octets that are another protocol's, for which a
// request is refused with fault; addr is where they came to. Empty: they are not known.
func foreignText(octets []byte, fault http1.Kind, addr string) string {
	switch fault {
	case http1.BadMethod, http1.BadRequestLine, http1.BadVersion:
	default:
		return ""
	}
	for _, p := range foreignProtocols {
		if strings.HasPrefix(string(octets), p.begins) {
			return p.name + " came in place of HTTP: " + strings.Replace(p.advice, "ADDR", addr, 1)
		}
	}
	return ""
}

// maxHello is how large a TLS hello may be, in octets.
const maxHello = 64 << 10

// Hello implements server.Client. It answers a client that speaks TLS on a port for HTTP. It takes heed for an
// https proxy. The answer is not TLS: clients report that as a wrong version number,
// which is what is known of this mistake.
func (c *clientConn) Hello() {
	_ = c.SetReadDeadline(time.Now().Add(c.proxy.config.Limits.HeaderTime))
	hello := &tunnelConn{Conn: c.Conn, head: c.h1.Rest()}
	var site rules.Origin
	if err := c.counted.HoldHead(maxHello); err == nil {
		if h := readHello(hello); h != nil {
			site, _ = rules.ParseOrigin("https", h.name()) // zero without a name
		}
	}
	c.reject(refusal.Case{Reason: rules.ReasonMalformed, Detail: audit.TLSForHTTP + ": the client takes heed for an https proxy; " +
		"write its address with http:// (curl -x http://" + c.client.Listener + ")"}, site)
}

// Silent implements server.Client. Nothing was asked for, so that there is nothing to record.
func (c *clientConn) Silent() {
	if c.proxy.config.Silent != nil && c.tunnel == nil {
		c.proxy.config.Silent()
	}
}

// unread returns a request on c that no handler gets, of which seen could be read, as far as it
// is known, with its record. site is its origin where seen does not show that; zero: none.
func (c *clientConn) unread(seen *http.Request, site rules.Origin) *decision {
	if c.tunnel != nil {
		c.tunnel.requests.Add(1)
	}
	x := &decision{Context: context.Background(), proxy: c.proxy}
	q := &x.req
	*q = newRequest(c, seen, c.proxy.config.Live())
	q.method = methodOf(seen.Method)
	x.entry = audit.Entry{ID: audit.NewID(), Time: time.Now(), Client: c.RemoteAddr().String(), Judged: audit.NotJudged}
	if q.locateUnread(seen.RequestURI); site.Host != "" {
		q.setOrigin(site)
	}
	if r := q.settings.Rules; r != nil && r.Users != nil && c.tunnel == nil {
		q.authenticate(seen) // for the record
	}
	if q.host != "" {
		q.identify(c.proxy)
	}
	x.describe()
	return x
}

// maxUnreadMethod bounds what is recorded in place of a method, in octets.
const maxUnreadMethod = 64

// methodOf returns what is recorded of what came in place of a method: up to the first
// octet that no method contains, since the rest may be a URL with credentials.
func methodOf(text string) string {
	text = text[:min(len(text), maxUnreadMethod)]
	if i := strings.IndexFunc(text, func(c rune) bool { return !httpguts.IsTokenRune(c) }); i >= 0 {
		return text[:i]
	}
	return text
}

// reject records the refusal of a request on c that no handler gets, for the reason and the error
// of a, sends it, and ends the connection. There is no answer without a record. site is as for
// unread. The parts of the request may be anything.
func (c *clientConn) reject(a refusal.Case, site rules.Origin) {
	h, p := &c.h1.Head, c.proxy
	seen := &http.Request{Method: h.Method, RequestURI: h.Target, Proto: h.Proto, ProtoMajor: 1, Host: h.Get("Host"), Header: h.Header()}
	x := c.unread(seen, site)
	detail := a.Detail
	if a.Err != nil {
		detail = a.Err.Error()
	}
	x.entry.Decision, x.entry.Detail = rules.Decision{Reason: a.Reason}, detail
	a.Entry, a.Host, a.Proxy = &x.entry, x.req.origin.Host, x.refuser()
	x.entry.Outcome.Status = refusal.New(a).Status
	if r := c.redirection(); r != nil {
		detail = audit.Redirected(detail, r.original)
	}
	if !p.decided(&x.entry, rules.Refuse, a.Reason, detail) {
		return
	}
	answer, o := refusal.Raw(a, seen), &x.entry.Outcome
	n, err := c.Conn.Write(answer)
	o.BytesOut = int64(max(0, n-bytes.Index(answer, []byte("\r\n\r\n"))-4))
	o.Duration = time.Since(x.entry.Time)
	if err != nil {
		o.Truncated = true
		o.End(audit.ByClient, safetext.Error(err))
	}
	if p.config.Recorder.Ended(&x.entry); err == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(p.limits().DrainTime))
		drain(c.Conn)
	}
}

// recordBroken records a request over HTTP/2 that gets no answer, for err, which may be a
// *limit.Exceeded. Only the record waits where the client has used up its refusals: the
// reader of the connection has other streams to end. A record that waits counts as a
// request of its client; one above that limit is counted by recordCounted.
func (c *h2Conn) recordBroken(seen *http.Request, err error) {
	if c.counted.EnterRequest(c.proxy.limits()) != nil {
		c.tunnel.unrecorded.Add(1)
		return
	}
	reason := rules.ReasonMalformed
	if over := (*limit.Exceeded)(nil); errors.As(err, &over) {
		reason = rules.ReasonLimit
	}
	x := c.unread(seen, rules.Origin{})
	c.proxy.running.Add(1)
	go func() {
		defer c.proxy.running.Add(-1)
		defer c.counted.LeaveRequest()
		c.proxy.note(&x.entry, rules.Refuse, reason, err.Error())
	}()
}

// recordCounted records, at the end of c, how many requests on it got neither an answer
// nor a record of their own.
func (c *h2Conn) recordCounted() {
	n := c.tunnel.unrecorded.Load()
	if n == 0 {
		return
	}
	p := c.proxy
	x := c.unread(&http.Request{Header: http.Header{}}, c.tunnel.origin)
	over := &limit.Exceeded{Kind: limit.RequestsPerClient, Value: strconv.Itoa(p.limits().RequestsPerClient)}
	if !p.note(&x.entry, rules.Refuse, rules.ReasonLimit, fmt.Sprintf("%v; %d requests of the connection got no answer", over, n)) {
		p.gate.CountUnanswered(c.client.Addr, uint64(n))
	}
}
