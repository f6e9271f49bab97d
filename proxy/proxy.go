package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/terms"
	"heed/rules"
)

// Policies gives the policy of an origin.
type Policies interface {
	// Policy returns what the origin's robots.txt says, fetching it when it
	// is not at hand. It never returns nil: what could not be had is a policy
	// in state rules.Unreachable. userAgent is the client's, for sites that
	// answer heed's own name with 401 or 403. It returns early when ctx ends.
	Policy(ctx context.Context, origin rules.Origin, userAgent string) *rules.Policy
}

// Recorder keeps the record of decisions.
type Recorder interface {
	// Decided is called before any byte of the request leaves and before any
	// byte of a refusal returns. An error refuses the request.
	Decided(*audit.Entry) error
	// Ended is called once for each Entry that Decided accepted, when the
	// exchange is over, however it ended. The Entry must not be kept.
	Ended(*audit.Entry)
}

// Leaves gives certificates for intercepted hosts.
type Leaves interface {
	// Leaf returns a certificate for one canonical host name or IP address.
	Leaf(host string) (*tls.Certificate, error)
}

// Settings are what can change while a Proxy serves. They are immutable: others
// take their place whole. Policies and Upstream must not be nil.
type Settings struct {
	Policies Policies

	// Upstream sends what was allowed to the site; see NewTransport.
	Upstream http.RoundTripper

	// DialTunnel opens the far end of a tunnel that is not intercepted, to a
	// host:port; see TunnelDialer. Nil refuses such tunnels.
	DialTunnel func(ctx context.Context, hostPort string) (net.Conn, error)

	// Destinations says which places may be asked for at all; Upstream and
	// Policies look at the addresses as well. Nil: all.
	Destinations *Destinations

	// Book is what was settled with clients and sites. Nil: nothing was.
	Book *terms.Book

	// Limits bound what clients can hold; zero fields mean their defaults.
	Limits Limits

	// Mark has every answer name its decision: Proxy-Status says its id.
	Mark bool

	// Pacer has requests take turns. Nil: nobody waits.
	Pacer Pacer
}

// Config says what a Proxy is made of. Recorder and Leaves must not be nil.
type Config struct {
	// Name stands for this proxy in Via and Proxy-Status. It must be a token
	// (RFC 9110 §5.6.2) and should be no product and no host name.
	Name string

	// Settings are those in force from the beginning, and for good where Live
	// is nil. HeaderBytes, HeaderTime, IdleTime and Streams of their Limits hold
	// as long as the Proxy does.
	Settings

	// Live returns the settings in force, the Limits WithDefaults. A request keeps to what it
	// returned when the request arrived. It must be fast.
	Live func() *Settings

	Recorder Recorder
	Leaves   Leaves

	// Now is the clock that exceptions end by. Nil: time.Now.
	Now func() time.Time

	// Self holds the addresses this process listens on, which are never
	// forwarded to. Nil: a set of this Proxy's own.
	Self *Addrs

	// CACert and Bundle return what /ca.pem and /bundle.pem answer to a
	// direct request. Nil: not served.
	CACert, Bundle func() ([]byte, error)

	// Announce takes a sentence when requests begin to wait for their turn, now and
	// then while they do. Nil: nobody wants to know.
	Announce func(sentence string)

	// Log takes what is not a decision. Nil discards.
	Log *slog.Logger

	// Load counts what clients hold, for all proxies that have the same one.
	// Nil: a Load of this Proxy's own.
	Load *Load
}

// Proxy is a forward proxy on one listener. Make it with New; it is safe for
// concurrent use.
type Proxy struct {
	Config
	viaHTTP10, viaHTTP11, viaHTTP2 []string // shared header values, never changed
	statusName                     string   // Name as a Proxy-Status member
	agents                         agentMemo
	trusts                         trusts
	pages                          pageMemo
	announced                      announced
	engine                         http.Handler // goproxy with our hooks
	tlsConfig                      *tls.Config
	outer, inner                   *http.Server
	handovers                      *handovers    // decrypted connections on their way to inner
	open                           openConns     // connections that no http.Server watches
	leaving                        chan struct{} // a place for each connection that is being turned away
	closing                        atomic.Bool
	running                        atomic.Int64    // exchanges
	late                           atomic.Int64    // of those, waiting for a verdict after the fact
	lasting                        context.Context // of what outlives its exchange; ends when Shutdown begins
	endLasting                     context.CancelFunc
	cut                            atomic.Bool // what still ran at Shutdown's limit is being closed
}

// New returns a proxy made of what c says.
func New(c Config) (*Proxy, error) {
	if c.Policies == nil || c.Recorder == nil || c.Leaves == nil || c.Upstream == nil {
		return nil, errors.New("proxy: Policies, Recorder, Leaves and Upstream are all needed")
	}
	if !isToken(c.Name) {
		return nil, fmt.Errorf("name %q is not a token: use letters, digits and -._ only", c.Name)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Self == nil {
		c.Self = &Addrs{}
	}
	if c.Load == nil {
		c.Load = &Load{}
	}
	c.Limits = c.Limits.WithDefaults()
	if c.Live == nil {
		first := c.Settings
		c.Live = func() *Settings { return &first }
	}
	c.Recorder = steadyRecorder{c.Recorder, c.Log}
	p := &Proxy{
		Config:     c,
		viaHTTP10:  []string{"1.0 " + c.Name},
		viaHTTP11:  []string{"1.1 " + c.Name},
		viaHTTP2:   []string{"2 " + c.Name},
		statusName: `"` + c.Name + `"`,
		handovers:  newHandovers(),
		leaving:    make(chan struct{}, maxLeaving),
	}
	p.lasting, p.endLasting = context.WithCancel(context.Background())
	p.engine = newEngine(p)
	p.tlsConfig = p.newTLSConfig()
	p.outer = p.newServer()
	p.outer.Protocols.SetHTTP1(true)
	p.inner = p.newServer()
	p.inner.Protocols.SetHTTP1(true)
	p.inner.Protocols.SetHTTP2(true)
	go p.serveInner()
	return p, nil
}

// limits are those in force.
func (p *Proxy) limits() *Limits { return &p.Live().Limits }

// maxFrame is the largest HTTP/2 frame taken, in octets: what every client
// keeps to unasked (RFC 9113 §6.5.2). Frames of a connection are read into memory.
const maxFrame = 16 << 10

// newServer returns a server with our limits and the one handler. There is no
// WriteTimeout: it would cut long downloads.
func (p *Proxy) newServer() *http.Server {
	return &http.Server{
		Handler:                      http.HandlerFunc(p.front),
		Protocols:                    new(http.Protocols),
		ReadHeaderTimeout:            p.Limits.HeaderTime,
		IdleTimeout:                  p.Limits.IdleTime,
		MaxHeaderBytes:               p.Limits.HeaderBytes,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: p.Limits.Streams, MaxReadFrameSize: maxFrame},
		DisableGeneralOptionsHandler: true, // OPTIONS * is judged like any request
		ConnContext:                  withClientConn,
		ConnState:                    connState,
		ErrorLog:                     log.New(serverLog{p.Log}, "", 0),
	}
}

// serverLog takes what an http.Server says. Broken connections are every day's
// business and recorded anyway; that none can be accepted is the operator's.
type serverLog struct{ log *slog.Logger }

// Write implements io.Writer for one message.
func (l serverLog) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	if strings.Contains(text, "Accept error") {
		l.log.Warn("clients cannot connect", "error", text)
	} else {
		l.log.Debug("http server", "message", text)
	}
	return len(p), nil
}

// Serve accepts clients on l until Shutdown, then returns nil. It closes l.
// The addresses of l are added to Self.
func (p *Proxy) Serve(l net.Listener) error {
	p.Self.Add(l.Addr())
	defer p.Self.Remove(l.Addr())
	err := p.outer.Serve(&clientListener{Listener: l, proxy: p})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (p *Proxy) serveInner() {
	if err := p.inner.Serve(p.handovers); !errors.Is(err, http.ErrServerClosed) {
		p.Log.Error("inner server ended", "error", err)
	}
}

// Shutdown stops accepting, lets running exchanges end, tunnels included, and
// closes what is left when ctx ends; then it returns ctx's error.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.closing.Store(true)
	p.endLasting()
	inner := make(chan error, 1)
	go func() { inner <- p.inner.Shutdown(ctx) }() // at once: tunnels take no new requests either
	err := errors.Join(p.outer.Shutdown(ctx), <-inner, p.open.wait(ctx))
	if err != nil {
		p.cut.Store(true)
		p.outer.Close()
		p.inner.Close()
		p.open.closeAll()
		p.awaitRecords()
		return ctx.Err()
	}
	p.awaitRecords()
	return nil
}

// awaitRecords waits a moment for the exchanges whose connections were closed
// and for those that a verdict was to follow: each still records its end.
func (p *Proxy) awaitRecords() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Second); p.running.Load() > 0 && time.Now().Before(end); {
		<-tick.C
	}
}

// isToken reports whether s is a token (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
