package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"hash/fnv"
	"net"
	"slices"
	"sync"
	"time"
)

// Bounds of trusts.
const (
	maxTrusts   = 4096
	trustMemory = 10 * time.Minute
	owedTime    = time.Minute    // how long a client that rejected the CA is owed an explanation
	shunMemory  = 24 * time.Hour // how long its tunnels to that host pass when it is observed only
)

// trusts remembers which clients were seen to accept the CA, and which to
// reject it. Browsers open spare connections and close them unused, which looks
// just like a client that rejects a certificate after the handshake. The zero
// value is ready.
type trusts struct {
	mu   sync.Mutex
	seen map[trust]time.Time // who accepted it
	open map[asker]int       // tunnels that have neither ended nor brought a request
	owed map[asker]time.Time // who rejected it and has not been told why nothing works

	served map[asker]time.Time // who accepted it on that very host, by whatever library
}

// asker is who opens tunnels to a host, as far as a CONNECT tells: the client's
// address without its port, and the User-Agent's hash.
type asker struct {
	client    string
	host      string
	userAgent uint64
}

// trust is who asks which host, or any where that is empty, and what its TLS
// library is like: programs of one machine that say nothing of who they are
// differ in that.
type trust struct {
	asker
	hello uint64
}

// trustOf returns t's trust in the certificate for its host, and in the CA.
func trustOf(t *tunnel) (inHost, inCA trust) {
	inHost = trust{t.asker, t.hello}
	inCA = inHost
	inCA.host = ""
	return inHost, inCA
}

// enter notes that t is open.
func (s *trusts) enter(t *tunnel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[asker]int)
	}
	t.undecided = true
	s.open[t.asker]++
}

// leave notes that t has ended, and reports whether it was the last of its
// client's to the host of which nothing was known yet. A client that opens
// several at once keeps one and drops the others: only what becomes of the last
// tells whether it trusts the CA.
func (s *trusts) leave(t *tunnel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaveLocked(t)
}

func (s *trusts) leaveLocked(t *tunnel) bool {
	if !t.undecided {
		return false
	}
	t.undecided = false
	if s.open[t.asker]--; s.open[t.asker] > 0 {
		return false
	}
	delete(s.open, t.asker)
	return true
}

func askerOf(client, host, userAgent string) asker {
	if address, _, err := net.SplitHostPort(client); err == nil {
		client = address
	}
	h := fnv.New64a()
	h.Write([]byte(userAgent))
	return asker{client, host, h.Sum64()}
}

// saw notes that a request came through t.
func (s *trusts) saw(t *tunnel, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= maxTrusts {
		s.seen = make(map[trust]time.Time) // forgetting costs a remark too many, no more
	}
	inHost, inCA := trustOf(t)
	s.seen[inHost], s.seen[inCA] = now, now
	s.leaveLocked(t)
	if s.served == nil || len(s.served) >= maxTrusts {
		s.served = make(map[asker]time.Time)
	}
	s.served[t.asker] = now
	delete(s.owed, t.asker)
}

// recently reports whether requests came from t's client lately: to t's host, and
// to any. Who trusts the CA trusts what it signs, as a rule.
func (s *trusts) recently(t *tunnel, now time.Time) (sameHost, anyHost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inHost, inCA := trustOf(t)
	lately := func(key trust) bool {
		at, ok := s.seen[key]
		return ok && now.Sub(at) < trustMemory
	}
	return lately(inHost), lately(inCA)
}

// rejected notes that t's client does not accept the CA.
func (s *trusts) rejected(t *tunnel, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owed == nil || len(s.owed) >= maxTrusts {
		s.owed = make(map[asker]time.Time)
	}
	s.owed[t.asker] = now
}

// owes reports, once, whether a client is to be told that it rejected the CA. Where
// a program that a CONNECT does not tell from it accepts it, nobody is: that one
// would be refused in the other's place.
func (s *trusts) owes(a asker, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.owed[a]
	delete(s.owed, a)
	served, other := s.served[a]
	return ok && now.Sub(at) < owedTime && !(other && now.Sub(served) < trustMemory)
}

// rejects reports whether a client rejected the CA and was not seen to accept
// it since.
func (s *trusts) rejects(a asker, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.owed[a]
	return ok && now.Sub(at) < shunMemory
}

// likeness is what tells one TLS library and its settings from another: what
// the hello offers, without its order and without the values that stand there
// to be different each time (GREASE, RFC 8701).
func likeness(hello *tls.ClientHelloInfo) uint64 {
	h := fnv.New64a()
	list := func(values []uint16) {
		values = slices.DeleteFunc(slices.Clone(values), func(v uint16) bool { return v&0x0f0f == 0x0a0a && v>>8 == v&0xff })
		slices.Sort(values)
		_ = binary.Write(h, binary.BigEndian, values) // a hash takes everything
		h.Write([]byte{0, 0})
	}
	list(hello.CipherSuites)
	list(hello.SupportedVersions)
	var curves, schemes []uint16
	for _, c := range hello.SupportedCurves {
		curves = append(curves, uint16(c))
	}
	for _, s := range hello.SignatureSchemes {
		schemes = append(schemes, uint16(s))
	}
	list(curves)
	list(schemes)
	for _, p := range hello.SupportedProtos {
		h.Write([]byte(p + "\x00"))
	}
	return h.Sum64()
}
