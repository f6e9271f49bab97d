package command

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/net/http/httpproxy"

	"heed/cache"
	"heed/internal/audit/replay"
	"heed/internal/ca"
	"heed/internal/fleet"
	"heed/internal/pace"
	"heed/proxy"
	"heed/rules"
)

// Bounds of the ways out that are open at one time.
const (
	maxEgress     = 32 // in use; one more is refused
	maxIdleEgress = 4  // kept for the next run although nobody uses them
)

// way says how sites are reached, beyond what the settings say. The zero value
// is the way of the settings.
type way struct {
	Proxy *upstreamProxy `json:"proxy,omitempty"` // nil: as the settings say
	Roots string         `json:"roots,omitempty"` // PEM certificates to trust beside the others
	// Profile is how the sites' rules are read; empty: as the settings say.
	Profile string `json:"profile,omitempty"`
	// Policies is the record of an earlier run, by whose robots.txt files alone
	// is judged; empty: the sites are asked. The path is absolute.
	Policies string `json:"policies,omitempty"`
}

// upstreamProxy is the proxy behind heed: one for all sites, or by the variables
// of an environment. With every member empty, there is none.
type upstreamProxy struct {
	All     string `json:"all,omitempty"`
	HTTP    string `json:"http,omitempty"`
	HTTPS   string `json:"https,omitempty"`
	NoProxy string `json:"no_proxy,omitempty"` // as in the variable of that name
}

// key identifies the way: equal ways share policies and connections.
func (w way) key() string {
	text, err := json.Marshal(w)
	if err != nil {
		panic("plain strings cannot be marshalled: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// egress is one way to the sites that is open: the policies fetched over it
// and the transport that takes requests to them.
type egress struct {
	key       string
	policies  *cache.Cache
	transport *proxy.Ways
	recorded  *replay.Policies // that are judged by in place of policies; nil: those are
	users     int
}

// close gives back what an egress holds that nobody uses.
func (e *egress) close() {
	e.transport.CloseIdleConnections()
	if e.recorded != nil {
		_ = e.recorded.Close() // nothing was written
	}
}

// egresses are the open ways. It is safe for concurrent use.
type egresses struct {
	cfg   *Config
	proxy *upstreamProxy // of the settings; nil for none
	hosts []hostWay      // of the settings; what differs from the way of all others
	self  *proxy.Addrs   // never to be dialled: heed itself
	// memory holds the policies of all ways, file what is to outlive the process.
	memory *cache.Memory // nil: each way has room of its own
	lanes  *cache.Lanes  // of all ways' fetches; nil: each way has lanes of its own
	file   *cache.File   // nil: nothing outlives the process
	stored *storedCopies // looked into in place of file; nil: nothing is
	fleet  *fleet.Store  // nil: there are no other heeds
	turns  *pace.Turns   // that heed's own fetches are told to; nil: nobody is

	means string // equal for ways that are the same; empty: not compared

	mu      sync.Mutex
	open    []*egress // the most lately used last
	retired bool      // others have taken their place: what nobody uses is closed
}

// newEgresses returns the ways of the settings, none of them open. environ is
// what their references look into.
func newEgresses(cfg *Config, environ []string) (*egresses, error) {
	p, err := upstreamOfConfig(cfg, environ)
	if err != nil {
		return nil, err
	}
	hosts, err := cfg.hostWays(environ)
	if err != nil {
		return nil, err
	}
	return &egresses{cfg: cfg, proxy: p, hosts: hosts, self: &proxy.Addrs{}}, nil
}

var errNoEnvProxy = errors.New("--upstream env: the environment names no proxy\nSet HTTPS_PROXY and HTTP_PROXY, or leave the flag out")

var errEgress = errors.New("too many runs with different upstream proxies or CA files at once\nWait for one of them to end")

// take opens the way w, or joins those who use it. Each take is followed by
// one give.
func (s *egresses) take(w way) (*egress, error) {
	if w.Profile == s.cfg.Profile {
		w.Profile = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := w.key()
	i := slices.IndexFunc(s.open, func(e *egress) bool { return e.key == key })
	if i >= 0 {
		e := s.open[i]
		e.users++
		s.open = append(slices.Delete(s.open, i, i+1), e)
		return e, nil
	}
	if s.usedLocked() >= maxEgress {
		return nil, errEgress
	}
	e, err := s.make(w)
	if err != nil {
		return nil, err
	}
	e.key, e.users = key, 1
	s.open = append(s.open, e)
	return e, nil
}

// give tells that one user of e is done. What nobody uses is kept for the next
// one who goes the same way, up to a bound.
func (s *egresses) give(e *egress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.users--
	s.closeLocked()
}

// retire closes what nobody uses, now and from now on.
func (s *egresses) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = true
	s.closeLocked()
}

func (s *egresses) closeLocked() {
	most := maxIdleEgress
	if s.retired {
		most = 0
	}
	for idle := len(s.open) - s.usedLocked(); idle > most; idle-- {
		i := slices.IndexFunc(s.open, func(e *egress) bool { return e.users == 0 })
		s.open[i].close()
		s.open = slices.Delete(s.open, i, i+1)
	}
}

// all returns the ways that are open.
func (s *egresses) all() []*egress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.open)
}

func (s *egresses) usedLocked() int {
	n := 0
	for _, e := range s.open {
		if e.users > 0 {
			n++
		}
	}
	return n
}

// make opens a way of its own to the sites.
func (s *egresses) make(w way) (*egress, error) {
	transport, err := s.transport(w)
	if err != nil {
		return nil, err
	}
	profile, known := rules.ParseProfile(cmp.Or(w.Profile, s.cfg.Profile))
	if !known {
		return nil, checkProfile(w.Profile)
	}
	config, err := s.policies(w, profile, transport)
	if err != nil {
		return nil, err
	}
	e := &egress{transport: transport}
	if w.Policies != "" {
		if e.recorded, err = replay.OpenPolicies(w.Policies, profile); err != nil {
			return nil, fmt.Errorf("--policies: %w", err)
		}
	}
	e.policies = cache.New(config)
	return e, nil
}

// transport returns what requests go out by.
func (s *egresses) transport(w way) (*proxy.Ways, error) {
	roots, err := upstreamRoots(s.cfg, w.Roots)
	if err != nil {
		return nil, err
	}
	p := w.Proxy
	if p == nil {
		p = s.proxy
	}
	through, err := p.choice()
	if err != nil {
		return nil, err
	}
	destinations, err := s.cfg.destinations()
	if err != nil {
		return nil, err
	}
	hosts, err := s.hostWays(w)
	if err != nil {
		return nil, err
	}
	return proxy.NewWays(proxy.TransportConfig{
		Destinations:          destinations,
		ConnsPerHost:          s.cfg.Limits.SiteConnections,
		Proxy:                 through,
		Resolve:               s.cfg.Upstream.Resolve,
		RootCAs:               roots,
		ResponseHeaderTimeout: s.cfg.Upstream.ResponseHeaderTimeout,
		Self:                  s.self,
	}, hosts...), nil
}

// policies says how the policies of sites are had by transport, and kept.
func (s *egresses) policies(w way, profile rules.Profile, transport *proxy.Ways) (cache.Config, error) {
	id, err := s.identity(w)
	if err != nil {
		return cache.Config{}, err
	}
	config := cache.Config{
		Profile:   profile,
		Transport: transport, PerFetch: transport.GuardRedirects(),
		UserAgent: cache.DefaultUserAgent(s.cfg.Contact),
		Memory:    s.memory, Lanes: s.lanes, Way: id + " " + profile.String(),
	}
	if s.turns != nil {
		guarded := config.PerFetch
		config.PerFetch = func() http.RoundTripper { return fetchTells{guarded(), s.turns, s.cfg.Pacing.RetryAfter == "observe"} }
	}
	switch {
	case s.file != nil:
		config.Keeper = s.file.Way(id)
	case s.stored != nil:
		config.Keeper = s.stored.way(id)
	}
	if s.fleet != nil && w == (way{}) {
		if config.Shared, err = s.shared(); err != nil {
			return cache.Config{}, err
		}
	}
	return config, nil
}

// hostWays returns the ways of single hosts, for those who go w.
func (s *egresses) hostWays(w way) ([]proxy.HostWay, error) {
	out := make([]proxy.HostWay, len(s.hosts))
	for i, h := range s.hosts {
		out[i] = h.way
		if h.caFile == "" {
			continue
		}
		var err error
		if out[i].RootCAs, err = upstreamRoots(s.cfg, w.Roots, h.caFile); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// choice returns which proxy a request takes; nil when none ever does. What an
// environment says is read as its variables are, with their exceptions.
func (p *upstreamProxy) choice() (func(*http.Request) (*url.URL, error), error) {
	if p == nil {
		return nil, nil
	}
	if p.All != "" {
		u, err := url.Parse(p.All)
		if err != nil {
			return nil, fmt.Errorf("the upstream proxy %q is not a URL", redactURL(p.All))
		}
		return http.ProxyURL(u), nil
	}
	choose := (&httpproxy.Config{HTTPProxy: p.HTTP, HTTPSProxy: p.HTTPS, NoProxy: p.NoProxy}).ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }, nil
}

// upstreamRoots returns the authorities that sites' certificates are verified
// against: the system's, those of upstream.ca_file, those in extra and those of
// the files.
func upstreamRoots(cfg *Config, extra string, files ...string) (*x509.CertPool, error) {
	if cfg.Upstream.CAFile != "" {
		files = append(files, cfg.Upstream.CAFile)
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

// upstreamOfConfig is the proxy that upstream.proxy names; nil for none.
func upstreamOfConfig(cfg *Config, environ []string) (*upstreamProxy, error) {
	switch cfg.Upstream.Proxy {
	case "":
		return nil, nil
	case "env":
		return upstreamOfEnviron(environ), nil
	}
	all, err := revealedUpstream(cfg.Upstream.Proxy, environ)
	if err != nil {
		return nil, fmt.Errorf("upstream.proxy: %w", err)
	}
	return &upstreamProxy{All: all}, nil
}

// upstreamOfEnviron is the proxy that an environment names, in the variables
// that curl and Go read; nil when it names none.
func upstreamOfEnviron(environ []string) *upstreamProxy {
	get := func(names ...string) string {
		for _, name := range names {
			if value, _ := lookup(environ, name); value != "" {
				return value
			}
		}
		return ""
	}
	p := &upstreamProxy{
		HTTP:    get("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"),
		HTTPS:   get("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
		NoProxy: get("no_proxy", "NO_PROXY"),
	}
	if p.HTTP == "" && p.HTTPS == "" {
		return nil
	}
	return p
}
