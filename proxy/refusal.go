package proxy

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heed/rules"
)

// refusal is an answer that heed gives itself.
type refusal struct {
	reason     rules.Reason
	status     int
	errorType  string        // Proxy-Status error type (RFC 9209 §2.3); empty: none fits
	phrase     string        // the reason phrase and the body's first member: printable ASCII, bounded
	retryAfter time.Duration // when asking again can help; 0: it cannot
	detail     string        // what went wrong when that was after the decision; empty: the entry's
	cause      error         // why it cannot be reached; nil: the policy's
	paced      *TurnPlace    // where it stood in the queue; nil: it was in none
	ended      bool          // with paced: the proxy ends, and nobody waits any more
}

// maxPhrase bounds a reason phrase, in octets: some clients limit a status line.
const maxPhrase = 200

// answers is the one table from reason to answer. What time will cure is not
// a 403.
var answers = map[rules.Reason]refusal{
	rules.ReasonRule:              {status: http.StatusForbidden, errorType: "http_request_denied"},
	rules.ReasonOverride:          {status: http.StatusForbidden, errorType: "http_request_denied"},
	rules.ReasonUnnamed:           {status: http.StatusForbidden, errorType: "http_request_denied"},
	rules.ReasonAccess:            {status: http.StatusForbidden, errorType: "http_request_denied"},
	rules.ReasonCredentials:       {status: http.StatusProxyAuthRequired},
	rules.ReasonFailures:          {status: http.StatusTooManyRequests, errorType: "http_request_error", retryAfter: time.Minute},
	rules.ReasonPaced:             {status: http.StatusTooManyRequests, errorType: "http_request_error", retryAfter: time.Minute},
	rules.ReasonRobotsUnreachable: {status: http.StatusServiceUnavailable, errorType: "http_request_denied", retryAfter: time.Minute},
	rules.ReasonOriginUnreachable: {status: http.StatusBadGateway, errorType: "destination_unavailable"},
	rules.ReasonLimit:             {status: http.StatusServiceUnavailable, errorType: "http_request_denied"}, // or as the limit is
	rules.ReasonDestination:       {status: http.StatusBadGateway, errorType: "destination_ip_prohibited"},
	rules.ReasonHostOnly:          {status: http.StatusForbidden, errorType: "http_request_denied"},
	rules.ReasonUntrusted:         {status: http.StatusForbidden, errorType: "http_request_denied"},
	rules.ReasonLeft:              {status: http.StatusServiceUnavailable, errorType: "http_request_error", retryAfter: time.Second}, // for those that closed one direction only
	rules.ReasonHostMismatch:      {status: http.StatusMisdirectedRequest, errorType: "http_request_denied"},
	rules.ReasonMalformed:         {status: http.StatusBadRequest, errorType: "http_request_error"},
	rules.ReasonLoop:              {status: http.StatusBadGateway, errorType: "proxy_loop_detected"},
	rules.ReasonRecord:            {status: http.StatusServiceUnavailable, errorType: "proxy_internal_error", retryAfter: 10 * time.Second},
	rules.ReasonInternal:          {status: http.StatusInternalServerError, errorType: "proxy_internal_error"},
}

// refuse makes d the entry's decision and prepares its answer.
func (x *exchange) refuse(d rules.Decision, detail string) {
	x.entry.Decision, x.entry.Detail = d, detail
	x.reply(d.Reason)
}

// reply prepares the answer for reason without touching the decision: an
// allowed request may still fail on its way.
func (x *exchange) reply(reason rules.Reason) {
	f, ok := answers[reason]
	if !ok {
		f = answers[rules.ReasonInternal]
	}
	f.reason = reason
	if p := x.entry.Policy; p != nil && x.entry.Decision.Verdict == rules.Refuse {
		source := p.Source()
		if reason == rules.ReasonOriginUnreachable {
			f.status, f.errorType = classify(source.Err)
			if byUpstream(source.Err) {
				f.detail = upstreamDetail
			}
		}
		if reason == rules.ReasonRobotsUnreachable && !source.RetryAt.IsZero() {
			f.retryAfter = max(time.Second, time.Until(source.RetryAt))
		}
	}
	f.phrase = printable(x.sentence(&f), maxPhrase)
	x.refusal = &f
}

// sentence says in a few words what happened. It is the one thing most HTTP
// libraries print.
func (x *exchange) sentence(f *refusal) string {
	e := &x.entry
	switch f.reason {
	case rules.ReasonRule:
		return fmt.Sprintf("Refused by heed: robots.txt line %d %s", e.Decision.Line, e.Decision.Rule)
	case rules.ReasonOverride:
		return "Refused by heed: an exception of its operator, " + e.Decision.Rule
	case rules.ReasonUnnamed:
		return "Refused by heed: the request names no User-Agent"
	case rules.ReasonHostOnly:
		return fmt.Sprintf("Refused by heed: robots.txt line %d %s, for all of %s", e.Decision.Line, e.Decision.Rule, e.Host)
	case rules.ReasonRobotsUnreachable:
		return fmt.Sprintf("Refused by heed: robots.txt of %s could not be read, ask again after %d s", e.Host, seconds(f.retryAfter))
	case rules.ReasonOriginUnreachable:
		return fmt.Sprintf("heed cannot reach %s: %s", e.Host, f.errorType)
	case rules.ReasonDestination:
		return x.destinationSentence(f)
	case rules.ReasonUntrusted:
		return "heed's CA is not trusted by this client: see http://" + x.who.Listener + "/"
	case rules.ReasonPaced:
		return x.pacedSentence(f)
	case rules.ReasonLeft:
		if e.Waited > 0 {
			return "Refused by heed: the client closed its connection before its turn at " + e.Host + " came"
		}
		return "Refused by heed: the client closed its connection before the rules of " + e.Host + " were here"
	case rules.ReasonLoop:
		return "Refused by heed: the request would come back to heed itself"
	case rules.ReasonRecord:
		return "Refused by heed: the decision could not be recorded"
	case rules.ReasonInternal:
		return "heed failed on this request"
	default:
		return "Refused by heed: " + firstOf(f.detail, e.Detail)
	}
}

// refuseLimit refuses what over has stopped.
func (x *exchange) refuseLimit(over *overLimit) {
	x.refuse(rules.Decision{Reason: rules.ReasonLimit}, over.Error())
	x.replyLimit(over)
}

// replyLimit prepares the answer that over leads to.
func (x *exchange) replyLimit(over *overLimit) {
	x.reply(rules.ReasonLimit)
	f := x.refusal
	f.status, f.errorType, f.cause = over.limit.status(), limitErrorType(over.limit), over
	if over.limit.passes() {
		f.retryAfter = limitRetry
	}
	f.detail = over.Error()
	f.phrase = printable(x.sentence(f), maxPhrase)
}

// refuseDestination refuses a place for what err says of it.
func (x *exchange) refuseDestination(err error) {
	x.refuse(rules.Decision{Reason: rules.ReasonDestination}, errorText(err))
	x.refusal.cause = err
	x.refusal.phrase = printable(x.sentence(x.refusal), maxPhrase)
}

// destinationSentence says why a place may not be reached.
func (x *exchange) destinationSentence(f *refusal) string {
	err := f.cause
	if p := x.entry.Policy; err == nil && p != nil {
		err = p.Source().Err
	}
	var why *refusedDestination
	if errors.As(err, &why) {
		return why.sentence()
	}
	return "Refused by heed: this proxy may not reach " + x.entry.Host
}

// refusalResponse renders the prepared answer for r, in the format its Accept
// prefers.
func (x *exchange) refusalResponse(r *http.Request) *http.Response {
	f := x.refusal
	if f.status == 0 {
		x.reply(f.reason)
		f = x.refusal
	}
	contentType, body := x.render(r.Header.Values("Accept"))
	h := http.Header{
		"Content-Type":           {contentType},
		"Content-Length":         {strconv.Itoa(len(body))},
		"Cache-Control":          {"no-store"},
		"Proxy-Status":           {x.proxyStatus()},
		"X-Content-Type-Options": {"nosniff"},
	}
	if f.status == http.StatusProxyAuthRequired {
		h.Set("Proxy-Authenticate", `Basic realm="heed", charset="UTF-8"`)
	}
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(seconds(f.retryAfter)))
	}
	if x.uploading(r) || f.reason == rules.ReasonMalformed && r.ProtoMajor == 1 {
		// Without it net/http reads the body before it answers, and a client
		// that is slow to send would not learn that it need not. What follows a
		// malformed request is not to be trusted either.
		h.Set("Connection", "close")
	}
	resp := &http.Response{
		StatusCode: f.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Request: r, Body: http.NoBody, ContentLength: int64(len(body)),
	}
	if r.Method != http.MethodHead {
		resp.Body = newBody(body)
	}
	return resp
}

// proxyStatus returns the Proxy-Status field (RFC 9209): a list of one member,
// a string with parameters.
func (x *exchange) proxyStatus() string {
	status := x.proxy.statusName
	if kind := x.refusal.errorType; kind != "" {
		status += "; error=" + kind
	}
	return status + "; details=" + statusString(x.refusal.phrase) + x.mark()
}

// wouldRefuse returns the Proxy-Status field of the site's own answer to a
// request that is observed only.
func (x *exchange) wouldRefuse() string {
	f := refusal{reason: x.entry.Decision.Reason}
	return x.proxy.statusName + "; details=" + statusString("observed only, would be: "+x.sentence(&f))
}

// statusString returns s as a String of a structured field (RFC 9651 §3.3.3).
func statusString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable(s, maxPhrase)) + `"`
}

// unreadBody reports whether the client may still be sending a body.
func unreadBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// seconds rounds d up, so that a client that waits exactly that long is not early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// printable returns s as printable ASCII of at most limit octets. It is what
// may stand in a status line, a field value or a terminal.
func printable(s string, limit int) string {
	var b strings.Builder
	for _, c := range s {
		if b.Len() >= limit-3 {
			b.WriteString("...")
			break
		}
		if c < ' ' || c > '~' {
			c = '?'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// quote returns s printable, bounded and between quotation marks.
func quote(s string) string { return `"` + printable(s, 80) + `"` }
