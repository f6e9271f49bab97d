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

	refused   Class // of a decision that refuses
	notJudged bool  // the decision is not judged, whatever its verdict
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
	case info.notJudged, v == rules.Allow && r == rules.ReasonHostOnly:
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
	rules.ReasonRule: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByRule,
		Words:    "a rule of robots.txt",
		Sentence: "A rule of the site's robots.txt applies to this URL.",
	},
	rules.ReasonNoRule: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByRule,
		Words:    "no rule applies",
		Sentence: "The site has a robots.txt, and none of its rules applies to this URL.",
	},
	rules.ReasonRobotsTxt: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByRule,
		Words:    "robots.txt itself may always be fetched",
		Sentence: "The URL is the site's robots.txt, which every client may fetch (RFC 9309 section 2.2.2).",
	},
	rules.ReasonRobotsUnavailable: {
		Status: http.StatusServiceUnavailable, Error: denied, RetryAfter: time.Minute, refused: RulesUnavailable,
		Words:    "the site has no robots.txt",
		Sentence: "The site answered that it has no robots.txt, so it has no rules (RFC 9309 section 2.3.1.3).",
	},
	rules.ReasonRobotsUnreachable: {
		Status: http.StatusServiceUnavailable, Error: denied, RetryAfter: time.Minute, refused: RulesUnavailable,
		Words:    "its robots.txt could not be read",
		Sentence: "The site's robots.txt could not be read, and no page may be fetched while its rules are unknown (RFC 9309 section 2.3.1.4).",
	},
	rules.ReasonTooComplex: {
		Status: http.StatusForbidden, Error: denied, refused: RulesUnavailable,
		Words:    "its robots.txt is too complex to judge this by",
		Sentence: "The site's robots.txt has so many rules, or what it states about the use of its pages so many parts, that judging this URL and client by them would take too long.",
	},

	rules.ReasonSignal: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByStatement,
		Words:    "the site refuses this use",
		Sentence: "The site states that its pages may not be used for the purpose that the settings give this client.",
	},
	rules.ReasonLicence: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByStatement,
		Words:    "the site's licence asks for something first",
		Sentence: "The licence of the site asks for money, a token or another thing before its pages may be used for the purpose that the settings give this client.",
	},

	rules.ReasonOverride: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByOperator,
		Words:    "an exception of the operator",
		Sentence: "An exception in the settings decided in place of the site's rules.",
	},
	rules.ReasonSubresource: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByRule,
		Words:    "a subresource of an allowed page",
		Sentence: "The URL is a subresource of a page that may be read, and the settings let this client's browser load those.",
	},
	rules.ReasonNotACrawl: {
		Status: http.StatusForbidden, Error: denied, notJudged: true,
		Words:    "a service that programs call, not a site they crawl",
		Sentence: "The settings declare the host a service that programs call, not a site they crawl.",
	},
	rules.ReasonOwnService: {
		Status: http.StatusForbidden, Error: denied, notJudged: true,
		Words:    "a local service of the command itself",
		Sentence: "A process of the same heed run listens at this address of the machine: it is part of the command, not a site.",
	},
	rules.ReasonExempt: {
		Status: http.StatusForbidden, Error: denied, notJudged: true,
		Words:    "an exempt client: people, not a robot",
		Sentence: "The settings declare that people, not a robot, use this client.",
	},
	rules.ReasonRulesPending: {
		Status: http.StatusServiceUnavailable, Error: denied, RetryAfter: time.Minute, notJudged: true,
		Words:    "only observed, and its robots.txt did not arrive in time",
		Sentence: "The request was only observed and let through before the site's robots.txt had arrived; the verdict is recorded afterwards.",
	},
	rules.ReasonNoAgent: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByOperator,
		Words:    "it sends no User-Agent, and the settings require one",
		Sentence: "The request has no User-Agent field, and the settings require one of this client.",
	},
	rules.ReasonAccess: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByOperator,
		Words:    "the settings refuse it",
		Sentence: "The settings do not allow this client to use the proxy, or not for this request.",
	},
	rules.ReasonCredentials: {
		Status: http.StatusProxyAuthRequired, notJudged: true,
		Words:    "missing or wrong credentials for this proxy",
		Sentence: "The client sent no credentials for this proxy, or wrong ones.",
	},
	rules.ReasonFailures: {
		Status: http.StatusTooManyRequests, Error: requestError, RetryAfter: time.Minute, notJudged: true,
		Words:    "too many wrong credentials from its address",
		Sentence: "Wrong credentials came from the client's address too often.",
	},

	rules.ReasonOriginUnreachable: {
		Status: http.StatusBadGateway, Error: "destination_unavailable", refused: Failed,
		Words:    "the site was not reached or gave no valid answer",
		Sentence: "The site could not be reached, did not answer, or gave an answer that is not passed on; no rule of robots.txt is the cause.",
	},
	rules.ReasonDestination: {
		Status: http.StatusBadGateway, Error: "destination_ip_prohibited", refused: RefusedByOperator,
		Words:    "heed may not reach that address; see [access] in proxy.toml",
		Sentence: "The settings do not allow heed to reach the address of the site: it is private, or listed in access.refuse_to.",
	},
	rules.ReasonLimit: {
		Status: http.StatusServiceUnavailable, Error: denied, refused: Postponed, // or as the limit is
		Words:    "a limit was reached; see [limits] in proxy.toml",
		Sentence: "A limit on what clients may use was reached.",
	},
	rules.ReasonPaced: {
		Status: http.StatusTooManyRequests, Error: requestError, RetryAfter: time.Minute, refused: Postponed,
		Words:    "its turn at the site was too far off",
		Sentence: "Requests to the site are paced, and this one would have waited longer than the settings allow.",
	},
	rules.ReasonClientLeft: {
		Status: http.StatusServiceUnavailable, Error: requestError, RetryAfter: time.Second, notJudged: true, // read by clients that closed one direction only
		Words:    "the client left before the site's rules had arrived or its turn had come",
		Sentence: "The client closed its connection before the site's rules had arrived or its turn had come.",
	},
	rules.ReasonHostMismatch: {
		Status: http.StatusMisdirectedRequest, Error: denied, notJudged: true,
		Words:    "the request names two different hosts",
		Sentence: "The request names different hosts in its target, its Host field or its TLS handshake.",
	},
	rules.ReasonMalformed: {
		Status: http.StatusBadRequest, Error: requestError, notJudged: true,
		Words:    "the request or its URL is malformed",
		Sentence: "The request is not valid HTTP, or its target cannot be judged.",
	},
	rules.ReasonLoop: {
		Status: http.StatusBadGateway, Error: "proxy_loop_detected", notJudged: true,
		Words:    "the request would come back to this heed, or has come through it already",
		Sentence: "The request is for an address of this proxy itself, or has come through it before.",
	},
	rules.ReasonHostOnly: {
		Status: http.StatusForbidden, Error: denied, refused: RefusedByRule,
		Words:    "a tunnel, judged by its host alone",
		Sentence: "The tunnel was judged by its host alone: the paths requested in it are not visible.",
	},
	rules.ReasonTunnel: {
		Status: http.StatusForbidden, Error: denied, notJudged: true,
		Words:    "the settings let its tunnels pass unjudged",
		Sentence: "The settings let tunnels to this host pass without being judged.",
	},
	rules.ReasonNotHTTP: {
		Status: http.StatusBadRequest, Error: requestError, notJudged: true,
		Words:    "bytes in a tunnel that are neither TLS nor HTTP",
		Sentence: "The bytes in the tunnel are neither TLS nor HTTP.",
	},
	rules.ReasonUntrusted: {
		Status: http.StatusForbidden, Error: denied, notJudged: true,
		Words:    "the client does not trust heed's CA; see heed doctor",
		Sentence: "The client did not accept the certificate of heed's CA, so it sent no request.",
	},
	rules.ReasonHandshake: {
		Status: http.StatusBadRequest, Error: requestError, notJudged: true,
		Words:    "the TLS handshake in the tunnel did not complete",
		Sentence: "No request came through the tunnel: its TLS handshake did not complete, or nothing followed it.",
	},
	rules.ReasonRecord: {
		Status: http.StatusServiceUnavailable, Error: proxyError, RetryAfter: 10 * time.Second, refused: Failed,
		Words:    "the decision could not be recorded",
		Sentence: "Each decision is recorded before it takes effect, and the record could not be written.",
	},
	rules.ReasonInternal: {
		Status: http.StatusInternalServerError, Error: proxyError, refused: Failed,
		Words:    "a fault in heed",
		Sentence: "heed failed on this request; it sent nothing to the site.",
	},
}
