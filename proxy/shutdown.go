package proxy

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Leave has each client connection over HTTP/1 end with its next answer, so that clients go
// elsewhere before a Shutdown. New connections are accepted still.
func (p *Proxy) Leave() { p.h1.Leave() }

// Shutdown stops accepting, lets running exchanges end, tunnels included, and
// closes what is left when ctx ends; then it returns ctx's error.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.closing.Store(true)
	p.endLasting()
	servers := p.servers()
	ended := make(chan error, len(servers))
	for _, s := range servers { // together: tunnels take no new requests either
		go func() { ended <- s.Shutdown(ctx) }()
	}
	var err error
	for range servers {
		err = errors.Join(err, <-ended)
	}
	if err = errors.Join(err, poll(ctx, p.open.empty)); err != nil {
		p.cut.Store(true)
		for _, s := range servers {
			s.Close()
		}
		p.open.closeAll()
		p.awaitRecords()
		return ctx.Err()
	}
	p.awaitRecords()
	return nil
}

// stopper is a server of HTTP/1 or HTTP/2.
type stopper interface {
	Shutdown(context.Context) error
	Close() error
}

// servers returns the servers of p.
func (p *Proxy) servers() []stopper { return []stopper{&p.h1, p.h2} }

// awaitRecords waits a moment for the exchanges whose connections were closed
// and for those that a verdict was to follow: each still records its end.
func (p *Proxy) awaitRecords() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = poll(ctx, func() bool { return p.running.Load() == 0 })
}

// poll waits until done returns true, or returns ctx's error when that ends first.
func poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// openConns are the connections that no server watches: handshakes and
// WebSockets. The zero value is ready.
type openConns struct {
	mu    sync.Mutex
	conns map[io.Closer]struct{}
}

func (o *openConns) add(c io.Closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = make(map[io.Closer]struct{})
	}
	o.conns[c] = struct{}{}
}

func (o *openConns) remove(c io.Closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
}

// empty reports whether no connection is left.
func (o *openConns) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.conns) == 0
}

// all returns the connections that are open.
func (o *openConns) all() []io.Closer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.conns))
}

func (o *openConns) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		c.Close()
	}
}
