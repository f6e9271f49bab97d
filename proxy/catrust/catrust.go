// Package catrust remembers which clients accept heed's CA and which reject it, as
// far as their tunnels show.
package catrust

import (
	"crypto/tls"
	"encoding/binary"
	"hash/fnv"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"heed/internal/base/memo"
)

// Bounds of Memory.
const (
	maxRemembered   = 4096             // of each kind
	acceptedTime    = 10 * time.Minute // how long an acceptance counts
	explanationTime = time.Minute      // how long after a second rejection it is explained
	rejectedTime    = 24 * time.Hour   // how long a rejection counts
)

// Memory remembers which clients were seen to accept the CA, and which to reject
// it. Browsers open spare connections and close them unused, which looks like a
// client that rejects a certificate after the handshake. The zero value is ready; it
// is safe for concurrent use.
type Memory struct {
	accepted memo.Kept[library, struct{}] // for acceptedTime; forgetting costs one explanation too many
	served   memo.Kept[Client, struct{}]  // accepted on that very host, by any library; likewise

	mu       sync.Mutex
	rejected map[Client]rejection
	open     map[Client]int // tunnels that have neither ended nor brought a request
}

// rejection is the last time that a client rejected the CA.
type rejection struct {
	at    time.Time
	again bool // in a tunnel that it opened after it had rejected the CA already
}

// Client is a client that opens tunnels to a host, as far as a CONNECT identifies
// it: by its address without the port, and the hash of its User-Agent.
type Client struct {
	address   string
	host      string // empty: any
	userAgent uint64
}

// library is a Client and the Fingerprint of its TLS library, in which programs of
// one machine differ that send the same User-Agent.
type library struct {
	Client
	hello uint64
}

// Attempt is one tunnel in which a client is shown a certificate. Its methods are
// those of Memory.
type Attempt struct {
	Client Client
	Hello  uint64 // the Fingerprint of the client's hello; 0 until there is one

	// Guarded by the Memory; see Opened.
	undecided bool
	again     bool // the client had just rejected the CA when it opened the tunnel
}

// ClientOf returns the client at address, a host:port, that opens a tunnel to host.
func ClientOf(address, host, userAgent string) Client {
	if ip, _, err := net.SplitHostPort(address); err == nil {
		address = ip
	}
	h := fnv.New64a()
	h.Write([]byte(userAgent))
	return Client{address, strings.Clone(host), h.Sum64()} // host may be part of a whole request
}

// Opened notes that the tunnel of a is open.
func (m *Memory) Opened(a *Attempt, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open == nil {
		m.open = make(map[Client]int)
	}
	a.undecided, a.again = true, m.rejectedLocked(a.Client, now, explanationTime)
	m.open[a.Client]++
}

// Closed notes that the tunnel of a has ended, and reports whether it was the last
// one of its client to the host that showed nothing yet. A client that opens several
// at the same time keeps one and drops the others: only the last one shows whether
// the client trusts the CA. It reports false when it is called again.
func (m *Memory) Closed(a *Attempt) (last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closedLocked(a)
}

func (m *Memory) closedLocked(a *Attempt) bool {
	if !a.undecided {
		return false
	}
	a.undecided = false
	if m.open[a.Client]--; m.open[a.Client] > 0 {
		return false
	}
	delete(m.open, a.Client)
	return true
}

// Accepted notes that a request came through the tunnel of a.
func (m *Memory) Accepted(a *Attempt, now time.Time) {
	until := now.Add(acceptedTime)
	for _, l := range [...]library{a.onHost(), a.onAnyHost()} {
		m.accepted.Put(l, struct{}{}, until, 0, maxRemembered, 0)
	}
	m.served.Put(a.Client, struct{}{}, until, 0, maxRemembered, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closedLocked(a)
	delete(m.rejected, a.Client)
}

func (a *Attempt) onHost() library { return library{a.Client, a.Hello} }

func (a *Attempt) onAnyHost() library {
	l := a.onHost()
	l.host = ""
	return l
}

// Recently reports whether requests came from the client of a in the last ten
// minutes: to its host, and to any. A client that trusts the CA trusts what it
// signs, as a rule.
func (m *Memory) Recently(a *Attempt, now time.Time) (sameHost, anyHost bool) {
	_, sameHost = m.accepted.Get(a.onHost(), now)
	_, anyHost = m.accepted.Get(a.onAnyHost(), now)
	return sameHost, anyHost
}

// Rejected notes that the client of a does not accept the CA.
func (m *Memory) Rejected(a *Attempt, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rejected == nil {
		m.rejected = make(map[Client]rejection)
	}
	last, known := m.rejected[a.Client]
	if !known {
		memo.MakeRoom(m.rejected, maxRemembered, func(a, b rejection) bool { return a.at.Before(b.at) })
	}
	m.rejected[a.Client] = rejection{now, a.again || last.again && now.Sub(last.at) < explanationTime}
}

// Explains reports whether a tunnel of c is refused with an explanation: c rejected the
// CA, opened another tunnel and rejected it again, within the last minute. The second
// tunnel is not refused: a browser that ignores the errors of certificates ends its
// first handshake, and accepts the same certificate in the next. Neither is one beside
// which another tunnel of c is in its handshake.
//
// Where another program that a CONNECT cannot distinguish from c accepts the CA,
// Explains reports false: that program would be refused instead.
func (m *Memory) Explains(c Client, now time.Time) bool {
	_, other := m.served.Get(c, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rejected[c].again && m.rejectedLocked(c, now, explanationTime) && m.open[c] == 0 && !other
}

// Rejects reports whether c rejected the CA within the last day and was not seen to
// accept it since.
func (m *Memory) Rejects(c Client, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rejectedLocked(c, now, rejectedTime)
}

// rejectedLocked reports whether c rejected the CA less than within before now.
func (m *Memory) rejectedLocked(c Client, now time.Time, within time.Duration) bool {
	r, ok := m.rejected[c]
	return ok && now.Sub(r.at) < within
}

// Fingerprint returns what distinguishes one TLS library and its settings from
// another: what the hello offers, without its order and without the values that
// are meant to differ each time (GREASE, RFC 8701).
func Fingerprint(hello *tls.ClientHelloInfo) uint64 {
	h := fnv.New64a()
	hashIDs(h, hello.CipherSuites)
	hashIDs(h, hello.SupportedVersions)
	hashIDs(h, hello.SupportedCurves)
	hashIDs(h, hello.SignatureSchemes)
	for _, p := range hello.SupportedProtos {
		h.Write([]byte(p + "\x00"))
	}
	return h.Sum64()
}

// hashIDs adds values to h, whatever their order.
func hashIDs[T ~uint16](h io.Writer, values []T) {
	values = slices.DeleteFunc(slices.Clone(values), func(v T) bool { return v&0x0f0f == 0x0a0a && v>>8 == v&0xff })
	slices.Sort(values)
	_ = binary.Write(h, binary.BigEndian, values) // a hash takes everything
	_, _ = h.Write([]byte{0, 0})
}
