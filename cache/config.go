package cache

import (
	"net/http"
	"strings"
	"time"

	"heed/rules"
)

// Defaults of Config.
const (
	DefaultTimeout    = 15 * time.Second
	DefaultMaxEntries = 250_000
	DefaultMaxBytes   = 256 << 20
)

// Config says how a Cache fetches and how much it keeps.
type Config struct {
	// Transport carries the fetches. It must not be nil, must not follow
	// redirects and must not answer from a cache. Telling an origin that cannot
	// be reached from one that answers badly relies on net/http/httptrace, as
	// *http.Transport serves it.
	Transport http.RoundTripper
	// PerFetch, when not nil, is called for each fetch and returns what carries
	// it in Transport's place: its first request and then those that redirects
	// lead to, one after the other. So whoever knows about addresses can see to
	// it that no redirect leads where the client could not have gone.
	PerFetch func() http.RoundTripper
	// Lanes bound the fetches of all caches that share them; nil means lanes of
	// this cache's own.
	Lanes *Lanes
	// Profile says how files are read, and how a site's silence and its denials
	// are taken; the zero value is rules.Standard. Policies that outlive the
	// process are judged by anew under another one; caches that share a Memory
	// need a Way for each.
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
	// MaxEntries is how many origins are kept; zero means DefaultMaxEntries.
	MaxEntries int
	// MaxBytes is how much memory the kept policies may hold; zero means
	// DefaultMaxBytes.
	MaxBytes int64
	// Memory, when not nil, is where the policies are kept, together with those
	// of other caches; it has bounds of its own, and MaxEntries and MaxBytes are
	// ignored.
	Memory *Memory
	// Way tells caches that share a Memory apart: those of one Way have their
	// policies in common. Different transports that may reach different sites
	// under one name need different Ways. Empty is as good as any.
	Way string
	// Keeper has policies outlive the process; nil: they do not.
	Keeper Keeper
	// Shared has policies in common with other heeds, which must reach sites in
	// the same way; nil: there are none.
	Shared Shared
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
	if c.MaxEntries <= 0 {
		c.MaxEntries = DefaultMaxEntries
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
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
