package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"heed/internal/config"
	"heed/internal/redirect"
	"heed/proxy"
)

// sharedListener is one shared listener with a separate proxy, so that it can be shut
// down separately.
type sharedListener struct {
	asked listenerSpec
	net.Listener
	proxy *proxy.Proxy
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
func (d *daemon) openNew(cfg *config.Config) (opened []*sharedListener, err error) {
	for _, spec := range listenerSpecs(cfg) {
		if d.background || d.listensOn(spec) {
			continue
		}
		l, err := d.open(spec)
		if err != nil {
			closeAll(opened)
			return nil, err
		}
		opened = append(opened, l)
	}
	return opened, nil
}

func (d *daemon) open(spec listenerSpec) (*sharedListener, error) {
	addr, l, err := spec.addr, net.Listener(nil), error(nil)
	if spec.mode == "" || spec.mode == config.ListenerAuthorize {
		l, err = net.Listen("tcp", addr)
	} else {
		l, err = redirect.Listen(addr, spec.mode == config.ListenerTProxy)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && d.holdsPort(addr):
		return nil, fmt.Errorf("heed cannot change over to %s, since it listens on that port already\nChoose another port, or restart heed", addr)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program listens on %s\nStop it, or choose another address with --listen or in proxy.toml, such as --listen 127.0.0.1:0 for any free port", addr)
	case err != nil:
		return nil, fmt.Errorf("heed cannot listen on %s: %w\nChoose another address with --listen", addr, err)
	}
	p, err := proxy.New(d.shared)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &sharedListener{spec, l, p}, nil
}

// serveOn accepts clients on l until its proxy is shut down.
func (d *daemon) serveOn(l *sharedListener) error {
	balancers := func() []netip.Prefix { return config.Networks(d.asked(l.asked).ProxyProtocol) }
	switch l.asked.mode {
	case "":
		return l.proxy.Serve(l.Listener)
	case config.ListenerAuthorize:
		return l.proxy.ServeAuthorize(proxy.Asked{
			Listener: l.Listener, Balancers: balancers,
			Trust:     func() []netip.Prefix { return config.Networks(d.asked(l.asked).Trust) },
			Patience:  func() *time.Duration { return d.asked(l.asked).MaxWait },
			UseUnseen: func() bool { return d.asked(l.asked).Purposes == config.PurposesAllow },
		})
	}
	t := proxy.Transparent{Listener: l.Listener, Original: redirect.Original, Balancers: balancers, TunnelOther: func() bool { return d.asked(l.asked).Other == config.OtherTunnel }}
	if l.asked.mode == config.ListenerTProxy {
		t.Original = redirect.Destination
	}
	return l.proxy.ServeTransparent(t)
}

// asked returns the current settings of a [[listener]]; the zero value when it is leaving.
func (d *daemon) asked(spec listenerSpec) config.ListenerConfig {
	all := d.current.Load().cfg.Listeners
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

func (d *daemon) listensOn(spec listenerSpec) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.listeners, func(l *sharedListener) bool { return l.asked == spec })
}

// holdsPort reports whether heed listens on the port of addr.
func (d *daemon) holdsPort(addr string) bool {
	_, port, _ := net.SplitHostPort(addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.listeners, func(l *sharedListener) bool {
		_, own, _ := net.SplitHostPort(l.Addr().String())
		return own == port
	})
}

// replaceListeners starts serving on the opened listeners, and shuts down those that are
// not in cfg in the background.
func (d *daemon) replaceListeners(cfg *config.Config, opened []*sharedListener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = append(d.listeners, opened...)
	for _, l := range opened {
		go func() {
			if err := d.serveOn(l); err != nil {
				d.failed <- err
			}
		}()
	}
	left, specs := slices.Clone(d.listeners), listenerSpecs(cfg)
	d.listeners = slices.DeleteFunc(d.listeners, func(l *sharedListener) bool { return !slices.Contains(specs, l.asked) })
	for _, l := range left {
		if !slices.Contains(d.listeners, l) {
			d.log.Info("heed stopped listening on an address", "listen", l.Addr().String())
			d.draining.Go(func() { d.drainListener(l) })
		}
	}
}

// recheckClients ends the open tunnels of clients that the settings do not admit any
// more. Clients of runs are always admitted.
func (d *daemon) recheckClients() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.listeners {
		l.proxy.Recheck()
	}
}

// drainListener shuts down a listener; open exchanges have the time drain to end.
func (d *daemon) drainListener(l *sharedListener) {
	limit := d.current.Load().cfg.Drain
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := l.proxy.Shutdown(ctx); err != nil {
		d.log.Warn("open exchanges were cut off", "listen", l.Addr().String(), "after", limit)
	}
}

// drainListeners shuts down all listeners and waits for them.
func (d *daemon) drainListeners() {
	d.mu.Lock()
	for _, l := range d.listeners {
		d.draining.Go(func() { d.drainListener(l) })
	}
	d.mu.Unlock()
	d.draining.Wait()
}
