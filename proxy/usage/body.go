package usage

import (
	"context"
	"io"
	"sync"
	"time"

	"heed/internal/judge/signal/page"
)

// Bounds of what is read of a page before it is delivered.
const (
	// maxWait is how long an answer waits for the head of its page.
	maxWait = 5 * time.Second
	// readSize is the length of the buffer at first; a longer one takes its place as long as
	// the head is not known, which the Scanner bounds.
	readSize = 32 << 10

	// maxDrop and dropTime bound what is read of a page that is withheld, so that a short
	// one leaves its connection for the next request.
	maxDrop  = 256 << 10
	dropTime = time.Second
)

// Body is a site's body of which the beginning can be read ahead. Its octets are the same
// in any case. It is for one goroutine at a time.
type Body struct {
	Site io.ReadCloser

	ahead *ahead // nil: nothing that was read ahead is left
}

// ahead is what a goroutine reads ahead.
type ahead struct {
	site io.ReadCloser
	done chan struct{} // closed when the goroutine reads no more

	mu      sync.Mutex
	scanner *page.Scanner // nil: finished
	pooled  *readBuffer   // what buf is in at first; nil: it is given back
	buf     []byte
	off     int   // octets of buf that were taken
	err     error // of the site's body, after buf
}

type readBuffer = [readSize]byte

var readBuffers = sync.Pool{New: func() any { return new(readBuffer) }}

// ReadHead reads b until s knows the head of the page, the body or ctx ends, or maxWait is
// over. It finishes s. whole is false for a body that is a part of the page.
func (b *Body) ReadHead(ctx context.Context, s *page.Scanner, whole bool) page.Head {
	a := &ahead{site: b.Site, done: make(chan struct{}), scanner: s, pooled: readBuffers.Get().(*readBuffer)}
	a.buf = a.pooled[:0]
	b.ahead = a
	go a.read()
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case <-a.done:
	case <-late.C:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scanner = nil
	return s.Finish(whole && a.err == io.EOF)
}

// read reads until the scanner needs no more, or is finished.
func (a *ahead) read() {
	defer close(a.done)
	for {
		if n, err := a.site.Read(a.room()); !a.add(n, err) {
			return
		}
	}
}

// room returns where the next octets go, which no other goroutine looks at before add.
func (a *ahead) room() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.buf) == cap(a.buf) {
		a.buf = append(make([]byte, 0, 2*cap(a.buf)), a.buf...)
	}
	return a.buf[len(a.buf):cap(a.buf)]
}

// add adds what was read into room, and reports whether more is needed.
func (a *ahead) add(n int, err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.buf[len(a.buf) : len(a.buf)+n]
	a.buf, a.err = a.buf[:len(a.buf)+n], err
	if a.scanner == nil {
		return false
	}
	_, _ = a.scanner.Write(next) // it never fails
	return err == nil && !a.scanner.Done()
}

// take moves what was read ahead into p. more is false when nothing can follow it; then err
// is how the body ended, or nil when the site's continues.
func (a *ahead) take(p []byte) (n int, more bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = copy(p, a.buf[a.off:])
	if a.off += n; a.off < len(a.buf) {
		return n, true, nil
	}
	select {
	case <-a.done:
		a.free()
		return n, false, a.err
	default:
		return n, true, nil
	}
}

// free gives the buffer back, once all of it was taken and nothing reads into it.
func (a *ahead) free() {
	a.buf, a.off = nil, 0
	if a.pooled != nil {
		readBuffers.Put(a.pooled)
		a.pooled = nil
	}
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	for b.ahead != nil && len(p) > 0 {
		n, more, err := b.ahead.take(p)
		switch {
		case err != nil:
			return n, err
		case !more:
			b.ahead = nil
		case n == 0:
			<-b.ahead.done
		}
		if n > 0 {
			return n, nil
		}
	}
	return b.Site.Read(p)
}

// Close closes the site's body.
func (b *Body) Close() error { return b.Site.Close() }

// Drop reads the rest of a page that is not delivered, if it is short and comes soon, and
// closes it.
func (b *Body) Drop() {
	late := time.AfterFunc(dropTime, func() { b.Site.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, b, maxDrop) // failing loses the connection, no more
	b.Site.Close()
}
