package proxy

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Leave closes each HTTP/1 connection of a client after its next answer, so that clients connect
// to another proxy before this one calls Shutdown. New connections are still accepted.
func (p *Proxy) Leave() { p.h1.Leave() }

// Shutdown stops accepting, lets running exchanges end, tunnels included, and
// closes what is left when ctx ends; then it returns ctx's error.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.closing.Store(true)
	p.endLasting()
	p.listeners.closeAll()
	ended := make(chan error, 1)
	go func() { ended <- p.h2.Shutdown(ctx) }() // together: tunnels take no new requests either
	err := errors.Join(poll(ctx, p.h1.Stop), <-ended, poll(ctx, func() bool { return len(p.open.all()) == 0 }))
	if err != nil {
		p.cut.Store(true)
		p.h1.Close()
		p.h2.Close()
		p.open.closeAll()
		err = ctx.Err()
	}
	p.awaitRecords()
	return err
}

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

// closers are what is open and has to be closed at the end. The zero value is ready.
type closers struct{ open sync.Map } // by io.Closer

func (o *closers) add(c io.Closer) { o.open.Store(c, nil) }

func (o *closers) remove(c io.Closer) { o.open.Delete(c) }

// all returns those that are open.
func (o *closers) all() (all []io.Closer) {
	for c := range o.open.Range {
		all = append(all, c.(io.Closer))
	}
	return all
}

func (o *closers) closeAll() {
	for _, c := range o.all() {
		c.Close()
	}
}
