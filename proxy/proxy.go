package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/proxy/catrust"
	"heed/proxy/http1"
	"heed/proxy/limit"
	"heed/proxy/server"
	"heed/proxy/upstream"
	"heed/proxy/usage"
	"heed/rules"
)

// Policies gives the policy of an origin.
type Policies interface {
	// Policy returns the rules of the origin's robots.txt, fetching it when it
	// is not at hand. It never returns nil: what could not be had is a policy
	// in state rules.Unreachable. userAgent is the client's, for sites that
	// answer heed's own name with 401 or 403. It returns early when ctx ends.
	Policy(ctx context.Context, origin rules.Origin, userAgent string) *rules.Policy
	// Held returns the files of the origin that are at hand under the names of
	// clients, where the origin answers clients differently. A request without
	// a User-Agent must be allowed by each of them. It fetches nothing.
	Held(origin rules.Origin) []*rules.Policy
}

// Recorder keeps the record of decisions.
type Recorder = audit.Recorder

// Leaves gives certificates for intercepted hosts.
type Leaves interface {
	// Leaf returns a certificate for one canonical host name or IP address.
	Leaf(host string) (*tls.Certificate, error)
}

// Settings are what can change while a Proxy serves. They are immutable: others
// take their place whole. Policies and Upstream must not be nil.
type Settings struct {
	Policies Policies

	// Upstream sends what was allowed to the site; see upstream.HostTransports.
	Upstream upstream.Sender

	// DialTunnel opens the far end of a tunnel that is not intercepted, to a
	// host:port; see upstream.HostTransports. Nil refuses such tunnels.
	DialTunnel func(ctx context.Context, hostPort string) (net.Conn, error)

	// Destinations defines which destinations may be requested; Upstream and
	// Policies look at the addresses as well. Nil: all.
	Destinations *acl.Destinations

	// Rules are the operator's settings for clients and sites. Nil: there are none.
	Rules *acl.Rules

	// Balancers are the networks of load balancers, on Serve's listeners: each of their
	// connections begins with a header of the PROXY protocol, which names the client.
	Balancers []netip.Prefix

	// Limits bound what clients can hold; zero fields mean their defaults.
	Limits limit.Limits

	// Mark makes every answer name its decision: Proxy-Status contains its id.
	Mark bool

	// Pacer delays requests. Nil: none is delayed.
	Pacer Pacer

	// Signals define what is read of the pages that state how they may be used.
	Signals usage.Settings
}

// Config configures a Proxy. Recorder and Leaves must not be nil.
type Config struct {
	// Name identifies this proxy in Via and Proxy-Status. It must be a token
	// (RFC 9110 §5.6.2) and should be no product and no host name.
	Name string

	// Settings are those in force from the beginning, and permanently where Live
	// is nil. HeaderBytes, HeaderTime, IdleTime and Streams of their Limits hold
	// as long as the Proxy does.
	Settings

	// Live returns the settings in force, the Limits WithDefaults. A request is handled by what
	// it returned when the request arrived. The limits on connections and tunnels, and the times
	// of a client's connection, are read anew whenever they are needed. It must be fast.
	Live func() *Settings

	Recorder Recorder
	Leaves   Leaves

	// Own is set when the clients are the operator's own command, by heed run: refusals name
	// what changes them here.
	Own bool

	// OwnServices are those of the clients. Nil: they have none.
	OwnServices *OwnServices

	// Fetches are heed's own, about which the proxies that they go through may ask. Nil: none
	// is recognised.
	Fetches *upstream.OwnFetches

	// Now is the clock that exceptions end by. Nil: time.Now.
	Now func() time.Time

	// Self holds the addresses this process listens on, which are never
	// forwarded to. Nil: a set of this Proxy's own.
	Self *acl.Addrs

	// CACert and Bundle return what /ca.pem and /bundle.pem answer to a
	// direct request. Nil: not served.
	CACert, Bundle func() ([]byte, error)

	// Contact returns the operator's URL or mail address for the page of the proxy; empty:
	// none. Nil: there is none.
	Contact func() string

	// Announce takes two sentences when requests begin to wait for their turn, now and
	// then per site: for the client that waits, and for a log, which names the client.
	// Nil: waits are not announced.
	Announce func(forClient, forLog string)

	// Log takes what is not a decision. Nil discards.
	Log *slog.Logger

	// Handshake is called after each TLS handshake with a client, with its error. Nil is
	// not called.
	Handshake func(error)

	// Silent is called for each client that connects to a listener of Serve and leaves without
	// having sent anything. Nil is not called.
	Silent func()

	// Load counts what clients hold, for all proxies that have the same one.
	// Nil: a Load of this Proxy's own.
	Load *limit.Load
}

// Proxy is a forward proxy on one listener. Make it with New; it is safe for
// concurrent use.
type Proxy struct {
	config     Config
	via        http1.Via
	gate       *limit.Gate
	statusName string // Name as a Proxy-Status member
	agents     agentMemo
	caTrust    catrust.Memory
	pages      pageVisits
	tag        atomic.Pointer[tagOf]
	awaited    sync.Map // *awaited by id
	usage      usage.Judge
	announced  announced
	engine     http.Handler // goproxy with our hooks
	tlsConfig  *tls.Config
	h1         server.Server
	h2         *http.Server    // of intercepted tunnels
	h2Tunnels  *tunnelListener // connections on their way to it
	open       closers         // connections that no server watches: handshakes and WebSockets
	listeners  closers
	closing    atomic.Bool
	running    atomic.Int64    // exchanges
	deferred   atomic.Int64    // of those, waiting for a verdict that follows
	headers    chan struct{}   // holds one value for each connection of a load balancer whose header is being read
	lasting    context.Context // of what outlives its exchange; ends when Shutdown begins
	endLasting context.CancelFunc
	cut        atomic.Bool // what still ran at Shutdown's limit is being closed
}

// endTime is how long an end of a client's stream is waited for that belongs to the request,
// once the client is watched. Programs that do so send both together. What comes later is a
// client that has left: a turn that is held for it is kept from others.
const endTime = 30 * time.Millisecond

// stallTime is how long a request that is under way goes on for a client that has ended its
// stream, without anything written to it: it may be gone, which only writing shows.
const stallTime = time.Minute

// New returns a proxy for c.
func New(c Config) (*Proxy, error) {
	if c.Policies == nil || c.Recorder == nil || c.Leaves == nil || c.Upstream == nil {
		return nil, errors.New("proxy: Policies, Recorder, Leaves and Upstream are all needed")
	}
	if !httpguts.ValidHeaderFieldName(c.Name) { // another token (RFC 9110 §5.6.2)
		return nil, fmt.Errorf("name %q is not a token: use letters, digits and -._ only", c.Name)
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Self = cmp.Or(c.Self, &acl.Addrs{})
	c.Load = cmp.Or(c.Load, &limit.Load{})
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Limits = c.Limits.WithDefaults()
	if c.Live == nil {
		first := c.Settings
		c.Live = func() *Settings { return &first }
	}
	c.Recorder = steadyRecorder{c.Recorder, c.Log}
	p := &Proxy{
		config:     c,
		via:        http1.NewVia(c.Name),
		statusName: `"` + c.Name + `"`,
	}
	p.h1.HeaderTime, p.h1.IdleTime, p.h1.EndTime = c.Limits.HeaderTime, c.Limits.IdleTime, endTime
	p.h1.StallTime = stallTime
	p.headers = make(chan struct{}, maxHeaders)
	p.gate = limit.NewGate(c.Load, p.limits, p.logLimit)
	p.lasting, p.endLasting = context.WithCancel(context.Background())
	p.engine = newEngine(p, onRequest)
	p.tlsConfig = p.newTLSConfig()
	p.h2, p.h2Tunnels = p.newH2Server(), &tunnelListener{conns: make(chan net.Conn), done: make(chan struct{})}
	go p.serveH2()
	return p, nil
}
