package audit

import (
	"encoding/binary"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"heed/internal/base/safetext"
	"heed/internal/judge/reason"
	"heed/rules"
)

// Judged is how much of a request the verdict rests on.
type Judged uint8

// How a request was judged. The zero value is NotJudged, so that a request
// that could not be seen is never taken for a judged one.
const (
	NotJudged Judged = iota // nothing was judged; the reason explains why
	ByPath                  // the exact octets of the target were judged
	ByHost                  // only the host was seen: a tunnel that is not intercepted
)

// String returns the stable name: no, path or host.
func (j Judged) String() string { return [...]string{"no", "path", "host"}[j] }

// Entry is the record of one Decision and of how the exchange ended. The
// proxy fills the first part before anything leaves and hands the Entry to
// its Recorder; the outcome is filled when the exchange ends. Nothing is changed after
// Ended, except in an Entry with ReasonRecord, which ends before its exchange.
type Entry struct {
	ID     uuid.UUID // version 7: ordered by time
	Time   time.Time // when the request was decided on
	Client string    // the client's address, host:port

	User       string // that authenticated to the proxy; empty: none did
	Tried      string // the name in credentials that were refused; empty: none was
	ClientName string // of the [[client]] that matches; empty: none does
	Mode       string // effect of the verdict: enforce, observe or exempt
	Config     string // identifies the settings in force; empty: none
	Settings   string // those settings, as JSON without secrets; empty when Config is

	AlsoObey  []string     // product tokens whose groups were obeyed besides those of Agent; nil: none
	Agent     *rules.Agent // that was judged; nil when the request was refused before it was identified, or was not read
	UserAgent string       // as received; empty when none
	Sent      string       // the User-Agent sent on when it differs from the received one
	SentFrom  string       // the From field sent in place of the client's; empty: the client's

	// SignedKey is the JWK thumbprint (RFC 7638) of the key by which the request to the site
	// is signed, and SignedBy the URL sent as Signature-Agent; empty: it is not signed.
	SignedKey string
	SignedBy  string

	Method string
	Scheme string
	Host   string // host[:port] in canonical form
	Target string // path and query, as judged and as sent to the site: any octets
	Raw    string // the request target as received, when it differs from Target

	// Purposes are what the client says that it crawls for; nil: nothing. Signals is what
	// the site says of the use of its pages, as JSON; empty: nothing was read.
	Purposes []string
	Signals  string
	Said     string // Signals in short, for the log: train-ai=disallow;src=robots

	Part string // Sec-Fetch-Dest of a subresource of a page; empty: it is not a subresource
	Page string // the address of that page; empty when the browser does not send it

	// Revises is the id of the earlier decision about the same tunnel that this one
	// replaces, since the traffic was not what the tunnel was opened for. Nil: none.
	Revises *uuid.UUID

	Judged    Judged
	Unseen    int32 // rules that might have refused what a tunnel judged by its host hides
	Decision  rules.Decision
	Settled   string        // the operator's reason for the exception that decided; empty: none did
	Policy    *rules.Policy // nil when none was needed
	PolicyAge time.Duration // since the policy was fetched or revalidated

	DelayAsked time.Duration // crawl delay of the site or the operator; 0: none
	TurnWaited time.Duration // for a turn, before the decision took effect
	Owed       time.Duration // the wait that remained when the turn was too far off or the client left
	PaceNote   string        // rate hints of the site that were clamped or only noted; empty: none

	// Detail adds to the reason, such as the error of a connection; empty when the
	// reason is enough. It never contains credentials.
	Detail string

	Outcome Outcome
}

// NewID returns the id of a decision made now: a UUIDv7 (RFC 9562), ordered by
// time. Without randomness there is no identity and no TLS either: crypto/rand
// ends the process rather than return an error.
func NewID() uuid.UUID { return uuid.Must(newID()) }

// newID reads randomness ahead for several ids, since they are no secret.
var newID = func() func() (uuid.UUID, error) {
	uuid.EnableRandPool()
	return uuid.NewV7
}()

// TimeOf returns the time in an id of version 7; ok is false for any other.
func TimeOf(id []byte) (at time.Time, ok bool) {
	if len(id) != 16 || id[6]>>4 != 7 {
		return at, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id) >> 16)), true
}

// Outcome is how an exchange ended.
type Outcome struct {
	Status    int           // sent to the client; 0 when nothing was
	FromSite  bool          // the response came from the site, not from heed
	Elsewhere bool          // another proxy sent the request: its answer was not seen
	Truncated bool          // the response is incomplete
	EndedBy   EndedBy       // with an error, which Err names; see End
	BytesIn   int64         // of the request body, read from the client
	BytesOut  int64         // of the response body, written to the client
	Waited    time.Duration // for the policy and for all turns; see also Entry.TurnWaited
	Duration  time.Duration // from the request's header to the end of the response
	// Late is the verdict that followed the request: of one that was observed, or by what
	// the page says of its use. Nil: none did.
	Late *rules.Decision
	// LatePolicy and LateSettled are the Policy and Settled of Late.
	LatePolicy  *rules.Policy
	LateSettled string

	// Revision is the decision that replaced this one, since the traffic was not what the
	// tunnel was opened for; its Revises is this one. Nil: none did.
	Revision *Entry

	SiteStatus int    // the site's, when heed sent another in its place; else 0
	SiteAnswer string // the kind of the site's refusal; empty: it did not refuse
	Signals    string // what the page says of its use, as JSON; empty: nothing was read
	Said       string // Signals in short, for the log

	Note string // the pause that the response asks of later requests; empty: none
	Err  string // the error that ended the exchange; empty: none
}

// EndedBy is which side ended an exchange with an error; zero: none did, or heed did not say.
type EndedBy uint8

// The sides of an exchange.
const (
	ByHeed EndedBy = iota + 1
	BySite
	ByUpstream // a proxy between heed and the site
	ByClient
)

// String returns the side as Err has it.
func (b EndedBy) String() string {
	return [...]string{"", "heed", "site", "upstream proxy", "client"}[b]
}

// End sets the side that ended the exchange, and why.
func (o *Outcome) End(by EndedBy, why string) { o.EndedBy, o.Err = by, by.String()+": "+why }

// DetailWith returns the Detail and the name in refused credentials, as hide returns it.
func (e *Entry) DetailWith(hide func(user string) string) string {
	if e.Tried == "" {
		return e.Detail
	}
	return e.Detail + "; the name tried was " + safetext.Quote(hide(e.Tried))
}

// redirected is between the detail of a connection that the kernel redirected to heed and where its
// client connected to.
const redirected = "redirected connection to "

// Redirected adds to the detail of a record where the client of a redirected connection connected
// to.
func Redirected(detail string, to netip.AddrPort) string {
	if detail != "" {
		detail += "; "
	}
	return detail + redirected + to.String()
}

// RedirectedTo returns where the client connected to, of what Redirected returned; zero: detail is
// of no redirected connection.
func RedirectedTo(detail string) netip.AddrPort {
	to, _ := netip.ParseAddrPort(detail[strings.LastIndexByte(detail, ' ')+1:])
	if !strings.HasSuffix(detail, redirected+to.String()) {
		return netip.AddrPort{}
	}
	return to
}

// Exempt reports whether e is a request of an exempt client.
func (e *Entry) Exempt() bool { return e.Decision.Reason == rules.ReasonExempt }

// SiteRefused reports whether the site refused a request that heed had allowed.
func (e *Entry) SiteRefused() bool { return e.Outcome.FromSite && SiteRefused(e.Outcome.Status) }

// SiteRefused reports whether status is a refusal by the site: 401, 403, 429, 451
// or 503. Other errors are failures, not refusals.
func SiteRefused(status int) bool {
	return slices.Contains([]int{401, 403, 429, 451, 503}, status)
}

// Withheld reports whether heed refused the request after the site had answered it.
func (e *Entry) Withheld() bool {
	return e.Outcome.Late != nil && e.Outcome.Late.Verdict == rules.Refuse
}

// Failed reports whether heed answered a request that it had allowed with one of
// reason.FailedStatuses.
func (e *Entry) Failed() bool {
	return e.Decision.Verdict != rules.Refuse && !e.Outcome.FromSite && reason.FailedStatus(e.Outcome.Status)
}

// Became returns the result of an exchange that has ended: refused-by-heed,
// refused-by-site, answered (by the site, or by heed where Max-Forwards was 0),
// tunnelled, not-seen or failed.
func (e *Entry) Became() string {
	switch {
	case e.Decision.Verdict == rules.Refuse, e.Withheld():
		return "refused-by-heed"
	case e.Outcome.Elsewhere:
		return "not-seen"
	case e.SiteRefused():
		return "refused-by-site"
	case e.Outcome.FromSite:
		return "answered"
	case IsTunnel(e.Method, e.Target) && e.Outcome.Status == http.StatusOK:
		return "tunnelled"
	case e.Outcome.Status == http.StatusOK: // TRACE or OPTIONS that was not to go further (RFC 9110 §7.6.2)
		return "answered"
	default:
		return "failed"
	}
}

// MethodTLS and MethodTCP are recorded as the methods of connections that the kernel has
// redirected to heed and that heed does not read: TLS to a site, and other octets to an
// address and a port (scheme tcp). No client has sent a CONNECT for them.
const (
	MethodTLS = "TLS"
	MethodTCP = "TCP"
)

// IsTunnel reports whether method and target are those of a tunnel: of a CONNECT, or of a
// redirected connection. A request of a client that uses such a word as its method has a target.
func IsTunnel(method, target string) bool {
	return target == "" && (method == http.MethodConnect || method == MethodTLS || method == MethodTCP)
}

// URL returns the URL requested, with the target as safetext.Octets writes it: scheme
// and host alone for tunnels, and empty when the host is not known.
func (e *Entry) URL() string {
	if e.Host == "" {
		return ""
	}
	return e.Scheme + "://" + e.Host + safetext.Octets(e.Target)
}

// Event is what is recorded of something that is no decision.
type Event struct {
	Time   time.Time
	Kind   EventKind
	Site   rules.Origin // of RulesAsked; else zero
	Name   string       // of RulesAsked: the client's User-Agent; of Bypassed: the program
	Count  int64        // of RulesAsked: requests; of Healed: requests refused meanwhile; of Bypassed: connections, an estimate
	Status int          // of RulesAsked: of the last answer; 0: there was none
	Detail string       // empty: there is none
}

// EventKind is the kind of an Event, as the record has it.
type EventKind string

// The kinds of events.
const (
	// RulesAsked is a fetch of a robots.txt under a client's name.
	RulesAsked EventKind = "robots"
	// Healed is the reopening of a record whose files another program had removed or replaced.
	Healed EventKind = "healed"
	// Bypassed is what programs of a run sent without heed.
	Bypassed EventKind = "bypassed"
)

// Recorder keeps decisions, and may refuse them.
type Recorder interface {
	// Decided is called before any octet of the request leaves and before any
	// octet of a refusal returns. An error refuses the request.
	Decided(*Entry) error
	// Ended is called once for each Entry that Decided accepted, when the
	// exchange is over, however it ended. The Entry does not change afterwards; it holds
	// the whole exchange in memory as long as it is kept.
	Ended(*Entry)
}

// Observer sees each decision once, when its exchange has ended, and never refuses it.
type Observer interface{ Ended(*Entry) }

// Recording has each decision recorded before it takes effect, and observed when its exchange
// has ended.
type Recording struct {
	Recorders []Recorder
	Observers []Observer
}

// Decided implements Recorder. When a recorder fails, the decision becomes a refusal and ends
// with it: those before it record its end, those after it record it as refused.
func (all Recording) Decided(e *Entry) error {
	for i, r := range all.Recorders {
		if err := r.Decided(e); err != nil {
			e.Decision, e.Detail = rules.Decision{Reason: rules.ReasonRecord}, err.Error()
			if e.Method == http.MethodConnect || !IsTunnel(e.Method, e.Target) { // else no client reads an answer
				e.Outcome.Status = http.StatusServiceUnavailable
			}
			for _, later := range all.Recorders[i+1:] {
				if later.Decided(e) == nil {
					later.Ended(e)
				}
			}
			Recording{all.Recorders[:i], all.Observers}.Ended(e)
			return err
		}
	}
	return nil
}

// Ended implements Recorder.
func (all Recording) Ended(e *Entry) {
	for _, r := range all.Recorders {
		r.Ended(e)
	}
	for _, o := range all.Observers {
		o.Ended(e)
	}
}
