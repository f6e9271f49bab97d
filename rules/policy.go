package rules

import "time"

// State says what is known of an origin's robots.txt. The zero value is
// Unreachable, which refuses.
type State uint8

// The states of RFC 9309 §2.3.1.
const (
	Unreachable State = iota // could not be had: everything is refused (§2.3.1.4)
	Unavailable              // the site answered that there is none: everything is allowed (§2.3.1.3)
	Available                // read and parsed (§2.3.1.1)
)

// Source tells how and when a Policy was obtained. It is data: rules has no
// clock and fetches nothing.
type Source struct {
	Origin     Origin
	State      State
	Status     int       // of the final answer; 0 when there was none
	FetchedAt  time.Time // when the bytes were received or last revalidated
	FreshUntil time.Time // when the copy should be asked for again
	// RetryAt is when an Unreachable origin is asked again; zero otherwise.
	RetryAt time.Time
	// Stale is set when the rules are an older copy, served because the site
	// cannot be asked (RFC 9309 §2.4).
	Stale bool
	// Err says why the policy is Unreachable or Stale; nil otherwise. It wraps
	// the network's error, for the proxy to classify.
	Err error
	// NoConnection is set when the origin itself was never reached (DNS,
	// connect, TLS on the first hop): the site is down, not only its robots.txt.
	NoConnection bool
	// RetriedAs is the User-Agent under which the file was asked for again
	// after a 401 or 403; empty when it was not.
	RetriedAs string
	// Note is a remark for people, such as "HTML without a rule"; often empty.
	Note string
}

// Policy is what one origin's robots.txt says. It is immutable and safe for
// concurrent use.
type Policy struct {
	source Source
	// TODO engine
}

// New returns the policy that source and body make: body is parsed when
// source.State is Available and ignored otherwise. body is not kept.
func New(source Source, body []byte) *Policy { return &Policy{source: source} }

// With returns a policy of the same rules that was obtained as source says: a
// revalidated or a stale copy. It costs no parse.
func (p *Policy) With(source Source) *Policy { q := *p; q.source = source; return &q }

// Source returns how and when the policy was obtained.
func (p *Policy) Source() Source { return p.source }

// Size returns about how many bytes of memory the policy holds.
func (p *Policy) Size() int { return 512 }

// Decide judges target, the path and query exactly as they are sent
// ("/a%2Fb?q=1"), for agent. A nil agent is judged under the star group.
func (p *Policy) Decide(agent *Agent, target string) Decision {
	switch p.source.State {
	case Unavailable:
		return Decision{Verdict: Allow, Reason: ReasonRobotsUnavailable}
	case Available:
		return Decision{Verdict: Allow, Reason: ReasonNoRule}
	default:
		return Decision{Verdict: Refuse, Reason: ReasonRobotsUnreachable}
	}
}
