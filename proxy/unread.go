package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/internal/audit"
	"heed/proxy/head"
	"heed/proxy/limit"
	"heed/proxy/refusal"
	"heed/rules"
)

// unparsedTexts are what clients and the record read of a request that net/http
// refuses, by the status that it sends.
var unparsedTexts = map[int]string{
	http.StatusBadRequest:              "the request is not valid HTTP",
	http.StatusRequestEntityTooLarge:   "the request is too large",
	http.StatusExpectationFailed:       "the expectation cannot be met",
	http.StatusNotImplemented:          "the transfer coding is not known",
	http.StatusHTTPVersionNotSupported: "the HTTP version is not known",
}

// answerUnparsed answers in place of net/http, which refuses a request with a
// status, such as "400", without calling the handler.
func (c *clientConn) answerUnparsed(status []byte) {
	n, _ := strconv.Atoi(string(status)) // net/http wrote it
	x := c.unread()
	if n == http.StatusRequestHeaderFieldsTooLarge {
		x.reject(refusal.Case{Reason: rules.ReasonLimit, Err: c.proxy.gate.CountExceeded(limit.HeaderBytes)})
		return
	}
	text := cmp.Or(unparsedTexts[n], "the request cannot be read")
	if n == http.StatusBadRequest {
		text = cmp.Or(x.fault(), text)
	}
	x.reject(refusal.Case{Reason: rules.ReasonMalformed, Status: n, Detail: text})
}

// fault describes what is wrong with a request that net/http refuses; empty where
// that cannot be seen.
func (u *unread) fault() string {
	switch hosts := u.seen.Header["Host"]; {
	case len(hosts) == 0 && u.seen.Proto == "HTTP/1.1":
		return "the request has no Host field"
	case len(hosts) > 1:
		return "the request has more than one Host field"
	case strings.IndexFunc(u.seen.RequestURI, isBlank) >= 0:
		return "the request target contains a blank or a control character"
	}
	return ""
}

func isBlank(c rune) bool { return c <= ' ' || c == 0x7f }

// answerUnread answers a request that cannot be read for err, where net/http would
// say nothing.
func (c *clientConn) answerUnread(err error) {
	var over *limit.Exceeded
	switch {
	case errors.Is(err, head.ErrTLS):
		c.answerTLS()
	case errors.As(err, &over):
		c.unread().reject(refusal.Case{Reason: rules.ReasonLimit, Err: over})
	case errors.Is(err, os.ErrDeadlineExceeded) && c.heads.Unfinished() && !c.ended.Load():
		over := c.proxy.gate.CountExceeded(limit.HeaderTime)
		c.unread().reject(refusal.Case{Reason: rules.ReasonLimit, Err: over})
	}
}

// maxHello is how large a TLS hello may be, in octets.
const maxHello = 64 << 10

// answerTLS answers a client that speaks TLS on a port for HTTP. It takes heed for an
// https proxy. The answer is not TLS: clients report that as a wrong version number,
// which is what is known of this mistake.
func (c *clientConn) answerTLS() {
	hello := &tunnelConn{Conn: c.Conn, head: c.heads.Rest()}
	x := c.unread()
	if err := c.holdHead(maxHello); err == nil {
		name, _ := serverName(hello)
		if o, err := rules.ParseOrigin("https", name); name != "" && err == nil {
			x.req.setOrigin(o)
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

// unread returns the request on c that no handler gets.
func (c *clientConn) unread() *unread {
	return c.unreadAs(cmp.Or(c.heads.Seen(), &http.Request{Header: http.Header{}}))
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
	if q.conn.ended.Swap(true) {
		return
	}
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
// for err, which may be a *limit.Exceeded.
func (c *h2Conn) recordBroken(seen *http.Request, err error) {
	reason := rules.ReasonMalformed
	if over := (*limit.Exceeded)(nil); errors.As(err, &over) {
		reason = rules.ReasonLimit
	}
	u := c.unreadAs(seen)
	u.identify()
	c.proxy.note(&u.entry, rules.Refuse, reason, err.Error())
}
