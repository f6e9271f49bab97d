// Package reason is the one table of what a rules.Reason means: how heed
// answers a request that is refused for it, the class in which the decision is
// counted, and the words that explain it to people.
package reason

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"heed/rules"
)

// Info is what a reason means.
type Info struct {
	Reason rules.Reason

	Status     int           // of the answer to a refused request; never 0
	Error      string        // Proxy-Status error type (RFC 9209 §2.3); empty: none fits
	RetryAfter time.Duration // default of Retry-After; 0: waiting does not help

	Words    string // a phrase that replaces the code: no capital letter, no full stop
	Sentence string // explains the reason independently of the verdict and the request

	refused Class // of a decision that refuses; NotJudged: no decision is judged, whatever its verdict
}

// row returns the Info of a reason but for its Reason.
func row(refused Class, status int, errorType string, retryAfter time.Duration, words, sentence string) Info {
	return Info{Status: status, Error: errorType, RetryAfter: retryAfter, Words: words, Sentence: sentence, refused: refused}
}

// Of returns the row of r. A reason without a row, such as the empty one or
// one that a newer heed recorded, fails closed: it has the answer and the class
// of rules.ReasonInternal, and its code as Words.
func Of(r rules.Reason) Info {
	info, ok := table[r]
	if !ok {
		info = table[rules.ReasonInternal]
		info.Words, info.Sentence = string(r), "This heed does not know the reason."
	}
	info.Reason = r
	return info
}

// ClassOf returns the class of a decision. A request that is only observed
// (rules.WouldRefuse) counts as allowed: the class it would have is that of
// rules.Refuse. Failed reports that heed answered the allowed request itself with
// one of FailedStatuses.
func ClassOf(v rules.Verdict, r rules.Reason, failed bool) Class {
	info := Of(r)
	switch {
	case info.refused == NotJudged, v == rules.Allow && r == rules.ReasonHostOnly:
		return NotJudged
	case v == rules.Refuse:
		return info.refused
	case failed:
		return Failed
	}
	return Allowed
}

// WouldBe returns the class that a request which was only observed would have if it
// had been refused. It reports false for other requests, and for those that are not
// judged.
func WouldBe(v rules.Verdict, r rules.Reason) (c Class, observed bool) {
	c = ClassOf(rules.Refuse, r, false)
	return c, v == rules.WouldRefuse && c != NotJudged
}

// All returns every row, ordered by reason.
func All() []Info {
	all := make([]Info, 0, len(table))
	for r := range table {
		all = append(all, Of(r))
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.Reason, b.Reason) })
	return all
}

// Error types of Proxy-Status (RFC 9209 §2.3) that several reasons share.
const (
	denied       = "http_request_denied"
	requestError = "http_request_error"
	proxyError   = "proxy_internal_error"
)

// table has a row for each reason. A refusal that time resolves is not a 403.
var table = map[rules.Reason]Info{
	rules.ReasonRule: row(RefusedByRule, http.StatusForbidden, denied, 0,
		"a rule of robots.txt",
		"A rule of the site's robots.txt applies to this URL."),
	rules.ReasonNoRule: row(RefusedByRule, http.StatusForbidden, denied, 0,
		"no rule applies",
		"The site has a robots.txt, and none of its rules applies to this URL."),
	rules.ReasonRobotsTxt: row(RefusedByRule, http.StatusForbidden, denied, 0,
		"robots.txt itself may always be fetched",
		"The URL is the site's robots.txt, which every client may fetch (RFC 9309 section 2.2.2)."),
	rules.ReasonRobotsUnavailable: row(RulesUnavailable, http.StatusServiceUnavailable, denied, time.Minute,
		"the site has no robots.txt",
		"The site answered that it has no robots.txt, so it has no rules (RFC 9309 section 2.3.1.3)."),
	rules.ReasonRobotsUnreachable: row(RulesUnavailable, http.StatusServiceUnavailable, denied, time.Minute,
		"its robots.txt could not be read",
		"The site's robots.txt could not be read, and no page may be fetched while its rules are unknown (RFC 9309 section 2.3.1.4)."),
	rules.ReasonTooComplex: row(RulesUnavailable, http.StatusForbidden, denied, 0,
		"its robots.txt is too complex to judge this by",
		"The site's robots.txt has so many rules, or what it states about the use of its pages so many parts, that judging this URL and client by them would take too long."),
	rules.ReasonSignal: row(RefusedByStatement, http.StatusForbidden, denied, 0,
		"the site refuses this use",
		"The site states that its pages may not be used for the purpose that the settings give this client."),
	rules.ReasonLicence: row(RefusedByStatement, http.StatusForbidden, denied, 0,
		"the site's licence asks for something first",
		"The licence of the site asks for money, a token or another thing before its pages may be used for the purpose that the settings give this client."),
	rules.ReasonOverride: row(RefusedByOperator, http.StatusForbidden, denied, 0,
		"an exception of the operator",
		"An exception in the settings decided in place of the site's rules."),
	rules.ReasonSubresource: row(RefusedByRule, http.StatusForbidden, denied, 0,
		"a subresource of an allowed page",
		"The URL is a subresource of a page that may be read, and the settings let this client's browser load those."),
	rules.ReasonNotACrawl: row(NotJudged, http.StatusForbidden, denied, 0,
		"a service that programs call, not a site they crawl",
		"The settings declare the host a service that programs call, not a site they crawl."),
	rules.ReasonOwnService: row(NotJudged, http.StatusForbidden, denied, 0,
		"a local service of the command itself",
		"A process of the same heed run listens at this address of the machine: it is part of the command, not a site."),
	rules.ReasonExempt: row(NotJudged, http.StatusForbidden, denied, 0,
		"an exempt client: people, not a robot",
		"The settings declare that people, not a robot, use this client."),
	rules.ReasonRulesPending: row(NotJudged, http.StatusServiceUnavailable, denied, time.Minute,
		"only observed, and its robots.txt did not arrive in time",
		"The request was only observed and let through before the site's robots.txt had arrived; the verdict is recorded afterwards."),
	rules.ReasonNoAgent: row(RefusedByOperator, http.StatusForbidden, denied, 0,
		"it sends no User-Agent, and the settings require one",
		"The request has no User-Agent field, and the settings require one of this client."),
	rules.ReasonAccess: row(RefusedByOperator, http.StatusForbidden, denied, 0,
		"the settings refuse it",
		"The settings do not allow this client to use the proxy, or not for this request."),
	rules.ReasonCredentials: row(NotJudged, http.StatusProxyAuthRequired, "", 0,
		"missing or wrong credentials for this proxy",
		"The client sent no credentials for this proxy, or wrong ones."),
	rules.ReasonFailures: row(NotJudged, http.StatusTooManyRequests, requestError, time.Minute,
		"too many wrong credentials from its address",
		"Wrong credentials came from the client's address too often."),
	rules.ReasonOriginUnreachable: row(Failed, http.StatusBadGateway, "destination_unavailable", 0,
		"the site was not reached or gave no valid answer",
		"The site could not be reached, did not answer, or gave an answer that is not passed on; no rule of robots.txt is the cause."),
	rules.ReasonDestination: row(RefusedByOperator, http.StatusBadGateway, "destination_ip_prohibited", 0,
		"heed may not reach that address; see [access] in proxy.toml",
		"The settings do not allow heed to reach the address of the site: it is private, or listed in access.refuse_to."),
	rules.ReasonLimit: row(Postponed, http.StatusServiceUnavailable, denied, 0, // or as the limit is
		"a limit was reached; see [limits] in proxy.toml",
		"A limit on what clients may use was reached."),
	rules.ReasonPaced: row(Postponed, http.StatusTooManyRequests, requestError, time.Minute,
		"its turn at the site was too far off",
		"Requests to the site are paced, and this one would have waited longer than the settings allow."),
	rules.ReasonClientLeft: row(NotJudged, http.StatusServiceUnavailable, requestError, time.Second, // read by clients that closed one direction only
		"the client left before the site's rules had arrived or its turn had come",
		"The client closed its connection before the site's rules had arrived or its turn had come."),
	rules.ReasonHostMismatch: row(NotJudged, http.StatusMisdirectedRequest, denied, 0,
		"the request names two different hosts",
		"The request names different hosts in its target, its Host field or its TLS handshake."),
	rules.ReasonMalformed: row(NotJudged, http.StatusBadRequest, requestError, 0,
		"the request or its URL is malformed",
		"The request is not valid HTTP, or its target cannot be judged."),
	rules.ReasonLoop: row(NotJudged, http.StatusBadGateway, "proxy_loop_detected", 0,
		"the request would come back to this heed, or has come through it already",
		"The request is for an address of this proxy itself, or has come through it before."),
	rules.ReasonHostOnly: row(RefusedByRule, http.StatusForbidden, denied, 0,
		"a tunnel, judged by its host alone",
		"The tunnel was judged by its host alone: the paths requested in it are not visible."),
	rules.ReasonTunnel: row(NotJudged, http.StatusForbidden, denied, 0,
		"the settings let its tunnels pass unjudged",
		"The settings let tunnels to this host pass without being judged."),
	rules.ReasonNotHTTP: row(NotJudged, http.StatusBadRequest, requestError, 0,
		"octets in a tunnel that are neither TLS nor HTTP",
		"The octets in the tunnel are neither TLS nor HTTP."),
	rules.ReasonUntrusted: row(NotJudged, http.StatusForbidden, denied, 0,
		"the client does not trust heed's CA; see heed doctor",
		"The client did not accept the certificate of heed's CA, so it sent no request."),
	rules.ReasonHandshake: row(NotJudged, http.StatusBadRequest, requestError, 0,
		"the TLS handshake in the tunnel did not complete",
		"No request came through the tunnel: its TLS handshake did not complete, or nothing followed it."),
	rules.ReasonRecord: row(Failed, http.StatusServiceUnavailable, proxyError, 10*time.Second,
		"the decision could not be recorded",
		"Each decision is recorded before it takes effect, and the record could not be written."),
	rules.ReasonInternal: row(Failed, http.StatusInternalServerError, proxyError, 0,
		"a fault in heed",
		"heed failed on this request; it sent nothing to the site."),
}
