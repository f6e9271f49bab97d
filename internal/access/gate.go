package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"
)

// How a Gate keeps its cost bounded.
const (
	memory     = 5 * time.Minute // a verified credential is remembered so long
	maxKnown   = 4096            // credentials remembered
	checks     = 2               // bcrypt checks at once
	maxFailed  = 10              // failures of an address within failedFor, before it has to wait
	failedFor  = time.Minute
	maxAddress = 4096 // addresses of which failures are counted
)

// Gate verifies the credentials of one htpasswd file. It is safe for concurrent
// use; a changed file is another Gate, which remembers nothing.
type Gate struct {
	users users
	now   func() time.Time
	key   [32]byte // of the hashes below: what is remembered is worth nothing elsewhere
	slots chan struct{}

	mu     sync.Mutex
	known  map[[32]byte]time.Time // until when
	failed map[netip.Prefix]failures
}

// failures of one address, or one IPv6 /64, within a window that began at since.
type failures struct {
	since time.Time
	count int
}

// Open returns the gate for the users of an htpasswd file. now is the clock.
func Open(path string, now func() time.Time) (*Gate, error) {
	u, err := readUsers(path)
	if err != nil {
		return nil, err
	}
	g := &Gate{users: u, now: now, slots: make(chan struct{}, checks), known: map[[32]byte]time.Time{}, failed: map[netip.Prefix]failures{}}
	_, err = rand.Read(g.key[:])
	return g, err
}

// Verify reports whether the password is the user's. An address that failed too
// often is not asked for now: then wait says how long. A context that ends while
// others are being checked gives false.
func (g *Gate) Verify(ctx context.Context, from netip.Addr, user, password string) (right bool, wait time.Duration) {
	id := g.id(user, password)
	if g.knows(id) {
		return true, 0
	}
	if wait := g.wait(from); wait > 0 {
		return false, wait
	}
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return false, 0
	}
	defer func() { <-g.slots }()
	if g.knows(id) { // another request with the same ones was checked meanwhile
		return true, 0
	}
	if wait := g.wait(from); wait > 0 { // or others of this address failed
		return false, wait
	}
	if !g.users.verify(user, password) {
		g.fail(from)
		return false, 0
	}
	g.remember(id)
	return true, 0
}

// wait tells how long an address that failed too often is not asked for; not
// above 0 when it is.
func (g *Gate) wait(from netip.Addr) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.failed[guesser(from)]
	if f.count < maxFailed {
		return 0
	}
	return failedFor - g.now().Sub(f.since)
}

func (g *Gate) id(user, password string) (id [32]byte) {
	mac := hmac.New(sha256.New, g.key[:])
	name := sha256.Sum256([]byte(user)) // of one length, so that no two pairs are one text
	mac.Write(name[:])
	mac.Write([]byte(password))
	mac.Sum(id[:0])
	return id
}

func (g *Gate) knows(id [32]byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, ok := g.known[id]
	return ok && g.now().Before(until)
}

func (g *Gate) remember(id [32]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxKnown {
		clear(g.known) // starting over is cheaper than keeping an order
	}
	g.known[id] = g.now().Add(memory)
}

// fail counts one failure of an address. When too many addresses fail at once,
// the counting starts over: bcrypt and its slots still bound how fast anyone guesses.
func (g *Gate) fail(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	who := guesser(from)
	f, now := g.failed[who], g.now()
	if now.Sub(f.since) >= failedFor {
		f = failures{since: now}
	}
	if len(g.failed) >= maxAddress {
		clear(g.failed)
	}
	f.count++
	g.failed[who] = f
}

// guesser is whom failures count for. Whoever has an IPv6 address has the other
// ones of its /64 as well.
func guesser(a netip.Addr) netip.Prefix {
	a = a.WithZone("").Unmap()
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // no address: the zero prefix, one guesser too
	return p
}
