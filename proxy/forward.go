package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/internal/audit"
	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/proxy/http1"
	"heed/proxy/refusal"
	"heed/proxy/upstream"
	"heed/proxy/usage"
	"heed/rules"
)

// delivery is what is sent for a decision: the request to the site, and the answer to the client.
// This file has the way there and back, in its order: forward, send, what the transport reports
// on the way (upstream.Hooks), and the answer of the site until the client's writer takes it.
type delivery struct {
	decision
	upload   uploadBody
	out      upstream.Request // as it is sent to the site
	download downloadBody
	writer   responseWriter
	upgraded *tunnelConn // the client's side of a WebSocket or a tunnel
	stream   *stream     // of HTTP/2; else nil
}

// forward sends an allowed request to the site. It never fails: what goes
// wrong is an answer too. goproxy calls it for plain and intercepted requests
// alike.
func (x *delivery) forward(r *http.Request) *http.Response {
	if last, n := maxForwards(r); last {
		return x.answerLastHop(r)
	} else if n != "" {
		r.Header["Max-Forwards"] = []string{n}
	}
	x.upload.prepare(x, r)
	r.Close = false // the client's wish for its own connection
	if x.req.effective.Via() {
		x.proxy.via.Add(r.Header, r.ProtoMajor, r.ProtoMinor)
	}
	x.req.setIdentity(r.Header)
	webSocket := http1.IsWebSocket(r.Header)
	if !webSocket && x.readsPage() {
		usage.OfferReadable(r.Header)
	}
	resp, err := x.send(r, webSocket)
	x.entry.Outcome.Note = x.out.Remark
	switch {
	case err != nil:
		return x.fail(r, err)
	case resp.StatusCode < 100 || resp.StatusCode == http.StatusProxyAuthRequired:
		// The client would take a 407 for heed's and send credentials that the site
		// has no business with (RFC 9110 §15.5.8).
		resp.Body.Close()
		failure := x.fail(r, upstream.ErrStatus)
		x.entry.Outcome.End(audit.BySite, fmt.Sprintf("http_protocol_error: status %03d", resp.StatusCode))
		return failure
	}
	x.saw(resp)
	x.cleanAnswer(resp)
	x.keepForm(r, resp)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		x.relayAnswer(r, resp)
		if x.statesUse(resp.Header) {
			resp = x.readUse(r, resp)
		}
	} else if !webSocket || !http1.IsWebSocket(resp.Header) {
		resp.Body.Close()
		x.entry.Outcome.FromSite = false
		return x.fail(r, upstream.ErrUpgrade)
	}
	return resp // the body of a 101 stays what it is: both directions of the connection
}

// saw records that the site has answered.
func (x *delivery) saw(resp *http.Response) {
	x.entry.Outcome.FromSite = true
	x.reportAnswer(resp)
	x.entry.Outcome.SiteAnswer = string(signal.Classify(resp.StatusCode, resp.Header))
}

// send sends r on its way and returns the site's answer. Afterwards the handler alone
// writes to the client.
func (x *delivery) send(r *http.Request, webSocket bool) (*http.Response, error) {
	w := &x.writer
	defer w.answered()
	if w.h1 != nil {
		w.h1.UnderWay()
	}
	x.out = upstream.Request{Request: r, Target: x.req.target, HTTP1Only: webSocket, Hooks: x}
	if w.h1 != nil {
		x.out.Fields, x.out.Answer = w.h1.Fields(), w.h1.FieldRoom()
	}
	x.out.Signer, x.out.SignForm = x.req.signing(time.Now())
	if x.req.own {
		return x.proxy.config.OwnServices.Upstream.Send(&x.out)
	}
	return x.req.settings.Upstream.Send(&x.out)
}

// Attempt implements upstream.Hooks. A request that is sent once more needs another turn.
func (x *delivery) Attempt() error { return x.retryTurn() }

// Connected implements upstream.Hooks.
func (x *delivery) Connected(http2 bool) bool {
	x.writer.http2 = http2
	t := x.turn.Load()
	return t == nil || t.Going()
}

// Written implements upstream.Hooks.
func (x *delivery) Written() {
	if t := x.turn.Load(); t != nil {
		t.Started()
	}
}

// Interim implements upstream.Hooks. It passes a 1xx answer on (RFC 9110 §15.2). 100 is
// left to the server, which sends it when the site's own has let the body go.
func (x *delivery) Interim(code int, header http.Header) {
	w := &x.writer
	w.interim.Lock()
	defer w.interim.Unlock()
	if code == http.StatusContinue || w.final {
		return
	}
	http1.RemoveHopByHop(header)
	http1.StripSpoofedStatus(header, x.proxy.config.Name)
	major := 1
	if w.http2 {
		major = 2
	}
	x.proxy.via.Add(header, major, 1)
	http1.DropLength(header, code, 2)
	h := w.Header()
	maps.Copy(h, header)
	w.WriteHeader(code)
	clear(h)
}

// fail turns the Transport's error into an answer. A body that the client
// broke is the client's fault and not the site's.
func (x *delivery) fail(r *http.Request, err error) *http.Response {
	o := &x.entry.Outcome
	switch over, bad := x.upload.exceeded.Load(), x.upload.bad.Load(); {
	case over != nil:
		x.reply(refusal.Case{Reason: rules.ReasonLimit, Err: over})
		o.End(audit.ByClient, over.Error())
		return x.refused(r)
	case x.paced != nil && x.req.effective.Mode != acl.Observe:
		x.reply(refusal.Case{Reason: rules.ReasonPaced, Paced: x.paced})
		why := errNoTurn
		if errors.Is(err, errLate) {
			why = errLate
		}
		o.End(audit.BySite, why.Error())
		return x.refused(r)
	case bad != nil:
		x.reply(refusal.Case{Reason: rules.ReasonMalformed, Detail: "the request's body cannot be read"})
		o.End(audit.ByClient, safetext.Error(*bad))
	case errors.Is(err, acl.ErrDestination):
		x.reply(refusal.Case{Reason: rules.ReasonDestination, Err: err})
		o.Err = safetext.Error(err)
	case errors.Is(err, acl.ErrSelf):
		x.reply(refusal.Case{Reason: rules.ReasonLoop, Err: err})
		o.Err = safetext.Error(err)
	default:
		x.reply(refusal.Case{Reason: rules.ReasonOriginUnreachable, Err: err})
		by := audit.BySite
		if upstream.FailureOf(err).ByProxy {
			by = audit.ByUpstream
		}
		o.End(by, x.refusal.ErrorType+": "+safetext.Error(err))
		x.closePort()
	}
	if x.Context.Err() != nil {
		o.End(audit.ByClient, "left before the site answered")
	}
	return x.refused(r)
}

// cleanAnswer takes off resp what concerns the connection to the site only, and
// adds heed's own fields.
func (x *delivery) cleanAnswer(resp *http.Response) {
	p := x.proxy
	http1.RemoveHopByHop(resp.Header)
	http1.StripSpoofedStatus(resp.Header, p.config.Name)
	if x.req.settings.Signals.Annotate { // the field is heed's; see readUse
		delete(resp.Header, signal.AnnotationField)
		delete(resp.Trailer, signal.AnnotationField)
	}
	p.via.Add(resp.Header, resp.ProtoMajor, resp.ProtoMinor)
	if remark := x.remark(); remark != "" {
		resp.Header.Add("Proxy-Status", remark)
	}
}

// keepForm keeps what only HTTP/1 has of an answer: its phrase, and the names and the order
// of its fields.
func (x *delivery) keepForm(r *http.Request, resp *http.Response) {
	if r.ProtoMajor == 1 && resp.ProtoMajor == 1 {
		x.writer.phrase = oddPhrase(resp)
		if h1 := x.writer.h1; h1 != nil {
			h1.SetFields(x.out.Answer)
		}
	}
}

// relayAnswer makes the site's answer, which is not an upgrade, the client's.
func (x *delivery) relayAnswer(r *http.Request, resp *http.Response) {
	w := &x.writer
	if resp.StatusCode != http.StatusUpgradeRequired || r.ProtoMajor > 1 || !r.ProtoAtLeast(1, 1) { // RFC 9110 §15.5.22
		delete(resp.Header, "Connection") // RemoveHopByHop leaves that of a WebSocket
		delete(resp.Header, "Upgrade")
	}
	http1.DropLength(resp.Header, resp.StatusCode, r.ProtoMajor)
	if len(resp.Trailer) > 0 {
		http1.AnnounceTrailer(r, resp)
		w.trailer = resp.Trailer
	}
	if r.Method != http.MethodHead {
		w.stream, w.length = resp.ContentLength < 0, resp.ContentLength
	}
	x.download = downloadBody{ReadCloser: resp.Body, of: x, resp: resp}
	resp.Body = &x.download
}

// truncation returns what ended the site's answer early; nil when nothing did, or
// when the client had all of the promised length by then.
func (x *delivery) truncation() error {
	if x.writer.whole && !errors.Is(x.download.err, upstream.ErrLonger) {
		return nil
	}
	return x.download.err
}

// oddPhrase returns the reason phrase of resp when net/http would write
// another, and nil when it would not or when the phrase is none that may be
// passed on (RFC 9112 §4).
func oddPhrase(resp *http.Response) *string {
	_, phrase, _ := strings.Cut(resp.Status, " ")
	if phrase == http.StatusText(resp.StatusCode) && phrase != "" || len(phrase) > 1<<10 || !httpguts.ValidHeaderFieldValue(phrase) {
		return nil
	}
	odd := phrase // a separate variable, so that the usual one costs no allocation
	return &odd
}

// maxForwards reads the field that counts a TRACE's or OPTIONS' hops (RFC 9110
// §7.6.2): last when heed itself has to answer, else the value for the next
// hop. Empty: the field is not there, or not a number, or of a method that it
// means nothing to.
func maxForwards(r *http.Request) (last bool, next string) {
	values := r.Header["Max-Forwards"]
	if len(values) == 0 || r.Method != http.MethodTrace && r.Method != http.MethodOptions {
		return false, ""
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return false, ""
	}
	if n == 0 {
		return true, ""
	}
	return false, strconv.FormatUint(n-1, 10)
}

// secretFields are not shown by an answer to TRACE (RFC 9110 §9.3.8).
var secretFields = map[string]bool{"Authorization": true, "Cookie": true, "Proxy-Authorization": true}

// answerLastHop answers a request that was not to go further. Its Proxy-Status says
// that this is not the site's answer (RFC 9209 §2.3).
func (x *delivery) answerLastHop(r *http.Request) *http.Response {
	resp := &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody,
		Header: http.Header{
			"Content-Length": {"0"},
			"Cache-Control":  {"no-store"},
			"Proxy-Status":   {x.proxy.statusName + "; error=proxy_internal_response"},
		},
	}
	if r.Method == http.MethodTrace {
		var b bytes.Buffer
		fmt.Fprintf(&b, "TRACE %s %s\r\nHost: %s\r\n", x.req.target, r.Proto, r.Host)
		_ = r.Header.WriteSubset(&b, secretFields) // a buffer takes all
		b.WriteString("\r\n")
		resp.Header.Set("Content-Type", "message/http")
		resp.Header.Set("Content-Length", strconv.Itoa(b.Len()))
		resp.Body, resp.ContentLength = io.NopCloser(&b), int64(b.Len())
	}
	return resp
}
