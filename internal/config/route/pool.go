// Package route holds the routes to sites: upstream proxies, certificate authorities and
// a pool of transports, each with the policies that were fetched over it.
package route

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"golang.org/x/net/http/httpproxy"

	"heed/cache"
	"heed/cache/policyfile"
	"heed/internal/audit/replay"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal/fetch"
	"heed/internal/output/console"
	"heed/internal/pace"
	"heed/internal/pace/fleet"
	"heed/internal/trust/ca"
	"heed/proxy/upstream"
	"heed/rules"
)

// maxRoutes bounds the routes that a pool keeps open: one more takes the place of the one that was
// requested least recently. Who uses that one goes on with it, and until then it is found again.
const maxRoutes = 16

// Route is an open route to sites: a transport, and the policies fetched over it.
type Route struct {
	Key       string
	Proxy     *control.UpstreamProxy // nil: none
	Policies  *cache.Cache
	Documents *fetch.Documents // about the use of pages
	Transport *upstream.HostTransports
	Recorded  *replay.Policies // used in place of Policies; nil: not used
	Shared    *fleet.Policies  // shared by the fleet; nil: not shared
}

// Options holds what all routes of a pool have in common.
type Options struct {
	Self        *acl.Addrs                    // addresses of heed itself, never dialled; nil: none
	Memory      *cache.Memory                 // nil: each route has separate memory
	FetchLimits *cache.FetchLimits            // nil: each route has separate limits
	File        *policyfile.File              // stores policies across restarts; nil: none
	Stored      string                        // path of a file that is read in place of File; empty: none
	Fleet       *fleet.Store                  // nil: no fleet
	Turns       *pace.Scheduler               // counts fetches of robots.txt; nil: none
	ProxyUsed   func(proxy string, err error) // as in upstream.TransportConfig; may be nil
	Connections *upstream.Counts              // counts connections to sites; nil: none
	IdleConns   int                           // as in upstream.TransportConfig
	Fetches     *upstream.OwnFetches          // marks fetches through the proxy of the settings, which may ask heed; nil: none

	Purged  func(rules.Origin) (had bool)            // forgets what was read of the pages of a site; may be nil
	Redact  func(url string) string                  // as in cache.Config; may be nil
	Fetched func(outcome string, took time.Duration) // as in cache.Config; may be nil
}

// Pool holds the open routes of one configuration. It is safe for concurrent use.
type Pool struct {
	Options
	cfg     *config.Config
	proxy   *control.UpstreamProxy // of the settings; nil for none
	hosts   []config.HostRoute     // routes of [[host]] entries
	signing signing                // of heed's own requests
	version string                 // equal for pools with the same routes; empty: not compared

	pacing atomic.Pointer[pace.Settings] // of heed's own visits; see Pace

	mu   sync.Mutex
	open []*Route // least recently requested first

	known map[string]weak.Pointer[Route] // by Key: those of open, and those out of it that are in use
}

// NewPool returns a pool for the settings without open routes. environ resolves their
// env: references.
func NewPool(cfg *config.Config, environ []string, o Options) (*Pool, error) {
	proxy, err := configuredProxy(cfg, environ)
	if err != nil {
		return nil, err
	}
	hosts, err := cfg.HostRoutes(environ)
	if err != nil {
		return nil, err
	}
	signing := signing{site: cfg.SiteSigning()}
	if signing.own, err = cfg.RobotsSigner(); err != nil {
		return nil, err
	}
	if o.Self == nil {
		o.Self = &acl.Addrs{}
	}
	p := &Pool{Options: o, cfg: cfg, proxy: proxy, hosts: hosts, signing: signing, known: map[string]weak.Pointer[Route]{}}
	p.pacing.Store(&cfg.Pacing.Settings)
	return p, nil
}

// Open opens the route of the settings, without a pool to share it.
func Open(cfg *config.Config, environ []string, o Options) (*Route, error) {
	pool, err := NewPool(cfg, environ, o)
	if err != nil {
		return nil, err
	}
	return pool.Route(control.RouteSpec{})
}

// Renew returns a pool for the settings: current when its routes are the same, else a new
// one. current may be nil.
func Renew(current *Pool, cfg *config.Config, environ []string, o Options) (*Pool, error) {
	next, err := NewPool(cfg, environ, o)
	if err != nil {
		return nil, err
	}
	id, err := next.identity(control.RouteSpec{})
	if err != nil {
		return nil, err
	}
	if next.version = id + cfg.RoutesKey(); current != nil && current.version == next.version {
		return current, nil
	}
	return next, nil
}

// Pace makes heed's own visits keep these settings from now on: those of a reload can leave the
// routes as they are, and are in effect only when all of it has succeeded.
func (p *Pool) Pace(s *pace.Settings) { p.pacing.Store(s) }

// Route returns the route that spec describes, which it opens unless it is open.
func (p *Pool) Route(spec control.RouteSpec) (*Route, error) {
	if spec.Profile == p.cfg.Profile {
		spec.Profile = ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := spec.Key()
	r := p.known[key].Value()
	if r == nil {
		var err error
		if r, err = p.newRoute(spec); err != nil {
			return nil, err
		}
		r.Key = key
		maps.DeleteFunc(p.known, func(_ string, w weak.Pointer[Route]) bool { return w.Value() == nil })
		p.known[key] = weak.Make(r)
	}
	p.open = append(slices.DeleteFunc(p.open, func(o *Route) bool { return o == r }), r)
	if len(p.open) > maxRoutes {
		p.open[0].Transport.CloseIdleConnections()
		p.open = slices.Delete(p.open, 0, 1)
	}
	return r, nil
}

// Refresh drops what earlier settings may have caused: the cached failures to reach sites
// and the idle connections. It returns how many failures were dropped.
func (p *Pool) Refresh() (dropped int) {
	for _, r := range p.All() {
		r.Transport.CloseIdleConnections()
		dropped += r.Policies.DropFailures(context.Background())
	}
	return dropped
}

// All returns the open routes, and those that are in use.
func (p *Pool) All() (all []*Route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(p.known)) {
		if r := p.known[key].Value(); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// newRoute opens the route that spec describes.
func (p *Pool) newRoute(spec control.RouteSpec) (*Route, error) {
	r := &Route{Proxy: cmp.Or(spec.Proxy, p.proxy)}
	var err error
	if r.Transport, err = p.transport(r.Proxy, spec.Roots, spec.Sealed); err != nil {
		return nil, err
	}
	profile, known := rules.ParseProfile(cmp.Or(spec.Profile, p.cfg.Profile))
	if !known {
		return nil, config.CheckProfile(spec.Profile)
	}
	if p.Fleet != nil && spec == (control.RouteSpec{Sealed: spec.Sealed}) {
		if r.Shared, err = p.shared(); err != nil {
			return nil, err
		}
	}
	id, err := p.identity(spec)
	if err != nil {
		return nil, err
	}
	if spec.Policies != "" {
		if r.Recorded, err = replay.OpenPolicies(spec.Policies, profile); err != nil {
			return nil, fmt.Errorf("--policies: %w", err)
		}
	}
	r.Policies = cache.New(p.cacheConfig(r, profile, id))
	r.Documents = &fetch.Documents{Site: r.Policies}
	return r, nil
}

// transport returns a transport through proxy, which trusts the certificates in roots
// beside the others. For a sealed run no loopback address is reached.
func (p *Pool) transport(proxy *control.UpstreamProxy, roots string, sealed bool) (*upstream.HostTransports, error) {
	trusted, err := upstreamRoots(p.cfg, roots)
	if err != nil {
		return nil, err
	}
	through, err := proxyFunc(proxy)
	if err != nil {
		return nil, err
	}
	destinations := p.cfg.Destinations()
	destinations.NoLoopback = sealed
	hosts := make([]upstream.HostRoute, len(p.hosts))
	for i, h := range p.hosts {
		if hosts[i] = h.Route; h.CAFile == "" {
			continue
		}
		if hosts[i].RootCAs, err = upstreamRoots(p.cfg, roots, h.CAFile); err != nil {
			return nil, err
		}
	}
	fetches := p.Fetches
	if !p.cfg.IsAsked() {
		fetches = nil
	}
	return upstream.NewHostTransports(upstream.TransportConfig{
		Fetches:               fetches,
		Destinations:          destinations,
		ConnsPerHost:          p.cfg.Limits.SiteConnections,
		IdleConns:             p.IdleConns,
		Proxy:                 through,
		Resolve:               p.cfg.Upstream.Resolve,
		RootCAs:               trusted,
		ResponseHeaderTimeout: p.cfg.Upstream.ResponseHeaderTimeout,
		Self:                  p.Self,
		ProxyUsed:             p.ProxyUsed,
		Counts:                p.Connections,
	}, hosts...), nil
}

// ErrNoEnvProxy is the error of --upstream env in an environment that names no proxy.
var ErrNoEnvProxy = errors.New("--upstream env: the environment names no proxy\nSet HTTPS_PROXY and HTTP_PROXY, or leave the flag out")

// proxyFunc returns a function that returns the proxy of a request; nil when there is no
// proxy. The values of an environment apply with NO_PROXY, as in package httpproxy.
func proxyFunc(p *control.UpstreamProxy) (func(*http.Request) (*url.URL, error), error) {
	if p == nil {
		return nil, nil
	}
	if p.All != "" {
		u, err := url.Parse(p.All)
		if err != nil {
			return nil, fmt.Errorf("the upstream proxy %q is not a URL", config.RedactURL(p.All))
		}
		return http.ProxyURL(u), nil
	}
	choose := (&httpproxy.Config{HTTPProxy: p.HTTP, HTTPSProxy: p.HTTPS, NoProxy: p.NoProxy}).ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }, nil
}

// upstreamRoots returns the authorities that sites' certificates are verified
// against: the system's, those of upstream.ca_file, those in extra and those of
// the files. nil means the system's alone, which take 4 MB and 10 ms to read: they are read
// when the first certificate is verified.
func upstreamRoots(cfg *config.Config, extra string, files ...string) (*x509.CertPool, error) {
	if cfg.Upstream.CAFile != "" {
		files = append(files, cfg.Upstream.CAFile)
	}
	if extra == "" && len(files) == 0 {
		return nil, ca.CheckSystem()
	}
	pool, err := ca.SystemPool(files...)
	if err != nil {
		return nil, err
	}
	if extra != "" && !pool.AppendCertsFromPEM([]byte(extra)) {
		return nil, errors.New("the CA files of the run's environment hold no certificate")
	}
	return pool, nil
}

// configuredProxy returns the proxy of upstream.proxy; nil when there is none.
func configuredProxy(cfg *config.Config, environ []string) (*control.UpstreamProxy, error) {
	switch cfg.Upstream.Proxy {
	case "":
		return nil, nil
	case "env":
		return ProxyOfEnviron(environ), nil
	}
	all, err := config.ResolveUpstream(cfg.Upstream.Proxy, environ)
	if err != nil {
		return nil, fmt.Errorf("upstream.proxy: %w", err)
	}
	return &control.UpstreamProxy{All: all}, nil
}

// ProxyOfEnviron returns the proxy of the variables that curl and Go read; nil when none
// is set.
func ProxyOfEnviron(environ []string) *control.UpstreamProxy {
	get := func(names ...string) string {
		for _, name := range names {
			if value, _ := console.Lookup(environ, name); value != "" {
				return value
			}
		}
		return ""
	}
	p := &control.UpstreamProxy{
		HTTP:    get("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"),
		HTTPS:   get("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
		NoProxy: get("no_proxy", "NO_PROXY"),
	}
	if p.HTTP == "" && p.HTTPS == "" {
		return nil
	}
	return p
}

// OpenCA opens the CA in the files cert and key, or, when cert is empty, the one of
// the state directory, which is created on first use.
func OpenCA(cert, key, state string, now func() time.Time) (*ca.Authority, error) {
	if cert != "" {
		return ca.Load(cert, key, now)
	}
	return ca.Open(state, now)
}
