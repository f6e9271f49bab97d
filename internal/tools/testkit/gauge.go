package testkit

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Arrival is the start of a request, as the site saw it.
type Arrival struct {
	// At is when the head arrived at the site's machine, by that machine's clock:
	// how busy the site is does not change it.
	At time.Time
	// Conn numbers the connection it came on, from 1.
	Conn int

	Host, Scheme, Proto, Method, Target string
	Agent                               string // its User-Agent
	Via                                 string // empty: it did not come through a proxy
}

// GaugeOptions say what a Gauge serves.
type GaugeOptions struct {
	// Hosts are the names of the sites, each ending in .test; nil: site.test.
	Hosts []string
	// Robots is what /robots.txt of every site says. Empty: Handler answers for it.
	Robots string
	// Handler answers what Robots does not; nil: "ok" for every path. It is
	// called when the start is in the book.
	Handler http.Handler
	// HTTP1 keeps the sites from offering HTTP/2.
	HTTP1 bool
	// Streams is how many requests at a time an HTTP/2 connection takes; 0: as many
	// as is usual.
	Streams int
	// Handshake is how long a TLS handshake takes.
	Handshake time.Duration
	// Plain leaves https away, for tests with very many sites.
	Plain bool
}

// Gauge is one site, or many at one place, where it is measured when requests
// start. Unlike an Origin it is part of the test's own process.
type Gauge struct {
	CA *CA // behind every site's certificate

	options GaugeOptions
	ports   map[string]string // "site.test:443" -> "127.0.0.1:PORT"
	mu      sync.Mutex
	starts  []Arrival
	conns   int
	more    chan struct{} // closed and replaced at every start
}

// NewGauge starts a Gauge that serves until the test ends.
func NewGauge(t testing.TB, options GaugeOptions) *Gauge {
	t.Helper()
	if options.Hosts == nil {
		options.Hosts = []string{"site.test"}
	}
	g := &Gauge{CA: NewCA(t), options: options, ports: map[string]string{}, more: make(chan struct{})}
	plain := g.serve(t, nil)
	for _, host := range options.Hosts {
		g.ports[host+":80"] = plain
	}
	if options.Plain {
		return g
	}
	config := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		<-time.After(options.Handshake)
		return nil, nil
	}}
	for _, host := range options.Hosts {
		certFile, keyFile := g.CA.Leaf(t, host)
		leaf, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = append(config.Certificates, leaf)
	}
	secure := g.serve(t, config)
	for _, host := range options.Hosts {
		g.ports[host+":443"] = secure
	}
	return g
}

// serve serves all sites on a port of its own.
func (g *Gauge) serve(t testing.TB, config *tls.Config) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{
		Handler: g, TLSConfig: config, ConnContext: g.connection,
		ErrorLog: log.New(io.Discard, "", 0), // what clients break off is no news
	}
	if g.options.HTTP1 {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
	}
	if g.options.Streams > 0 {
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: g.options.Streams}
	}
	t.Cleanup(func() { s.Close() })
	if config == nil {
		go s.Serve(stampedListener{l})
	} else {
		go s.ServeTLS(stampedListener{l}, "", "")
	}
	return l.Addr().String()
}

// numberedKey is the context's key for a connection and its number.
type numberedKey struct{}

type numbered struct {
	*stampedConn
	number int
}

func (g *Gauge) connection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns++
	return context.WithValue(ctx, numberedKey{}, numbered{c.(*stampedConn), g.conns})
}

// ServeHTTP implements http.Handler.
func (g *Gauge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Nothing of the connection has been read behind this head yet.
	c := r.Context().Value(numberedKey{}).(numbered)
	start := Arrival{
		At: c.arrived(), Conn: c.number, Host: r.Host, Scheme: "http", Proto: r.Proto, Method: r.Method,
		Target: r.RequestURI, Agent: r.UserAgent(), Via: r.Header.Get("Via"),
	}
	if r.TLS != nil {
		start.Scheme = "https"
	}
	g.note(start)
	switch {
	case r.URL.Path == "/robots.txt" && g.options.Robots != "":
		io.WriteString(w, g.options.Robots)
	case g.options.Handler != nil:
		g.options.Handler.ServeHTTP(w, r)
	default:
		io.WriteString(w, "ok")
	}
}

func (g *Gauge) note(s Arrival) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.starts = append(g.starts, s)
	close(g.more)
	g.more = make(chan struct{})
}

// Starts are the requests so far, oldest first.
func (g *Gauge) Starts() []Arrival {
	all, _ := g.book()
	return all
}

// book is what Starts says, and a channel that is closed when there is more.
func (g *Gauge) book() ([]Arrival, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Clone(g.starts)
	slices.SortStableFunc(all, func(a, b Arrival) int { return a.At.Compare(b.At) })
	return all, g.more
}

// Await waits until there are n starts that fit, and returns those.
func (g *Gauge) Await(t testing.TB, n int, fits func(Arrival) bool) []Arrival {
	t.Helper()
	late := time.After(Patience)
	for {
		all, more := g.book()
		all = slices.DeleteFunc(all, func(s Arrival) bool { return !fits(s) })
		if len(all) >= n {
			return all
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%d of %d requests came to the site", len(all), n)
		}
	}
}

// Config is a proxy.toml that reaches the sites, as Origin.Config is.
func (g *Gauge) Config(top string) string {
	var text bytes.Buffer
	text.WriteString(AnyPort + top + "\n[upstream]\n")
	fmt.Fprintf(&text, "ca_file = %q\n[upstream.resolve]\n", g.CA.File)
	for name, addr := range g.ports {
		fmt.Fprintf(&text, "%q = %q\n", name, addr)
	}
	return text.String()
}

// Pages are the starts of one origin, "http://site.test", that are not its
// robots.txt.
func Pages(starts []Arrival, origin string) (pages []Arrival) {
	for _, s := range starts {
		if s.Scheme+"://"+s.Host == origin && s.Target != "/robots.txt" {
			pages = append(pages, s)
		}
	}
	return pages
}

// Gaps are the times between one start and the next, the smallest first.
type Gaps []time.Duration

// GapsOf measures starts, which are in order.
func GapsOf(starts []Arrival) Gaps {
	var gaps Gaps
	for i := 1; i < len(starts); i++ {
		gaps = append(gaps, starts[i].At.Sub(starts[i-1].At))
	}
	slices.Sort(gaps)
	return gaps
}

// String prints them all, in milliseconds.
func (g Gaps) String() string {
	if len(g) == 0 {
		return "no gaps"
	}
	var all strings.Builder
	for _, gap := range g {
		fmt.Fprintf(&all, " %.1f", gap.Seconds()*1000)
	}
	return fmt.Sprintf("%d gaps, min %v, median %v, max %v; all in ms:%s", len(g),
		g[0].Round(100*time.Microsecond), g[len(g)/2].Round(100*time.Microsecond), g[len(g)-1].Round(100*time.Microsecond), all.String())
}

// gapSlack is how much less than a delay may be between two starts: what the way
// to the site takes now more, now less.
const gapSlack = 20 * time.Millisecond

// Keep fails the test if two of the starts, which are in order, are closer than
// delay, 20 ms less at the most, and logs all gaps.
func Keep(t testing.TB, what string, starts []Arrival, delay time.Duration) {
	t.Helper()
	gaps := GapsOf(starts)
	t.Logf("%s: %v", what, gaps)
	for i := 1; i < len(starts); i++ {
		if gap := starts[i].At.Sub(starts[i-1].At); gap < delay-gapSlack {
			t.Errorf("%s: %v between %s %s and %s %s, a delay of %v was asked for", what, gap,
				starts[i-1].Method, starts[i-1].Target, starts[i].Method, starts[i].Target, delay)
		}
	}
}
