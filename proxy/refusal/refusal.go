// Package refusal makes the answers that heed gives itself: the status, the reason
// phrase, Proxy-Status (RFC 9209) and a body that explains the refusal (RFC 9457).
// Plain data goes in, an http.Response comes out.
//
// refusal.go has the answer and its first sentence, problem.go the body, queue.go
// the texts about turns, use.go those about the use of pages, unreachable.go those about sites
// that are not reached.
package refusal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/internal/judge/reason"
	"heed/internal/judge/signal"
	"heed/internal/pace"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

// Case is what an Answer is made from.
type Case struct {
	Reason rules.Reason
	Entry  *audit.Entry // the record of the request; never nil. Its decision may allow the request: that can fail later
	Host   string       // canonical name of the site, without a port; empty: none was named

	// Err is what stopped the request: a *limit.Exceeded, an error that wraps
	// acl.ErrDestination, or the error of the Transport. Nil: the decision did,
	// and an error is that of the Entry's Policy.
	Err        error
	Status     int             // in place of the reason's; 0: the reason's
	Detail     string          // what went wrong after the decision; empty: the Entry's Detail
	RetryAfter time.Duration   // in place of the reason's; 0: the reason's
	Use        *signal.Refusal // why the site's statements refuse the use of the page; nil: they do not
	Paced      *pace.Answer    // the answer of the Pacer when the turn was too far off; nil: it was not
	Proxy      Proxy
}

// Proxy is what an answer contains of the proxy and its settings.
type Proxy struct {
	Member string // the proxy's name as a member of Proxy-Status (RFC 9209 §2)
	Page   string // host:port under which the proxy answers for itself
	Mark   bool   // Proxy-Status contains the id of the decision
	Own    bool   // the clients are the operator's own command, by heed run
}

// Answer is an answer of heed's own. Make it with New; it does not change.
type Answer struct {
	Status     int
	ErrorType  string        // of Proxy-Status (RFC 9209 §2.3); empty: none fits
	Phrase     string        // the reason phrase and the first member of the body: printable ASCII, bounded
	RetryAfter time.Duration // when the same request can be served; 0: waiting does not help

	of     Case
	detail string // in place of the reason's explanation; empty: none
}

// maxPhrase bounds a reason phrase, in octets: some clients limit a status line.
const maxPhrase = 200

// New returns the answer for c. Status, error type and Retry-After are those of
// reason.Of, or those of c's error where that is more exact.
func New(c Case) *Answer {
	a := answerFor(c)
	a.Phrase = safetext.Printable(a.sentence(), maxPhrase)
	return &a
}

func answerFor(c Case) Answer {
	row := reason.Of(c.Reason)
	a := Answer{Status: cmp.Or(c.Status, row.Status), ErrorType: row.Error, RetryAfter: cmp.Or(c.RetryAfter, row.RetryAfter), of: c, detail: c.Detail}
	switch over, isLimit := c.Err.(*limit.Exceeded); {
	case isLimit:
		a.Status, a.ErrorType, a.detail = over.Kind.Status(), limitErrorType(over.Kind), over.Error()
		if over.Kind.Temporary() {
			a.RetryAfter = cmp.Or(c.RetryAfter, limitRetry)
		}
	case c.Paced != nil:
		a.RetryAfter = c.Paced.RetryAfter
	case c.Reason == rules.ReasonOriginUnreachable:
		a.setFailure(a.err())
	case c.Reason == rules.ReasonRobotsUnreachable && c.Entry.Policy != nil:
		a.RetryAfter = askedAgain(c.Entry.Policy.Source(), a.RetryAfter)
	}
	return a
}

// askedAgain returns when rules that could not be read are asked for again: 0 never, and
// unknown when source does not show it. The file of a site that is too large to be used has
// the time until which it is fresh.
func askedAgain(source rules.Source, unknown time.Duration) time.Duration {
	at := source.RetryAt
	if at.IsZero() {
		at = source.FreshUntil
	}
	switch {
	case !at.IsZero():
		return max(time.Second, time.Until(at))
	case upstream.FailureOf(source.Err).Lasting, unusable(source.Err) != nil:
		return 0
	}
	return unknown
}

// err returns what stopped the request: c's error, else that of its policy.
func (a *Answer) err() error {
	if a.of.Err == nil && a.of.Entry.Policy != nil {
		return a.of.Entry.Policy.Source().Err
	}
	return a.of.Err
}

// setFailure answers for a site that could not be reached.
func (a *Answer) setFailure(err error) {
	failure := upstream.FailureOf(err)
	a.Status, a.ErrorType = failure.Status, failure.Type
	switch {
	case errors.Is(err, context.Canceled):
		a.detail = leftDetail
	case errors.Is(err, upstream.ErrStatus):
		a.detail = statusDetail
	case failure.ByProxy && failure.Certificate == "":
		a.detail = upstreamDetail
	case failure.Certificate != "":
		a.detail = a.certificateDetail(failure)
	default:
		a.detail = a.stageDetail(failure)
	}
}

// Response renders a for the request r, in the format that its Accept prefers. The
// response to a HEAD request has no body.
func (a *Answer) Response(r *http.Request) *http.Response {
	var made struct { // one piece of memory
		problem told
		values  [5]string
		body    body
		resp    http.Response
	}
	a.tell(&made.problem)
	contentType, text := made.problem.render(r.Header.Values("Accept"))
	made.values = [...]string{"no-store", a.ProxyStatus(), "nosniff", contentType, strconv.Itoa(len(text))}
	values := made.values[:]
	h := http.Header{
		"Cache-Control":          values[0:1:1],
		"Proxy-Status":           values[1:2:2],
		"X-Content-Type-Options": values[2:3:3],
		"Content-Type":           values[3:4:4],
		"Content-Length":         values[4:5:5],
	}
	if a.Status == http.StatusProxyAuthRequired {
		h.Set("Proxy-Authenticate", `Basic realm="heed", charset="UTF-8"`)
	}
	if a.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(seconds(a.RetryAfter)))
	}
	if a.of.Reason == rules.ReasonMalformed && r.ProtoMajor == 1 { // nor is what follows a malformed request trusted
		h.Set("Connection", "close")
	}
	made.resp = http.Response{
		StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Request: r, Body: http.NoBody, ContentLength: int64(len(text)),
	}
	if r.Method != http.MethodHead {
		made.body.Reset(text)
		made.resp.Body = &made.body
	}
	return &made.resp
}

// body is that of a Response.
type body struct{ bytes.Reader }

// Close implements io.Closer.
func (*body) Close() error { return nil }

// ProxyStatus returns the Proxy-Status field of a (RFC 9209): a list of one member,
// a string with parameters.
func (a *Answer) ProxyStatus() string {
	parameter := ""
	if a.ErrorType != "" {
		parameter = "; error="
	}
	return a.of.Proxy.Member + parameter + a.ErrorType + `; details="` + escaped(a.Phrase) + `"` + a.of.Proxy.mark(a.of.Entry)
}

// Remark returns the Proxy-Status field that heed adds to a site's own answer; empty
// when it adds none. An observed request that would have been refused gets the
// refusal's sentence; paced is the answer of the Pacer when the turn was too far off, or nil.
func (p Proxy) Remark(e *audit.Entry, paced *pace.Answer) string {
	if e.Decision.Verdict == rules.WouldRefuse {
		a := answerFor(Case{Reason: e.Decision.Reason, Entry: e, Paced: paced, Proxy: p})
		return p.Member + "; details=\"" + escaped("observed only, would be: "+a.sentence()) + "\"" + p.mark(e)
	}
	if p.Mark {
		return p.Member + p.mark(e)
	}
	return ""
}

// mark returns the parameter of Proxy-Status that contains the id of a decision, so
// that an answer can be found in the record; empty unless the settings ask for it.
func (p Proxy) mark(e *audit.Entry) string {
	if !p.Mark {
		return ""
	}
	return `; decision="` + e.ID.String() + `"`
}

// escaped returns s as the content of a String of a structured field (RFC 9651 §3.3.3).
func escaped(s string) string { return escapes.Replace(safetext.Printable(s, maxPhrase)) }

// escapes writes what cannot stand for itself in a String of a structured field.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// seconds rounds d up, so that a client that waits exactly that long is not early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// sentence states in a few words what happened. It is the one text that most HTTP
// libraries print.
func (a *Answer) sentence() string {
	e := a.of.Entry
	switch a.of.Reason {
	case rules.ReasonRule:
		return "Refused by heed: robots.txt line " + strconv.Itoa(e.Decision.Line) + " " + e.Decision.Rule
	case rules.ReasonSignal, rules.ReasonLicence:
		return a.useSentence()
	case rules.ReasonOverride:
		return "Refused by heed: an exception of its operator, " + e.Decision.Rule
	case rules.ReasonNoAgent:
		return "Refused by heed: the request names no User-Agent"
	case rules.ReasonCredentials: // of a CONNECT, clients show no more than this
		return "Refused by heed: " + cmp.Or(a.detail, e.Detail) + "; give both as http://USER:PASSWORD@HOST:PORT"
	case rules.ReasonHostOnly:
		return fmt.Sprintf("Refused by heed: robots.txt line %d %s, for all of %s", e.Decision.Line, e.Decision.Rule, e.Host)
	case rules.ReasonRobotsUnreachable:
		if a.RetryAfter == 0 {
			return "Refused by heed: robots.txt of " + e.Host + " could not be read"
		}
		return fmt.Sprintf("Refused by heed: robots.txt of %s could not be read, ask again after %d s", e.Host, seconds(a.RetryAfter))
	case rules.ReasonOriginUnreachable:
		return a.unreachableSentence()
	case rules.ReasonDestination:
		return a.destinationSentence()
	case rules.ReasonUntrusted:
		return "heed's CA is not trusted by this client: see http://" + a.of.Proxy.Page + "/"
	case rules.ReasonPaced:
		return a.pacedSentence()
	case rules.ReasonClientLeft:
		if e.TurnWaited > 0 {
			return "Refused by heed: the client closed its connection before its turn at " + e.Host + " came"
		}
		return "Refused by heed: the client closed its connection before the rules of " + e.Host + " had arrived"
	case rules.ReasonLoop:
		return "Refused by heed: the request would come back to heed itself"
	case rules.ReasonRecord:
		return "Refused by heed: the decision could not be recorded"
	case rules.ReasonInternal:
		return "heed failed on this request"
	default:
		return "Refused by heed: " + cmp.Or(a.detail, e.Detail)
	}
}

// destinationSentence states why a destination may not be reached.
func (a *Answer) destinationSentence() string {
	if why, ok := errors.AsType[*acl.DestinationError](a.err()); ok {
		return why.Sentence()
	}
	return "Refused by heed: this proxy may not reach " + a.of.Entry.Host
}

// Raw returns the answer for c as octets, head and body, for a connection on which
// no request was read; r is what could be read of one.
func Raw(c Case, r *http.Request) []byte {
	a := New(c)
	resp := a.Response(r)
	resp.Header.Set("Connection", "close")
	resp.Status = a.Phrase
	var b bytes.Buffer
	_ = resp.Write(&b) // a buffer takes all
	return b.Bytes()
}

// limitRetry is Retry-After for a limit that is temporary.
const limitRetry = time.Second

// limitErrorType returns the Proxy-Status error type of a limit (RFC 9209 §2.3).
func limitErrorType(k limit.Kind) string {
	if k.Status() == http.StatusServiceUnavailable {
		return "http_request_denied"
	}
	return "http_request_error"
}

// limitDetail explains a limit to a person, and what can be done.
func (a *Answer) limitDetail(k limit.Kind) string {
	switch {
	case k.Status() == http.StatusServiceUnavailable:
		return "This proxy serves no more at a time than its settings allow. A retry in a moment can help" + a.changeable(k)
	case k == limit.RefusalsPerClient:
		return "This client keeps requesting what it is refused, and is rate-limited so that it cannot fill the record. Wait for the time in Retry-After, and do not repeat a request that was refused with 403" + a.changeable(k)
	case k.Temporary():
		return "One client may not use up what others need. Send fewer requests at a time, or wait until some have ended" + a.changeable(k)
	}
	return "The request is larger or slower than this proxy accepts" + a.changeable(k)
}

// changeable ends a sentence with the setting of a limit, if it has one.
func (a *Answer) changeable(k limit.Kind) string {
	if k.Fixed() {
		return "."
	}
	return "; " + a.forReader("the operator of this proxy can change limits.", "in proxy.toml here [limits] has ") + k.String() + "."
}
