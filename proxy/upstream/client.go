package upstream

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"heed/internal/base/memo"
)

// Client identifies a client's connection, to which connections to sites belong. Its
// zero value is ready; it is safe for concurrent use.
type Client struct {
	mu     sync.Mutex
	pinned map[*conn]struct{} // those that the client has authenticated; nil: none
	ended  bool
}

type clientKey struct{}

// WithClient returns a context for the requests of c.
func WithClient(ctx context.Context, c *Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// CarryClient returns to with the Client of from, for a fetch that a request causes. It
// returns to where from has none.
func CarryClient(from, to context.Context) context.Context {
	if c := clientOf(from); c != nil {
		return WithClient(to, c)
	}
	return to
}

// clientOf returns the Client that ctx is of; nil when there is none.
func clientOf(ctx context.Context) *Client {
	c, _ := ctx.Value(clientKey{}).(*Client)
	return c
}

// End closes the connections to sites that the client has authenticated. It is called at
// the end of the client's connection.
func (c *Client) End() {
	c.mu.Lock()
	pinned := c.pinned
	c.pinned, c.ended = nil, true
	c.mu.Unlock()
	for site := range pinned {
		site.end()
	}
}

// pin notes that site is to be closed with c. It returns false when c has ended, or is
// nil: then site serves no further request.
func (c *Client) pin(site *conn) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	memo.Set(&c.pinned, site, struct{}{})
	return true
}

// unpin forgets site, which is closed.
func (c *Client) unpin(site *conn) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pinned, site)
}

// authenticates reports whether a request with the header h authenticates the connection
// that it is sent on (RFC 4559 §6, MS-NTHT).
func authenticates(h http.Header) bool {
	for _, name := range [...]string{"Authorization", "Proxy-Authorization"} {
		for _, v := range h[name] {
			if scheme, _ := connectionScheme(v); scheme {
				return true
			}
		}
	}
	return false
}

// challenges reports whether an answer concerns the authentication of its connection;
// begun is true when it is a step of a handshake, which continues on the same one.
func challenges(resp *http.Response) (pins, begun bool) {
	for _, v := range resp.Header["Proxy-Support"] {
		pins = pins || strings.EqualFold(strings.TrimSpace(v), "Session-Based-Authentication")
	}
	if resp.StatusCode != http.StatusUnauthorized {
		return pins, false
	}
	for _, v := range resp.Header["Www-Authenticate"] {
		for challenge := range strings.SplitSeq(v, ",") {
			scheme, token := connectionScheme(challenge)
			pins, begun = pins || scheme, begun || token
		}
	}
	return pins, begun
}

// connectionScheme reports whether a value of Authorization, or one challenge, is of a
// scheme that authenticates connections, and whether a token follows. Some servers take a
// tab for the space between them.
func connectionScheme(v string) (is, token bool) {
	scheme, rest := strings.TrimSpace(v), ""
	if i := strings.IndexAny(scheme, " \t"); i >= 0 {
		scheme, rest = scheme[:i], scheme[i:]
	}
	is = strings.EqualFold(scheme, "NTLM") || strings.EqualFold(scheme, "Negotiate")
	return is, is && strings.TrimSpace(rest) != ""
}
