package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"heed/proxy"
)

// listening is one shared listener, with a proxy of its own, so that it can end
// by itself.
type listening struct {
	asked string // the address as the settings have it
	net.Listener
	proxy *proxy.Proxy
}

// openNew opens the addresses that heed does not listen on yet. When one cannot
// be opened, none is.
func (d *daemon) openNew(addresses Addresses) (opened []*listening, err error) {
	for _, addr := range addresses {
		if d.listensOn(addr) {
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

func (d *daemon) open(addr string) (*listening, error) {
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
	return &listening{addr, l, p}, nil
}

// closeAll closes listeners that nothing was accepted on.
func closeAll(all []*listening) {
	for _, l := range all {
		l.Close()
	}
}

func (d *daemon) listensOn(addr string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.fronts, func(l *listening) bool { return l.asked == addr })
}

// holdsPort reports whether heed itself has the port of addr.
func (d *daemon) holdsPort(addr string) bool {
	_, port, _ := net.SplitHostPort(addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.fronts, func(l *listening) bool {
		_, own, _ := net.SplitHostPort(l.Addr().String())
		return own == port
	})
}

// change accepts clients on the new listeners, takes none any more on those that
// are not among addresses, and lets what is open there end.
func (d *daemon) change(addresses Addresses, opened []*listening) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fronts = append(d.fronts, opened...)
	for _, l := range opened {
		go d.accept(l)
	}
	left := slices.Clone(d.fronts)
	d.fronts = slices.DeleteFunc(d.fronts, func(l *listening) bool { return !slices.Contains(addresses, l.asked) })
	for _, l := range left {
		if !slices.Contains(d.fronts, l) {
			d.log.Info("heed does not listen there any more", "listen", l.Addr().String())
			d.leaving.Go(func() { d.end(l) })
		}
	}
}

// accept serves on l until it is shut down.
func (d *daemon) accept(l *listening) {
	if err := l.proxy.Serve(l.Listener); err != nil {
		d.failed <- err
	}
}

// end lets what is open on a listener end, within the time that a stop has.
func (d *daemon) end(l *listening) {
	limit := d.current().cfg.Drain
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := l.proxy.Shutdown(ctx); err != nil {
		d.log.Warn("open exchanges were cut off", "listen", l.Addr().String(), "after", limit)
	}
}

// leaveAll lets what is open on all listeners end, and waits for that.
func (d *daemon) leaveAll() {
	d.mu.Lock()
	for _, l := range d.fronts {
		d.leaving.Go(func() { d.end(l) })
	}
	d.mu.Unlock()
	d.leaving.Wait()
}

// addresses are where the shared listeners are.
func (d *daemon) addresses() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Clone(d.listens)
	for _, l := range d.fronts {
		all = append(all, l.Addr().String())
	}
	return all
}

// mayAccept reports whether a client that connects to addr may reach the
// listener at: one for all addresses of the machine accepts them on each, and of
// port 0 nothing is known before it is open.
func mayAccept(at, addr string) bool {
	host, port, err := net.SplitHostPort(at)
	to, bad := netip.ParseAddrPort(addr)
	if err != nil || bad != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	everywhere := err == nil && a.IsUnspecified()
	sameHost := everywhere || err == nil && a.Unmap() == to.Addr().Unmap() || host == "localhost" && to.Addr().IsLoopback()
	return sameHost && (port == "0" || port == fmt.Sprint(to.Port()))
}
