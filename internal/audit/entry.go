package audit

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"heed/rules"
)

// Judged says how much of a request the verdict rests on.
type Judged uint8

// How a request was judged. The zero value is NotJudged: "we could not see it"
// is never taken for a verdict on it.
const (
	NotJudged Judged = iota // nothing was judged; the reason says why
	ByPath                  // the exact bytes of the target were judged
	ByHost                  // only the host was seen: a tunnel that is not intercepted
)

// String returns the stable name: no, path or host.
func (j Judged) String() string {
	switch j {
	case ByPath:
		return "path"
	case ByHost:
		return "host"
	default:
		return "no"
	}
}

// Entry is the record of one Decision and of how the exchange ended. The
// proxy fills the first part before anything leaves and hands the Entry to
// its Recorder; the outcome is filled when the exchange ends. A Recorder that
// keeps an Entry beyond Ended copies it.
type Entry struct {
	ID     uuid.UUID // version 7: ordered by time
	Time   time.Time // when the request was decided on
	Client string    // the client's address, host:port

	User       string // whose credentials for the proxy were shown; empty: none were asked for
	ClientName string // of the entry in the configuration that fits; empty: none does
	Mode       string // what the verdict does: enforce, observe or exempt
	Config     string // the hash of the configuration that was in force; empty: none has one
	Settings   string // what Config is of, as text without secrets; empty as well

	Agent     *rules.Agent // nil when no request was read
	UserAgent string       // as received; empty when none
	Sent      string       // the User-Agent sent on when it differs from the received one
	SentFrom  string       // the From field sent in place of the client's; empty: the client's

	Method string
	Scheme string
	Host   string // host[:port] in canonical form
	Target string // path and query, as judged and as sent to the site
	Raw    string // the request target as received, when it differs from Target

	Part string // as what a page asks for it (Sec-Fetch-Dest); empty: it is no part of a page
	Page string // the address of that page; empty when the browser does not tell

	// Revises is the decision that this one takes back, about the same tunnel:
	// what came through it was not what it was opened for. Nil: it takes none back.
	Revises *Revised

	Judged    Judged
	Unseen    int // rules that might have refused what a tunnel judged by its host hides
	Decision  rules.Decision
	Settled   string        // the operator's reason for an exception that decided; empty: none did
	Policy    *rules.Policy // nil when none was asked for
	PolicyAge time.Duration // since the policy was fetched or revalidated

	DelayAsked time.Duration // between two requests, by the site or the operator; 0: none is
	Waited     time.Duration // for a turn, before the decision took effect
	Owed       time.Duration // still, when its turn was too far off or its client left
	PaceNote   string        // what of the site's wishes about speed was clamped, or only noted; empty: nothing

	// Detail says more about a refusal that no rule made; empty when the
	// reason says it all. It never holds credentials.
	Detail string

	Outcome Outcome
}

// NewID returns the id of a decision made now: a UUIDv7 (RFC 9562), ordered by
// time. Without randomness there is no identity and no TLS either: crypto/rand
// ends the process rather than return an error.
func NewID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// Outcome is how an exchange ended.
type Outcome struct {
	Status    int             // sent to the client; 0 when nothing was
	FromSite  bool            // the answer came from the site, not from heed
	BytesIn   int64           // of the request body, read from the client
	BytesOut  int64           // of the response body, written to the client
	Waited    time.Duration   // for the policy and for a turn
	Duration  time.Duration   // from the request's head to the end of the answer
	Truncated bool            // the answer did not arrive whole
	Late      *rules.Decision // the verdict that came after a request that was only observed; nil: it did not
	// LatePolicy is what Late rests on, LateSettled the operator's reason for an
	// exception that decided it; zero as Settled and Policy are.
	LatePolicy  *rules.Policy
	LateSettled string

	Note string // what the site's answer leads to for others: a pause that it asks for; empty: nothing
	Err  string // what broke off the exchange; empty when nothing did
}

// SiteRefused reports whether the site itself refused what heed had let through.
func (e *Entry) SiteRefused() bool { return e.Outcome.FromSite && SiteRefused(e.Outcome.Status) }

// Became says in a word what became of the exchange, once it has ended:
// refused-by-heed, refused-by-site, answered (by the site), tunnelled or
// failed.
func (e *Entry) Became() string {
	switch {
	case e.Decision.Verdict == rules.Refuse:
		return "refused-by-heed"
	case e.SiteRefused():
		return "refused-by-site"
	case e.Outcome.FromSite:
		return "answered"
	case e.Method == http.MethodConnect && e.Outcome.Status == http.StatusOK:
		return "tunnelled"
	default:
		return "failed"
	}
}

// URL returns the address asked for: without a target the host (CONNECT), and
// nothing when no host was learnt.
func (e *Entry) URL() string {
	if e.Host == "" {
		return ""
	}
	return e.Scheme + "://" + e.Host + e.Target
}
