package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"heed/internal/config"
	"heed/proxy"
)

// sharedListener is one shared listener with a separate proxy, so that it can be shut
// down separately.
type sharedListener struct {
	asked string // the address in the settings
	net.Listener
	proxy *proxy.Proxy
}

// openNew opens the addresses that heed does not listen on yet; none in the background.
// On an error it closes those that it has opened.
func (d *daemon) openNew(addresses config.Addresses) (opened []*sharedListener, err error) {
	for _, addr := range addresses {
		if d.background || d.listensOn(addr) {
			continue
		}
		l, err := d.open(addr)
		if err != nil {
			closeAll(opened)
			return nil, err
		}
		opened = append(opened, l)
	}
	return opened, nil
}

func (d *daemon) open(addr string) (*sharedListener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && d.holdsPort(addr):
		return nil, fmt.Errorf("heed cannot change over to %s, since it listens on that port already\nChoose another port, or restart heed", addr)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program listens on %s\nStop it, or choose another address with --listen, such as --listen 127.0.0.1:0 for any free port", addr)
	case err != nil:
		return nil, fmt.Errorf("heed cannot listen on %s: %w\nChoose another address with --listen", addr, err)
	}
	p, err := proxy.New(d.shared)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &sharedListener{addr, l, p}, nil
}

// closeAll closes listeners that have accepted no connection.
func closeAll(all []*sharedListener) {
	for _, l := range all {
		l.Close()
	}
}

func (d *daemon) listensOn(addr string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.listeners, func(l *sharedListener) bool { return l.asked == addr })
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
// not among addresses in the background.
func (d *daemon) replaceListeners(addresses config.Addresses, opened []*sharedListener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = append(d.listeners, opened...)
	for _, l := range opened {
		go func() {
			if err := l.proxy.Serve(l.Listener); err != nil {
				d.failed <- err
			}
		}()
	}
	left := slices.Clone(d.listeners)
	d.listeners = slices.DeleteFunc(d.listeners, func(l *sharedListener) bool { return !slices.Contains(addresses, l.asked) })
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
