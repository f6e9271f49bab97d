package cache

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"heed/rules"
)

// DefaultTimeout is used when Config.Timeout is zero.
const DefaultTimeout = 15 * time.Second

// Config configures the fetches and the bounds of a Cache.
type Config struct {
	// Transport makes the requests. It must not be nil, must not follow redirects and must not
	// answer from a cache. An error whose method NotReached() bool returns true means that no
	// connection was made.
	Transport http.RoundTripper
	// PerFetch, when not nil, is called for each fetch and returns the RoundTripper that is
	// used in place of Transport, for the first request and for its redirects in turn. It can
	// refuse redirects to addresses that the client could not reach. When it has the method
	// Scope(context.Context) string, fetches with the same Scope may share the answers to
	// visits.
	PerFetch func() http.RoundTripper
	// Turn waits for the turn of a visit. The request is made with the context turned, and
	// ended is called when it was answered. An error means that there is no turn before ctx
	// ends. Nil: visits need no turn.
	Turn func(ctx context.Context, v Visit) (turned context.Context, ended func(), err error)
	// Carry returns the context to of a fetch, with those values of from that Transport needs;
	// from is the context of the request that causes the fetch. It is not called for fetches in
	// the background. Nil: Transport needs no values.
	Carry func(from, to context.Context) context.Context
	// Signer returns the Signer for the client whose request has the context ctx; nil when its
	// requests are not signed. An answer to a signed request applies to clients with the same
	// name and the same Signer alone. Nil: no request is signed.
	Signer func(ctx context.Context) Signer
	Sign   func(to context.Context, s Signer) context.Context
	// Limits are shared by all caches that use them; nil means separate limits.
	Limits *FetchLimits
	// Profile is how files are read, and what failures and denials of a site mean; the zero
	// value is rules.Standard. Policies from a store are judged anew under another profile.
	// Caches that share a Memory and differ in Profile need different Routes.
	Profile rules.Profile
	// UserAgent is sent with every fetch except those under the name of a client. Empty means
	// DefaultUserAgent("").
	UserAgent string
	// Now is the clock of lifetimes; nil means time.Now. The time limits of a fetch use real
	// time.
	Now func() time.Time
	// Timeout is the longest wait of a caller for a policy; zero means DefaultTimeout.
	Timeout time.Duration
	// Memory holds the policies, and may be shared with other caches; nil means a separate one
	// with the default bounds.
	Memory *Memory
	// Route separates caches that share a Memory: those with the same Route share their
	// policies. Transports that may reach different sites under one name need different Routes.
	Route string
	// Store keeps policies across restarts; nil: they are not kept.
	Store PolicyStore
	// Shared shares policies with other heeds, which must reach sites over the same route; nil:
	// there are none.
	Shared Shared
	// Purged forgets what else is kept of a site that this heed or another one of the fleet has
	// purged, and reports whether there was anything. The zero Origin means any site: messages of
	// the fleet may have been lost. Nil: nothing is kept.
	Purged func(rules.Origin) (had bool)
	// Redact returns a URL without its secrets, the same for equal URLs. URLs of redirects are
	// stored in this form. Nil stores URLs unchanged.
	Redact func(string) string
	// Fetched is called after each fetch with one of FetchOutcomes and its duration; nil is
	// not called.
	Fetched func(outcome string, took time.Duration)
}

// Signer signs requests.
type Signer interface {
	ID() string // equal for Signers whose signatures are equal
}

// withDefaults returns c with defaults in place of zero fields.
func (c Config) withDefaults() Config {
	c.UserAgent = cmp.Or(c.UserAgent, DefaultUserAgent(""))
	c.Timeout = cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	c.Limits = cmp.Or(c.Limits, &FetchLimits{})
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Memory == nil {
		c.Memory = NewMemory(0, 0)
	}
	if c.Purged == nil {
		c.Purged = func(rules.Origin) bool { return false }
	}
	if c.Redact == nil {
		c.Redact = func(url string) string { return url }
	}
	if c.Carry == nil {
		c.Carry = func(_, to context.Context) context.Context { return to }
	}
	if c.Signer == nil {
		c.Signer = func(context.Context) Signer { return nil }
		c.Sign = func(to context.Context, _ Signer) context.Context { return to }
	}
	return c
}

// DefaultUserAgent returns the User-Agent of heed's own fetches, with contact (a URL or a mail
// address) for the site's operator. An empty contact is left out; characters that a comment
// cannot contain (RFC 9110 §5.6.5) are dropped.
func DefaultUserAgent(contact string) string {
	const product = "heed/1.0"
	contact = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '(' || r == ')' || r == '\\' {
			return -1
		}
		return r
	}, contact)
	if contact == "" {
		return product
	}
	return product + " (+" + contact + ")"
}
