package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"heed/internal/base/memory"
	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/proxy/http1"
	"heed/proxy/icap"
	"heed/proxy/limit"
	"heed/rules"
)

// icapTTL is how long an ICAP client keeps what OPTIONS has told it.
const icapTTL = time.Minute

// ServeICAP answers questions over ICAP (RFC 3507), in requests of REQMOD for /reqmod and of
// RESPMOD for /respmod, until Shutdown, then returns nil. It closes the Listener, whose address is
// added to Self.
//
// The encapsulated request is the one asked about. X-Client-IP and X-Client-Port are the
// address of its client, X-Authenticated-User or X-Client-Username the user. The answer is 204
// for a request that may pass, or 200 with the message as it came where the client has not kept
// it; a refusal is 200 with heed's own answer encapsulated. What cannot be read is 400, and
// recorded. A proxy that brings the answers of sites with RESPMOD says so in REQMOD with the field
// Heed-Respmod: yes, and hands the field Heed-Decision of the answer back.
func (p *Proxy) ServeICAP(l Asked) error {
	return p.serveAsked(&l, func(c *clientConn) { c.guard((&icapConn{clientConn: c}).serve) })
}

// icapConn is the connection of an ICAP client.
type icapConn struct {
	*clientConn
	in      icap.Reader
	out     icap.Writer
	request icap.Request
	idle    atomic.Bool // it waits for a request
}

// serve answers the requests on c until it ends.
func (c *icapConn) serve() {
	c.proxy.open.add(c.Conn)
	defer c.proxy.open.remove(c.Conn)
	defer c.Close()
	defer c.out.HTTP.Release()
	c.in.HTTP = http1.Reader{From: c.Conn, Limit: c.headLimit()}
	c.out.HTTP.To = c.Conn
	defer context.AfterFunc(c.proxy.lasting, func() {
		if c.idle.Load() {
			_ = c.SetReadDeadline(past)
		}
	})()
	memory.ReserveStack()
	for c.await() && c.serveRequest() {
	}
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// await waits for the first octets of a request, and reports whether they came.
func (c *icapConn) await() bool {
	limits := &c.proxy.config.Limits
	if len(c.in.HTTP.Buffered()) == 0 {
		c.idle.Store(true)
		_ = c.SetReadDeadline(time.Now().Add(limits.IdleTime))
		if c.proxy.lasting.Err() != nil || c.in.HTTP.Fill() != nil {
			return false
		}
		c.idle.Store(false)
	}
	_ = c.SetReadDeadline(time.Now().Add(limits.HeaderTime))
	return true
}

// serveRequest answers a request, and reports whether another one may follow.
func (c *icapConn) serveRequest() (again bool) {
	p, q := c.proxy, &c.request
	c.out.Service = icap.Service{
		Name: p.config.Name, Tag: p.settingsTag(), Connections: p.limits().ConnectionsPerClient, TTL: int(icapTTL.Seconds()), Preview: answerPreview,
	}
	c.out.Decision = ""
	err := c.in.Read(q)
	q.Close = q.Close || p.closing.Load()
	switch {
	case err != nil:
		c.unreadable(err)
		return false
	case !c.asks.trusts(c.client.Addr):
		c.refuse(http.StatusForbidden, rules.ReasonAccess, untrusted)
		return false
	case q.Method == http.MethodOptions:
		return c.out.Options(q) == nil && !q.Close
	case q.Method == icap.Respmod:
		return c.serveAnswer() && !q.Close
	}
	ctx, leave := context.WithCancel(context.Background())
	r, client, user, err := c.asked(ctx)
	a, w := &asking{of: c.asks, host: q.HTTP.Get("Host")}, &heldAnswer{header: http.Header{}}
	if err == nil {
		a.awaits, err = c.awaited(w)
	}
	if err != nil {
		leave()
		c.refuse(http.StatusBadRequest, rules.ReasonMalformed, err.Error())
		return false
	}
	stop := c.watch(leave)
	if a.awaits == nil {
		p.ask(c.clientConn, a, w, r, client, user)
	} else if client = netip.AddrPortFrom(cmp.Or(client.Addr(), c.client.Addr), client.Port()); !c.askAwaiting(a, r, client, user, leave) {
		stop()
		return false
	}
	stop()
	if a.awaits == nil {
		leave()
	}
	return c.answer(a, w) == nil && !q.Close
}

// answer answers the request as it was decided.
func (c *icapConn) answer(a *asking, w *heldAnswer) error {
	q, body := &c.request, icapBody{c.clientConn, c.in.Body()}
	switch {
	case !a.permitted:
		if q.More {
			rest, err := c.in.Continue(&c.out)
			if err == nil {
				_, err = io.CopyN(io.Discard, icapBody{c.clientConn, rest}, maxDrain)
			}
			if err != io.EOF {
				q.Close = true
			}
		}
		unread := q.Body
		q.Close = q.Close || unread
		w.header["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
		err := c.out.Response(q, w.status, w.header, w.body.Bytes())
		if unread && err == nil {
			c.drain()
		}
		return err
	case !q.Allow:
		return c.out.Same(q, body)
	}
	err := c.out.Status(q, http.StatusNoContent, "")
	if err == nil && q.Body {
		_, err = io.Copy(io.Discard, body)
	}
	return err
}

// drain ends what is sent, and reads what still comes for a moment: closed immediately, the
// connection could lose the answer.
func (c *icapConn) drain() {
	_ = c.SetReadDeadline(time.Now().Add(c.proxy.limits().DrainTime))
	drain(c.Conn)
}

// icapBody is a body of which each part has to come in time.
type icapBody struct {
	*clientConn
	from io.Reader
}

// Read implements io.Reader.
func (b icapBody) Read(p []byte) (int, error) {
	_ = b.SetReadDeadline(time.Now().Add(b.proxy.limits().BodyTime))
	return b.from.Read(p)
}

// watchDelay is how long a question waits for its answer before its connection is watched.
const watchDelay = 20 * time.Millisecond

// watch calls leave when the client closes the connection, until stop is called. What comes
// instead is the next request.
func (c *icapConn) watch(leave func()) (stop func()) {
	if c.request.Body || len(c.in.HTTP.Buffered()) > 0 {
		return func() {}
	}
	_ = c.SetReadDeadline(time.Time{})
	ended := make(chan struct{})
	timer := time.AfterFunc(watchDelay, func() {
		defer close(ended)
		if err := c.in.HTTP.Fill(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			leave()
		}
	})
	return func() {
		if !timer.Stop() {
			_ = c.SetReadDeadline(past)
			<-ended
		}
	}
}

// unreadable answers a request that cannot be read for err. A connection that has ended gets no
// answer.
func (c *icapConn) unreadable(err error) {
	var over *limit.Exceeded
	var fault *icap.Error
	switch {
	case errors.As(err, &fault):
		c.refuse(fault.Status, rules.ReasonMalformed, fault.Text)
	case errors.As(err, &over):
		c.refuse(http.StatusServiceUnavailable, rules.ReasonLimit, over.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.refuse(http.StatusRequestTimeout, rules.ReasonLimit, c.proxy.gate.CountExceeded(limit.HeaderTime).Error())
	}
}

// refuse answers a request with an error of ICAP, and records that. There is no answer without
// a record. The connection ends.
func (c *icapConn) refuse(status int, reason rules.Reason, detail string) {
	q := &c.request
	h := &q.HTTP
	seen := &http.Request{Method: h.Method, RequestURI: h.Target, ProtoMajor: 1, Header: h.Header()}
	if h.Method == "" {
		seen.Method = q.Method
	}
	c.asks.Questions.count(false, reason == rules.ReasonMalformed)
	x := c.unread(seen, rules.Origin{})
	x.entry.Outcome.Status = status
	q.Close = true
	detail = safetext.Printable(detail, maxDetail)
	if c.proxy.note(&x.entry, rules.Refuse, reason, detail) && c.out.Status(q, status, detail) == nil {
		c.drain()
	}
}

// asked returns the request that c.request asks about, and who its client is: the address is
// not valid, and the user empty, where that is not stated.
func (c *icapConn) asked(ctx context.Context) (r *http.Request, client netip.AddrPort, user string, err error) {
	q := &c.request
	if client, err = icapClient(&q.ICAP); err == nil {
		user, err = icapUser(&q.ICAP)
	}
	if err != nil {
		return nil, client, "", err
	}
	h := q.HTTP
	target := h.Target
	if h.Framing = http1.NoBody; h.Method != http.MethodConnect {
		target = rules.EscapePercents(target)
	}
	if r, err = h.Request(ctx, target, nil); err != nil {
		return nil, client, "", err
	}
	if h.Method != http.MethodConnect && !r.URL.IsAbs() {
		return nil, client, "", errors.New("the encapsulated request has no URL with a scheme and a host, which alone can be judged")
	}
	return r, client, user, nil
}

// oneField returns the value of the field of h with a canonical name; empty: there is none.
func oneField(h *http1.Head, key string) (value string, err error) {
	value, lines := h.Last(key)
	if lines > 1 {
		return "", fmt.Errorf("the ICAP request has %d fields %s, and may have one", lines, key)
	}
	return value, nil
}

// icapClient returns the address that X-Client-IP and X-Client-Port state.
func icapClient(h *http1.Head) (client netip.AddrPort, err error) {
	address, err := oneField(h, "X-Client-Ip")
	port, portErr := oneField(h, "X-Client-Port")
	switch {
	case err != nil || portErr != nil:
		return client, cmp.Or(err, portErr)
	case address == "" || address == "-":
		return client, nil
	case port != "":
		address = net.JoinHostPort(address, port)
	}
	if client, err = parseClient(address); err != nil {
		err = errors.New("X-Client-IP is not an address, or X-Client-Port no port")
	}
	return client, err
}

// maxUser is how many octets the name of a user may have.
const maxUser = 256

// icapUser returns the name of the user: in X-Authenticated-User it is in base64, after a scheme
// such as Local://, and in X-Client-Username as it is.
func icapUser(h *http1.Head) (user string, err error) {
	if user, err = oneField(h, "X-Client-Username"); err != nil {
		return "", err
	}
	text, err := oneField(h, "X-Authenticated-User")
	if err != nil {
		return "", err
	}
	if text != "" {
		octets, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		if err != nil {
			return "", errors.New("X-Authenticated-User is not base64")
		}
		if user = string(octets); strings.Contains(user, "://") {
			_, user, _ = strings.Cut(user, "://")
		}
	}
	if user == "-" { // of Squid, without a user
		return "", nil
	}
	if len(user) > maxUser || !utf8.ValidString(user) || strings.ContainsFunc(user, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", errors.New("the name of the user is too long, or contains what no name does")
	}
	return user, nil
}

// connectAsked decides on a CONNECT about which another proxy asks. What it sends through
// the tunnel is seen only where it asks about that, too.
func (x *delivery) connectAsked(r *http.Request) {
	q := &x.req
	d := q.locateTunnel(r)
	if d.reason == "" {
		d = x.toSelf(r)
	}
	if d.reason == "" {
		q.identify(x.proxy)
		d = x.mayTunnel()
	}
	if d.reason != "" {
		x.deny(d)
	} else {
		x.decide(x)
	}
	if x.refusal != nil {
		x.answer(r)
		return
	}
	x.writer.send(x.permit(r))
}

// mayTunnel denies a CONNECT about which another proxy asks, unless heed would not look into the
// tunnel either, or that proxy does.
func (x *decision) mayTunnel() denial {
	q, detail := &x.req, ""
	ok, ports := q.effective.TunnelsTo(q.origin)
	bumped := q.conn.asked.of.Bumped
	switch q.https, _ = x.httpsMode(); {
	case q.https == acl.Intercept:
		if q.https = acl.Tunnel; bumped == nil || !bumped() {
			detail = "heed would see nothing of what is requested in this tunnel; have the proxy that asks decrypt TLS, and set connect = \"bumped\" (heed help other-proxies)"
		}
	case q.https == acl.NoHTTPS:
		detail = "the operator lets no https through to " + safetext.Printable(q.origin.Host, 100)
	case !ok:
		detail = "tunnels to " + safetext.Printable(q.origin.Host, 100) + " go to port " + ports + " only"
	}
	if detail == "" {
		return denial{}
	}
	return denial{reason: rules.ReasonAccess, detail: detail}
}

// settingsTag is a text that changes with the settings.
func (p *Proxy) settingsTag() string {
	s := p.config.Live()
	last := p.tag.Load()
	if last == nil || last.of != s {
		last = &tagOf{s, strconv.FormatInt(time.Now().UnixNano(), 36)}
		p.tag.Store(last)
	}
	return last.text
}

// tagOf is the text for settings.
type tagOf struct {
	of   *Settings
	text string
}

// heldAnswer is an answer that is kept until it is complete. heed's own are small.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *heldAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. It comes before Write.
func (w *heldAnswer) WriteHeader(status int) {
	if status >= 200 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *heldAnswer) Write(b []byte) (int, error) { return w.body.Write(b) }

// FlushError serves http.ResponseController.
func (w *heldAnswer) FlushError() error { return nil }
