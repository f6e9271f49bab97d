package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/config"
	"heed/internal/judge/redirect"
	"heed/proxy"
)

// listeners are the shared listeners, which clients of all kinds connect to.
type listeners struct {
	none     bool                  // there are none: heed runs in the background
	config   func() *config.Config // in force
	shared   *proxy.Config         // of their proxies
	log      *slog.Logger
	failed   chan<- error   // errors of listeners that must not end before heed
	draining sync.WaitGroup // those that are shutting down

	mu  sync.Mutex
	all []*sharedListener
}

// sharedListener is one shared listener with a separate proxy, so that it can be shut
// down separately.
type sharedListener struct {
	asked listenerSpec
	net.Listener
	proxy     *proxy.Proxy
	questions proxy.Questions // of proxies that ask
}

// listenerSpec is a listener in the settings.
type listenerSpec struct {
	addr string
	mode string // of [[listener]]; empty: for clients that know a proxy
}

// listenerSpecs returns the listeners of cfg.
func listenerSpecs(cfg *config.Config) (all []listenerSpec) {
	for _, addr := range cfg.Listen {
		all = append(all, listenerSpec{addr: addr})
	}
	for _, l := range cfg.Listeners {
		all = append(all, listenerSpec{l.Address, l.Mode})
	}
	return all
}

// openNew opens the listeners of cfg that heed does not listen on yet; none in the background.
// On an error it closes those that it has opened.
func (s *listeners) openNew(cfg *config.Config) (opened []*sharedListener, err error) {
	for _, spec := range listenerSpecs(cfg) {
		if s.none || s.listensOn(spec) {
			continue
		}
		l, err := s.open(spec)
		if err != nil {
			closeAll(opened)
			return nil, err
		}
		opened = append(opened, l)
	}
	return opened, nil
}

func (s *listeners) open(spec listenerSpec) (*sharedListener, error) {
	addr, l, err := spec.addr, net.Listener(nil), error(nil)
	if spec.mode == "" || spec.mode == config.ListenerAuthorize || spec.mode == config.ListenerICAP {
		l, err = net.Listen("tcp", addr)
	} else {
		l, err = redirect.Listen(addr, spec.mode == config.ListenerTProxy)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && s.holdsPort(addr):
		return nil, fmt.Errorf("heed cannot change over to %s, since it listens on that port already\nChoose another port, or restart heed", addr)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program listens on %s\nStop it, or choose another address with --listen or in proxy.toml, such as --listen 127.0.0.1:0 for any free port", addr)
	case err != nil:
		return nil, fmt.Errorf("heed cannot listen on %s: %w\nChoose another address with --listen", addr, err)
	}
	p, err := proxy.New(*s.shared)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &sharedListener{asked: spec, Listener: l, proxy: p}, nil
}

// serve accepts clients on l until its proxy is shut down.
func (s *listeners) serve(l *sharedListener) error {
	balancers := func() []netip.Prefix { return config.Networks(s.asked(l.asked).ProxyProtocol) }
	switch l.asked.mode {
	case "":
		return l.proxy.Serve(l.Listener)
	case config.ListenerAuthorize, config.ListenerICAP:
		asked := proxy.Asked{
			Listener: l.Listener, Balancers: balancers, Questions: &l.questions,
			Trust:     func() []netip.Prefix { return config.Networks(s.asked(l.asked).Trust) },
			Patience:  func() *time.Duration { return s.asked(l.asked).MaxWait },
			UseUnseen: func() bool { return s.asked(l.asked).Purposes == config.PurposesAllow },
			Bumped:    func() bool { return s.asked(l.asked).Connect == config.ConnectBumped },
		}
		if l.asked.mode == config.ListenerICAP {
			return l.proxy.ServeICAP(asked)
		}
		return l.proxy.ServeAuthorize(asked)
	}
	t := proxy.Transparent{Listener: l.Listener, Original: redirect.Original, Balancers: balancers, TunnelOther: func() bool { return s.asked(l.asked).Other == config.OtherTunnel }}
	if l.asked.mode == config.ListenerTProxy {
		t.Original = redirect.Destination
	}
	return l.proxy.ServeTransparent(t)
}

// asked returns the current settings of a [[listener]]; the zero value when it is leaving.
func (s *listeners) asked(spec listenerSpec) config.ListenerConfig {
	all := s.config().Listeners
	if i := slices.IndexFunc(all, func(l config.ListenerConfig) bool { return l.Address == spec.addr }); i >= 0 {
		return all[i]
	}
	return config.ListenerConfig{}
}

// closeAll closes listeners that have accepted no connection.
func closeAll(all []*sharedListener) {
	for _, l := range all {
		l.Close()
	}
}

func (s *listeners) listensOn(spec listenerSpec) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(l *sharedListener) bool { return l.asked == spec })
}

// holdsPort reports whether heed listens on the port of addr.
func (s *listeners) holdsPort(addr string) bool {
	_, port, _ := net.SplitHostPort(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(l *sharedListener) bool {
		_, own, _ := net.SplitHostPort(l.Addr().String())
		return own == port
	})
}

// replace starts serving on the opened listeners, and shuts down those that are
// not in cfg in the background.
func (s *listeners) replace(cfg *config.Config, opened []*sharedListener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, opened...)
	for _, l := range opened {
		go func() {
			if err := s.serve(l); err != nil {
				s.failed <- err
			}
		}()
	}
	left, specs := slices.Clone(s.all), listenerSpecs(cfg)
	s.all = slices.DeleteFunc(s.all, func(l *sharedListener) bool { return !slices.Contains(specs, l.asked) })
	for _, l := range left {
		if !slices.Contains(s.all, l) {
			s.log.Info("heed stopped listening on an address", "listen", l.Addr().String())
			s.draining.Go(func() { s.drain(l) })
		}
	}
}

// recheck ends the open tunnels of clients that the settings do not admit any
// more. Clients of runs are always admitted.
func (s *listeners) recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		l.proxy.Recheck()
	}
}

// drain shuts down a listener; open exchanges have the time drain to end.
func (s *listeners) drain(l *sharedListener) {
	limit := s.config().Drain
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := l.proxy.Shutdown(ctx); err != nil {
		s.log.Warn("open exchanges were cut off", "listen", l.Addr().String(), "after", limit)
	}
}

// drainAll shuts down all listeners and waits for them.
func (s *listeners) drainAll() {
	s.mu.Lock()
	for _, l := range s.all {
		s.draining.Go(func() { s.drain(l) })
	}
	s.mu.Unlock()
	s.draining.Wait()
}

// leave lets each connection end with its next answer.
func (s *listeners) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		l.proxy.Leave()
	}
}

// redirectedTo returns the addresses of the shared listeners for redirected connections, or
// for proxies that ask.
func (s *listeners) redirectedTo(asked bool) (all []string) {
	for _, l := range s.redirected() {
		if asked == (l.Trust != "") {
			all = append(all, l.Address)
		}
	}
	return all
}

// addresses returns the addresses of the shared listeners for clients that know a proxy.
func (s *listeners) addresses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []string{} // in JSON a list, also when it is empty
	for _, l := range s.all {
		if l.asked.mode == "" {
			all = append(all, l.Addr().String())
		}
	}
	return all
}

// redirected returns the addresses of each [[listener]].
func (s *listeners) redirected() (all []counts.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if l.asked.mode != "" {
			q := &l.questions
			all = append(all, counts.Listener{
				Address: l.Addr().String(), Mode: l.asked.mode, Trust: strings.Join(s.asked(l.asked).Trust, ", "),
				Allowed: q.Allowed.Load(), Refused: q.Refused.Load(), Faulty: q.Faulty.Load(),
			})
		}
	}
	return all
}
