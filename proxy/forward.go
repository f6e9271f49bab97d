package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"time"

	"heed/rules"
)

// forward sends an allowed request to the site. It never fails: what goes
// wrong is an answer too. goproxy calls it for plain and intercepted requests
// alike.
func (x *exchange) forward(r *http.Request, w *responseWriter) *http.Response {
	p := x.proxy
	if last, n := maxForwards(r); last {
		return x.lastHop(r)
	} else if n != "" {
		r.Header["Max-Forwards"] = []string{n}
	}
	x.prepareBody(r)
	r.Close = false // the client's wish for its own connection
	p.addVia(r.Header, r.ProtoMajor, r.ProtoMinor)
	x.setIdentity(r.Header)
	x.webSocket = isWebSocket(r.Header)
	w.trace.GotConn = w.gotConn
	if x.turn.Load() != nil {
		w.trace.WroteHeaders = x.started
	}
	if r.ProtoAtLeast(1, 1) { // a 1xx is not for HTTP/1.0 (RFC 9110 §15.2)
		w.trace.Got1xxResponse = w.informational
	}
	r = x.sendsOnce(r, w)
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &w.trace))
	resp, err := x.settings.Upstream.RoundTrip(r)
	w.answered()
	if err != nil {
		return x.fail(r, err)
	}
	if resp.StatusCode < 100 || resp.StatusCode == http.StatusProxyAuthRequired {
		resp.Body.Close()
		return x.failStatus(r, resp.StatusCode)
	}
	x.entry.Outcome.FromSite = true
	x.heardFrom(resp)
	if resp.Close {
		w.site.restoreConnection(resp.Header)
	}
	removeHopByHop(resp.Header)
	dropForged(resp.Header, p.Name)
	p.addVia(resp.Header, resp.ProtoMajor, resp.ProtoMinor)
	if remark := x.remark(); remark != "" {
		resp.Header.Add("Proxy-Status", remark)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if !x.webSocket || !isWebSocket(resp.Header) {
			resp.Body.Close()
			x.entry.Outcome.FromSite = false
			return x.fail(r, errUpgrade)
		}
		return resp // its body has to stay what it is: both directions of the connection
	}
	x.pass(r, w, resp)
	return resp
}

// prepareBody makes r's body one that is counted and whose framing the
// Transport keeps.
func (x *exchange) prepareBody(r *http.Request) {
	if unreadBody(r) {
		cleanTrailer(r.Trailer)
		x.upload.Reader, x.upload.trailer = x.patient(r), r.Trailer
		r.Body = &x.upload
		return
	}
	if r.ContentLength != 0 {
		return
	}
	r.Body = http.NoBody // HTTP/2's empty body is none that net/http would know
	if _, ok := r.Header["Content-Length"]; ok && r.ProtoMajor == 1 {
		r.TransferEncoding = []string{"identity"} // "Content-Length: 0" stays, whatever the method
	}
}

// pass makes the site's answer, which is not an upgrade, the client's.
func (x *exchange) pass(r *http.Request, w *responseWriter, resp *http.Response) {
	delete(resp.Header, "Connection") // on any other status goproxy would take the fields for a handshake
	delete(resp.Header, "Upgrade")
	if x.uploading(r) {
		// An answer before the upload is complete goes out at once, beside the
		// rest of the upload; without this net/http reads the rest itself first.
		resp.Header["Connection"] = []string{"close"}
	}
	if resp.StatusCode == http.StatusNotModified {
		keepNotModified(resp.Header, r.ProtoMajor)
	}
	if len(resp.Trailer) > 0 {
		announce(r, resp)
		w.trailer = resp.Trailer
	}
	if r.ProtoMajor == 1 && resp.ProtoMajor == 1 {
		w.phrase = oddPhrase(resp)
	}
	if r.Method != http.MethodHead {
		w.stream, w.length = resp.ContentLength < 0, resp.ContentLength
	}
	x.download = downloadBody{ReadCloser: resp.Body, resp: resp, name: x.proxy.Name}
	resp.Body = &x.download
}

// keepNotModified sees to the fields of a 304 that tell of what was not sent.
// net/http takes them off by their usual spelling; HTTP/2 clients may take a
// length for a promise of content.
func keepNotModified(h http.Header, major int) {
	for _, name := range [...]string{"Content-Type", "Content-Length"} {
		values, ok := h[name]
		if !ok || major > 1 && name == "Content-Type" {
			continue
		}
		delete(h, name)
		if major == 1 {
			h[strings.ToLower(name)] = values
		}
	}
}

// oddPhrase returns the reason phrase of resp when net/http would write
// another, and nil when it would not or when the phrase is none that may be
// passed on (RFC 9112 §4).
func oddPhrase(resp *http.Response) *string {
	_, phrase, _ := strings.Cut(resp.Status, " ")
	if phrase == http.StatusText(resp.StatusCode) && phrase != "" || len(phrase) > 1<<10 {
		return nil
	}
	for i := range len(phrase) {
		if c := phrase[i]; c < ' ' && c != '\t' || c == 0x7f {
			return nil
		}
	}
	odd := phrase // of its own, so that the usual one costs no allocation
	return &odd
}

// setIdentity puts the settled identity into h; without one the client's
// own stays, and a missing one stays missing. Several lines become the one
// that was judged: net/http would send the first alone.
func (x *exchange) setIdentity(h http.Header) {
	own := x.entry.Sent
	if from := x.entry.SentFrom; from != "" {
		h["From"] = []string{from}
	}
	lines, ok := h["User-Agent"]
	switch {
	case own != "":
		h["User-Agent"] = []string{own}
	case !ok:
		h["User-Agent"] = nil // net/http would send its own
	case len(lines) > 1:
		h["User-Agent"] = []string{x.entry.UserAgent}
	}
}

// fail turns the Transport's error into an answer. A body that the client
// broke is the client's fault and not the site's.
func (x *exchange) fail(r *http.Request, err error) *http.Response {
	o := &x.entry.Outcome
	if over := x.lateBody(); over != nil {
		x.replyLimit(over)
		o.Err = "client: " + over.Error()
		return x.refusalResponse(r)
	} else if x.noTurn != nil {
		x.replyPaced(x.noTurn)
		o.Err = "site: " + errorText(errNoTurn)
		return x.refusalResponse(r)
	} else if bad := x.upload.bad.Load(); bad != nil {
		x.reply(rules.ReasonMalformed)
		x.refusal.detail = "the request's body cannot be read"
		o.Err = "client: " + errorText(*bad)
	} else if errors.Is(err, ErrDestination) {
		x.reply(rules.ReasonDestination)
		x.refusal.cause = err
		o.Err = errorText(err)
	} else {
		x.reply(rules.ReasonOriginUnreachable)
		x.refusal.status, x.refusal.errorType = classify(err)
		switch {
		case errors.Is(err, errStatus):
			x.refusal.detail = statusDetail
		case byUpstream(err):
			x.refusal.detail = upstreamDetail
		}
		o.Err = "site: " + x.refusal.errorType + ": " + errorText(err)
	}
	x.refusal.phrase = printable(x.sentence(x.refusal), maxPhrase)
	if x.Context.Err() != nil {
		o.Err = "client: left before the site answered"
	}
	return x.refusalResponse(r)
}

const statusDetail = "The answer carried a status that only a proxy may give (407), or none at all; it is not passed on, so that nobody sends " +
	"credentials to the wrong place. Where heed itself goes through a proxy, that proxy may want other credentials: the operator finds them at [upstream] proxy."

const upstreamDetail = "The proxy that heed itself reaches this site through could not be used, or did not open the way; no rule of robots.txt is behind this. " +
	"The operator finds it at [upstream] proxy, or in the [[host]] of the site."

// failStatus answers for a site whose status cannot be passed on. A 407 is one:
// the client would take it for heed's and send credentials that the site has no
// business with (RFC 9110 §15.5.8).
func (x *exchange) failStatus(r *http.Request, status int) *http.Response {
	resp := x.fail(r, errStatus)
	x.entry.Outcome.Err = fmt.Sprintf("site: http_protocol_error: status %03d", status)
	return resp
}

// gotConn notes which connection the request goes out on.
func (w *responseWriter) gotConn(i httptrace.GotConnInfo) {
	w.site, _ = i.Conn.(*siteConn)
	x := w.exchange
	if x.turn.Load() == nil {
		return
	}
	if w.site != nil {
		w.site.wrote.Store(x)
	}
	x.going()
}

// informational passes a 1xx answer on (RFC 9110 §15.2). 100 is left to
// net/http, which sends it when the site's own has let the body go.
func (w *responseWriter) informational(code int, header textproto.MIMEHeader) error {
	w.interim.Lock()
	defer w.interim.Unlock()
	if code == http.StatusContinue || w.final {
		return nil
	}
	removeHopByHop(http.Header(header))
	dropForged(http.Header(header), w.exchange.proxy.Name)
	major := 2
	if w.site != nil {
		major = 1
	}
	w.exchange.proxy.addVia(http.Header(header), major, 1)
	h := w.Header()
	for k, v := range header {
		h[k] = v
	}
	w.WriteHeader(code)
	clear(h)
	return nil
}

// answered ends the time of 1xx answers: the Transport may still report one
// when a request was given up.
func (w *responseWriter) answered() {
	w.interim.Lock()
	defer w.interim.Unlock()
	w.final = true
}

// maxDrain bounds drain, in octets.
const maxDrain = 32 << 20

// uploading reports whether an HTTP/1 client may still be sending r's body.
// HTTP/2 ends a stream without that.
func (x *exchange) uploading(r *http.Request) bool {
	return unreadBody(r) && r.ProtoMajor == 1 && !x.upload.eof.Load()
}

// drain reads on what a client goes on sending after it was answered, for a
// bounded while. Many clients read the answer only when they have sent their
// body, and a connection closed in their face would cost them the answer.
func (x *exchange) drain(w *responseWriter, r *http.Request) {
	if !x.uploading(r) || w.hijacked {
		return
	}
	w.Flush()
	if err := http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(x.proxy.limits().drain)); err != nil {
		return
	}
	if x.upload.Reader == nil {
		x.upload.Reader = r.Body
	}
	_, _ = io.CopyN(io.Discard, &x.upload, maxDrain) // how it ends changes nothing: the connection closes
}
