package rules

// Verdict is what happens to a request. The zero value is Refuse, so that an
// empty Decision lets nothing through.
type Verdict uint8

// The verdicts.
const (
	Refuse      Verdict = iota // the request does not leave
	Allow                      // the request is forwarded
	WouldRefuse                // observe mode: forwarded, recorded as refused
)

// String returns the verdict's stable name: refuse, allow or would-refuse.
func (v Verdict) String() string {
	if v > WouldRefuse {
		v = Refuse
	}
	return [...]string{"refuse", "allow", "would-refuse"}[v]
}

// Reason is the cause of a Decision. The list is closed and its identifiers are
// stable: logs, answers and stored records contain them.
type Reason string

// Reasons that the rules of a site give.
const (
	ReasonRule              Reason = "rule"               // a rule matched the target
	ReasonNoRule            Reason = "no-rule"            // no group or no rule applies to this target
	ReasonRobotsTxt         Reason = "robots-txt"         // the target is /robots.txt itself (RFC 9309 §2.2.2)
	ReasonRobotsUnavailable Reason = "robots-unavailable" // the site has no robots.txt to read (RFC 9309 §2.3.1.3)
	ReasonRobotsUnreachable Reason = "robots-unreachable" // robots.txt could not be fetched (RFC 9309 §2.3.1.4)
	ReasonTooComplex        Reason = "too-complex"        // judging this agent and target by the file would take too long
)

// Reasons that the site's statements on the use of its pages give, for a client that
// states its purpose.
const (
	ReasonSignal  Reason = "signal"  // a statement of the site refuses the purpose
	ReasonLicence Reason = "licence" // a licence asks for money, a token or another thing first
)

// Reasons that an operator gives.
const (
	ReasonOverride     Reason = "override"          // an exception in the operator's settings, in place of the site's rules
	ReasonSubresource  Reason = "part"              // a part of a page that may be read, for a client whose browser may load them
	ReasonNotACrawl    Reason = "not-a-crawl"       // the host is declared a service that programs call, not a site they crawl
	ReasonOwnService   Reason = "own-service"       // a service on a loopback address that the client's own heed run has started
	ReasonExempt       Reason = "exempt"            // the client is declared to be people, not a robot
	ReasonRulesPending Reason = "late"              // observe mode only: the site's rules were not fetched in time; the verdict is recorded later
	ReasonNoAgent      Reason = "no-agent"          // the client sent no User-Agent, and its entry requires one
	ReasonAccess       Reason = "access"            // the client may not use this proxy, or no client may use it for this
	ReasonCredentials  Reason = "credentials"       // the client showed no credentials for this proxy, or wrong ones
	ReasonFailures     Reason = "too-many-failures" // wrong credentials came from this address too often
)

// Reasons that come from the way a request took, not from a site's rules.
const (
	ReasonOriginUnreachable Reason = "origin-unreachable" // the site itself cannot be reached: DNS, connect, TLS
	ReasonDestination       Reason = "destination"        // heed may not reach the address: private, or on a list
	ReasonLimit             Reason = "limit"              // a limit on what clients may use was reached
	ReasonPaced             Reason = "paced"              // the wait for the site's crawl delay would be too long
	ReasonClientLeft        Reason = "client-left"        // the client left while the site's rules or statements were being fetched, or before its turn
	ReasonHostMismatch      Reason = "host-mismatch"      // Host, authority or SNI name different places
	ReasonMalformed         Reason = "malformed"          // no valid HTTP request, or a target that cannot be judged
	ReasonLoop              Reason = "loop"               // the request came through this proxy already
	ReasonHostOnly          Reason = "host-only"          // judged by the host alone: the paths in the tunnel are not seen
	ReasonTunnel            Reason = "tunnel"             // not judged: the operator lets this host's tunnels pass
	ReasonNotHTTP           Reason = "not-http"           // bytes in a tunnel that are neither TLS nor HTTP
	ReasonUntrusted         Reason = "ca-untrusted"       // the client did not accept the CA; nothing was requested
	ReasonHandshake         Reason = "handshake"          // a tunnel in which no handshake was completed
	ReasonRecord            Reason = "record"             // the record of the decision could not be written
	ReasonInternal          Reason = "internal"           // a fault in heed; fails closed
)

// Decision is the answer to "may this agent fetch this target?", with its
// grounds. The zero value refuses without a reason.
type Decision struct {
	Verdict Verdict
	Reason  Reason

	// Group is the value of the user-agent line that governs, as the site
	// wrote it ("*" for the star group); empty when no group did.
	Group string
	// Rule is the deciding line as the site wrote it, field and value
	// ("Disallow: /private"); empty when no rule decided. It is text from the
	// site: hostile until escaped.
	Rule string
	// Line is the number of that line in robots.txt, from 1; 0 when no rule decided.
	Line int
	// Token is the product token of the agent that led to Group, in lower
	// case; empty for the star group and when there is no group.
	Token string
	// Piece is the part of the User-Agent string that Token was taken from, as
	// the client wrote it.
	Piece string
	// Variant names the reading of the target that decided: "" for the target
	// as sent, else "v1" to "v5" (readings.go) for an ambiguous spelling, and "v0" for the
	// decoded form under the profile google.
	Variant string
}
