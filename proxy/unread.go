package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/internal/audit"
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
	switch {
	case errors.As(err, &over):
		c.unread().reject(refusal.Case{Reason: rules.ReasonLimit, Err: over})
	case errors.As(err, &fault) && (fault.Kind == http1.HeadTooLarge || fault.Kind == http1.ManyFields):
		c.unread().reject(refusal.Case{Reason: rules.ReasonLimit, Err: c.proxy.gate.CountExceeded(limit.HeaderBytes)})
	case fault != nil:
		text := fault.Error()
		if c.tunnel == nil {
			text = cmp.Or(foreignText(c.h1.Buffered(), fault.Kind, c.client.Listener), text)
		}
		c.unread().reject(refusal.Case{Reason: rules.ReasonMalformed, Status: fault.Status, Detail: text})
	case errors.Is(err, os.ErrDeadlineExceeded) && len(c.h1.Buffered()) > 0:
		c.unread().reject(refusal.Case{Reason: rules.ReasonLimit, Err: c.proxy.gate.CountExceeded(limit.HeaderTime)})
	}
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
	noProxyProtocol = "a load balancer in front of heed sends it; turn it off there"
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
	x := c.unread()
	if err := c.counted.HoldHead(maxHello); err == nil {
		if h := readHello(hello); h != nil && h.name() != "" {
			if o, err := rules.ParseOrigin("https", h.name()); err == nil {
				x.req.setOrigin(o)
			}
		}
	}
	x.reject(refusal.Case{Reason: rules.ReasonMalformed, Detail: "TLS came in place of HTTP: the client takes heed for an https proxy; " +
		"write its address with http:// (curl -x http://" + c.client.Listener + ")"})
}

// unread is a request that no handler gets.
type unread struct {
	*exchange
	seen *http.Request // what could be read of it
}

// unread returns the request on c that no handler gets. Its parts may be anything.
func (c *clientConn) unread() *unread {
	h := &c.h1.Head
	return c.unreadAs(&http.Request{Method: h.Method, RequestURI: h.Target, Proto: h.Proto, ProtoMajor: 1, Host: h.Get("Host"), Header: h.Header()})
}

// unreadAs returns a request on c that no handler gets, of which seen could be read.
func (c *clientConn) unreadAs(seen *http.Request) *unread {
	if c.tunnel != nil {
		c.tunnel.requests.Add(1)
	}
	u := &unread{&exchange{Context: context.Background(), proxy: c.proxy}, seen}
	u.req = newRequest(c, seen, c.proxy.config.Live())
	u.req.method = methodOf(seen.Method)
	u.entry = audit.Entry{ID: audit.NewID(), Time: time.Now(), Client: c.RemoteAddr().String(), Judged: audit.NotJudged}
	u.req.locateUnread(seen.RequestURI)
	if r := u.req.settings.Rules; r != nil && r.Users != nil && c.tunnel == nil {
		u.req.authenticate(seen) // for the record
	}
	return u
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

// reject records the refusal of u for the reason and the error of a, sends it, and
// ends the connection. There is no answer without a record.
func (u *unread) reject(a refusal.Case) {
	q, p := &u.req, u.proxy
	u.identify()
	detail := a.Detail
	if a.Err != nil {
		detail = a.Err.Error()
	}
	u.entry.Decision, u.entry.Detail = rules.Decision{Reason: a.Reason}, detail
	a.Entry, a.Host, a.Proxy = &u.entry, q.origin.Host, u.refuser()
	u.entry.Outcome.Status = refusal.New(a).Status
	if r := q.conn.redirection(); r != nil {
		detail = r.describe(detail)
	}
	if p.note(&u.entry, rules.Refuse, a.Reason, detail) {
		c := q.conn.Conn
		if _, err := c.Write(refusal.Raw(a, u.seen)); err == nil {
			_ = c.SetReadDeadline(time.Now().Add(p.limits().DrainTime))
			drain(c)
		}
	}
}

// identify completes the facts of u and writes them into its record.
func (u *unread) identify() {
	if u.req.host != "" {
		u.req.identify(u.proxy)
	}
	u.describe()
}

// recordBroken records a request over HTTP/2 that ends its connection without an answer,
// for err, which may be a *limit.Exceeded. Only the record waits where the client has used
// up its refusals: the reader of the connection has other streams to end.
func (c *h2Conn) recordBroken(seen *http.Request, err error) {
	reason := rules.ReasonMalformed
	if over := (*limit.Exceeded)(nil); errors.As(err, &over) {
		reason = rules.ReasonLimit
	}
	u := c.unreadAs(seen)
	u.identify()
	c.proxy.running.Add(1)
	go func() {
		defer c.proxy.running.Add(-1)
		c.proxy.note(&u.entry, rules.Refuse, reason, err.Error())
	}()
}
