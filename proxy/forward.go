package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/internal/audit"
	"heed/internal/signal"
	"heed/proxy/http1"
	"heed/proxy/upstream"
	"heed/proxy/usage"
)

// forward sends an allowed request to the site. It never fails: what goes
// wrong is an answer too. goproxy calls it for plain and intercepted requests
// alike.
func (x *exchange) forward(r *http.Request) *http.Response {
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
	x.entry.Outcome.FromSite = true
	x.reportAnswer(resp)
	x.entry.Outcome.SiteAnswer = string(signal.Classify(resp.StatusCode, resp.Header))
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

// send sends r on its way and returns the site's answer. Afterwards the handler alone
// writes to the client.
func (x *exchange) send(r *http.Request, webSocket bool) (*http.Response, error) {
	w := &x.writer
	defer w.answered()
	if w.h1 != nil {
		w.h1.UnderWay()
	}
	x.out = upstream.Request{Request: r, Target: x.req.target, HTTP1Only: webSocket, Hooks: w}
	if w.h1 != nil {
		x.out.Fields, x.out.Answer = w.h1.Fields(), w.h1.FieldRoom()
	}
	x.out.Signer, x.out.SignForm = x.req.signing(time.Now())
	if x.req.own {
		return x.proxy.config.OwnServices.Upstream.Send(&x.out)
	}
	return x.req.settings.Upstream.Send(&x.out)
}

// cleanAnswer takes off resp what concerns the connection to the site only, and
// adds heed's own fields.
func (x *exchange) cleanAnswer(resp *http.Response) {
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

// relayAnswer makes the site's answer, which is not an upgrade, the client's.
func (x *exchange) relayAnswer(r *http.Request, resp *http.Response) {
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
	x.download = downloadBody{ReadCloser: resp.Body, exchange: x, resp: resp}
	resp.Body = &x.download
}

// keepForm keeps what only HTTP/1 has of an answer: its phrase, and the names and the order
// of its fields.
func (x *exchange) keepForm(r *http.Request, resp *http.Response) {
	if r.ProtoMajor == 1 && resp.ProtoMajor == 1 {
		x.writer.phrase = oddPhrase(resp)
		if h1 := x.writer.h1; h1 != nil {
			h1.SetFields(x.out.Answer)
		}
	}
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
func (x *exchange) answerLastHop(r *http.Request) *http.Response {
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
