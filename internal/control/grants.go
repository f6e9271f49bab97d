package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/rules"
)

// Limits of mode overrides and exceptions.
const (
	MaxBreak  = 7 * 24 * time.Hour   // of `heed mode observe`
	MaxGrant  = 366 * 24 * time.Hour // of `heed allow`
	maxReason = 500                  // octets
)

// Break is a mode override: a period of observe mode that `heed mode observe` began.
type Break struct {
	ID string `json:"id"`
	acl.ModeOverride
}

// Exception is an exception that `heed allow` or `heed refuse` added.
type Exception struct {
	ID      string          `json:"id"`
	Host    acl.HostPattern `json:"host"`
	Path    string          `json:"path"` // as in robots.txt
	Refuse  bool            `json:"refuse,omitempty"`
	Client  string          `json:"client"` // empty: all, for refusals only
	Reason  string          `json:"reason"`
	Since   time.Time       `json:"since"`
	Expires time.Time       `json:"expires,omitzero"` // zero: permanent, for refusals only
}

// Granted lists the mode overrides and exceptions that were added at run time, the latest first.
type Granted struct {
	Last       int         `json:"last"` // the last id
	Breaks     []Break     `json:"breaks"`
	Exceptions []Exception `json:"exceptions"`
}

// Clone returns a copy of g.
func (g Granted) Clone() Granted {
	g.Breaks, g.Exceptions = slices.Clone(g.Breaks), slices.Clone(g.Exceptions)
	return g
}

// IsZero reports whether nothing is granted.
func (g Granted) IsZero() bool { return len(g.Breaks)+len(g.Exceptions) == 0 }

// Without returns g without the mode overrides and exceptions that have ended at now, the text of
// those, and when the next one ends; the zero Time: none does.
func (g Granted) Without(now time.Time) (left Granted, ended []string, next time.Time) {
	lasts := func(end time.Time, text func() string) bool {
		switch {
		case !now.Before(end):
			ended = append(ended, text())
			return false
		case next.IsZero() || end.Before(next):
			next = end
		}
		return true
	}
	left.Last, left.Breaks, left.Exceptions = g.Last, []Break{}, []Exception{}
	for _, b := range g.Breaks {
		if lasts(b.Until, b.Text) {
			left.Breaks = append(left.Breaks, b)
		}
	}
	for _, e := range g.Exceptions {
		if e.Expires.IsZero() || lasts(e.Expires, e.Text) {
			left.Exceptions = append(left.Exceptions, e)
		}
	}
	return left, ended, next
}

// AddTo returns r with the mode overrides and exceptions of g.
func (g Granted) AddTo(r *acl.Rules) (*acl.Rules, error) {
	var overrides []acl.ModeOverride
	for _, one := range g.Breaks {
		overrides = append(overrides, one.ModeOverride)
	}
	var hosts []acl.Host
	for _, e := range g.Exceptions {
		x := acl.Exception{Patterns: []string{e.Path}, Refuse: e.Refuse, Reason: e.Reason, Expires: e.Expires, Granted: true}
		if e.Client != "" {
			x.Clients = []string{e.Client}
		}
		made, err := acl.NewException(x)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, acl.Host{Match: []acl.HostPattern{e.Host}, Exceptions: []*acl.Exception{made}})
	}
	return r.With(overrides, hosts), nil
}

// Text returns the scope, the end and the reason of a mode override.
func (b *Break) Text() string {
	var of []string
	if b.Client != "" {
		of = append(of, "client "+b.Client)
	}
	if b.Host != (acl.HostPattern{}) {
		of = append(of, "host "+b.Host.String())
	}
	if len(of) == 0 {
		of = []string{"everything"}
	}
	return fmt.Sprintf("%s until %s: %s", strings.Join(of, ", "), b.Until.Format(time.RFC3339), console.Quoted(b.Reason))
}

// Text returns the scope, the client, the end and the reason of an exception.
func (e *Exception) Text() string {
	who, until := "client "+e.Client, "until "+e.Expires.Format(time.RFC3339)
	if e.Client == "" {
		who = "all clients"
	}
	if e.Expires.IsZero() {
		until = "until it is ended"
	}
	return fmt.Sprintf("%s%s for %s %s: %s", e.Host, console.Quoted(e.Path), who, until, console.Quoted(e.Reason))
}

// ParsePattern splits "https://example.org/api/" or "example.org/api/" into the host
// pattern and the path pattern of an exception. A scheme restricts the host to its port.
func ParsePattern(text string) (host acl.HostPattern, path string, err error) {
	scheme, rest, named := strings.Cut(text, "://")
	if !named {
		rest = text
	}
	at := strings.IndexByte(rest, '/')
	if at < 0 {
		return host, "", fmt.Errorf("%q names no path\nWrite %q for all of the site", text, text+"/")
	}
	authority := rest[:at]
	if named {
		o, err := rules.ParseOrigin(scheme, strings.TrimPrefix(authority, "*."))
		if err != nil {
			return host, "", fmt.Errorf("%q is no address: %w\nWrite it such as https://example.org/api/", text, err)
		}
		if !strings.HasSuffix(authority, ":"+strconv.Itoa(int(o.Port))) {
			authority += ":" + strconv.Itoa(int(o.Port))
		}
	}
	if host, err = acl.ParseHostPattern(authority); err != nil {
		return host, "", err
	}
	if _, err := acl.NewException(acl.Exception{Patterns: []string{rest[at:]}}); err != nil {
		return host, "", err
	}
	return host, rest[at:], nil
}

// CheckReason returns an error for a reason that is empty or too long for the record.
func CheckReason(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("--reason is needed: the record quotes it, such as --reason 'outage of the shop, ticket 4711'")
	case len(text) > maxReason:
		return fmt.Errorf("--reason: at most %d octets are kept", maxReason)
	}
	return nil
}

// GrantRequest is the body of POST /breaks and POST /exceptions.
type GrantRequest struct {
	For     time.Duration `json:"for_ns"`
	Reason  string        `json:"reason"`
	Client  string        `json:"client,omitempty"`
	Host    string        `json:"host,omitempty"`    // of a mode override: a host pattern
	Pattern string        `json:"pattern,omitempty"` // of an exception: host and path
	Refuse  bool          `json:"refuse,omitempty"`  // of an exception: it refuses; For 0: permanent
}

// Granted returns the mode overrides and exceptions that apply at the running heed.
func (c *Client) Granted() (Granted, error) {
	return Grant[Granted](c, http.MethodGet, "/granted", nil)
}

// Grant sends a request about grants or pacing, with q as its body, and returns the
// response as an A.
func Grant[A any](c *Client, method, path string, q *GrantRequest) (A, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return call[A](ctx, c, method, path, q)
}
