package cache

import (
	"context"
	"net/http"
	"strings"
	"time"

	"heed/rules"
)

// DefaultTimeout is the Timeout of a Config that sets none.
const DefaultTimeout = 15 * time.Second

// Config configures the fetches and the bounds of a Cache.
type Config struct {
	// Transport carries the fetches. It must not be nil, must not follow
	// redirects and must not answer from a cache. An error that has the method
	// NotReached() bool, with the result true, says that no connection was made.
	Transport http.RoundTripper
	// PerFetch, when not nil, is called for each fetch and returns what carries
	// it in place of Transport: its first request and then those that redirects
	// lead to, one after the other. It can refuse redirects that lead where the client could
	// not have gone; when what it returns has the method Scope(context.Context) string, fetches
	// with the same Scope may have the answers to visits in common.
	PerFetch func() http.RoundTripper
	// Turn waits for the turn of a visit. Its request is sent under turned, and ended is called
	// when it has been answered. An error means that there is no turn in the time of ctx. Nil:
	// visits need no turn.
	Turn func(ctx context.Context, v Visit) (turned context.Context, ended func(), err error)
	// Carry returns to, the context of a fetch, with what Transport needs of from, that of
	// the request which causes it. Fetches in the background have no such request. Nil: it
	// needs nothing.
	Carry func(from, to context.Context) context.Context
	// Signer returns what signs the requests of the client whose request has the context ctx;
	// nil when they are not signed. Sign returns to, the context of a request that is made as
	// a client, with its Signer, which may be nil. An answer to a request that was signed holds for clients with the
	// same name and the same Signer alone. Nil: no request is signed.
	Signer func(ctx context.Context) Signer
	Sign   func(to context.Context, s Signer) context.Context
	// Limits bound the fetches of all caches that share them; nil means separate
	// limits.
	Limits *FetchLimits
	// Profile says how files are read, and how a site's silence and its denials
	// are taken; the zero value is rules.Standard. Policies that outlive the
	// process are judged by anew under another one; caches that share a Memory
	// need a Route for each.
	Profile rules.Profile
	// UserAgent is sent with every fetch but the one repeated as the client.
	// Empty means DefaultUserAgent("").
	UserAgent string
	// Now is the clock that lifetimes are counted by; nil means time.Now. The
	// limits of a single fetch are counted in real time all the same.
	Now func() time.Time
	// Timeout is how long a caller waits for a policy at most, whatever has to
	// be fetched for it; zero means DefaultTimeout.
	Timeout time.Duration
	// Memory is where the policies are kept, together with those of other caches;
	// nil means a separate one with the default bounds.
	Memory *Memory
	// Route distinguishes caches that share a Memory: those of one Route have their
	// policies in common. Different transports that may reach different sites
	// under one name need different Routes. Empty is as good as any.
	Route string
	// Store has policies outlive the process; nil: they do not.
	Store PolicyStore
	// Shared has policies in common with other heeds, which must reach sites in
	// the same way; nil: there are none.
	Shared Shared
	// Redact returns a URL without the secrets in it, equal for equal URLs: where redirects
	// led is kept in this form. Nil keeps URLs as they are.
	Redact func(string) string
	// Fetched is called after each fetch with one of FetchOutcomes and its duration; nil is
	// not called.
	Fetched func(outcome string, took time.Duration)
}

// Signer signs requests.
type Signer interface {
	ID() string // equal for those whose signatures are equal
}

// withDefaults returns c with every zero field filled in.
func (c Config) withDefaults() Config {
	if c.UserAgent == "" {
		c.UserAgent = DefaultUserAgent("")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Memory == nil {
		c.Memory = NewMemory(0, 0)
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
	if c.Limits == nil {
		c.Limits = &FetchLimits{}
	}
	return c
}

// DefaultUserAgent returns the User-Agent of heed's own fetches: its name, and
// contact (a URL or a mail address) so that a site's operator can ask who is
// behind it. An empty contact is left out; characters that a comment cannot
// hold (RFC 9110 §5.6.5) are dropped.
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
