package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
)

// Clients says how much of a client's address the record keeps.
type Clients uint8

// How clients are kept.
const (
	ClientsFull      Clients = iota // address and port
	ClientsTruncated                // the network: /24, of IPv6 /48
	ClientsHashed                   // a keyed hash, of user names too
)

// ClientsNames are the names of Clients, in their order.
var ClientsNames = []string{"full", "truncated", "hashed"}

// ParseClients returns what ClientsNames has under name.
func ParseClients(name string) (Clients, error) {
	for i, n := range ClientsNames {
		if n == name {
			return Clients(i), nil
		}
	}
	return 0, fmt.Errorf("%q is no way to keep clients; write full, truncated or hashed", name)
}

// PrivacyKeySize is the length of the key of a Privacy, in octets.
const PrivacyKeySize = 32

// Privacy says what the record keeps in place of what it must not. Equal texts
// become equal hashes under one key, so that what belongs together can still be
// found; who has no key cannot try out guesses. Make it with NewPrivacy; nil
// keeps all as it is. It is safe for concurrent use.
type Privacy struct {
	clients Clients
	names   *names
	key     []byte
}

// NewPrivacy returns a Privacy that keeps clients as said and hides the values
// of query parameters whose names fit one of redact (see CheckRedact), with a
// key of PrivacyKeySize octets.
func NewPrivacy(clients Clients, redact []string, key []byte) (*Privacy, error) {
	if len(key) != PrivacyKeySize {
		return nil, fmt.Errorf("a key of %d octets, not %d", len(key), PrivacyKeySize)
	}
	for _, pattern := range redact {
		if err := CheckRedact(pattern); err != nil {
			return nil, err
		}
	}
	return &Privacy{clients: clients, names: newNames(redact), key: append([]byte(nil), key...)}, nil
}

// keeps is how clients are kept.
func (p *Privacy) keeps() Clients {
	if p == nil {
		return ClientsFull
	}
	return p.clients
}

// Client returns what is kept of the client at hostport, and its port; 0 where
// that would tell more than what is kept.
func (p *Privacy) Client(hostport string) (client string, port uint16) {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		if p.keeps() == ClientsFull {
			return hostport, 0
		}
		return p.hash("client", hostport), 0
	}
	addr := at.Addr().Unmap()
	switch p.keeps() {
	case ClientsTruncated:
		bits := 24
		if addr.Is6() {
			bits = 48
		}
		network, _ := addr.WithZone("").Prefix(bits) // every address has so many
		return network.String(), 0
	case ClientsHashed:
		return p.hash("client", addr.WithZone("").String()), 0
	default:
		return addr.String(), at.Port()
	}
}

// User returns what is kept of the name that a client has shown credentials for.
func (p *Privacy) User(name string) string {
	if name == "" || p.keeps() != ClientsHashed {
		return name
	}
	return p.hash("user", name)
}

// hash returns a keyed hash of text: 64 bits, in letters that need no escape
// anywhere. kind keeps hashes of different things apart.
func (p *Privacy) hash(kind, text string) string {
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(kind + "\x00" + text)) // never fails
	return kind + "-" + hex.EncodeToString(mac.Sum(nil)[:8])
}

var errPattern = errors.New(`write letters and digits in lower case, with * for any run of them, such as "token" or "*apikey"`)

// CheckRedact says what is wrong with a pattern for names of query parameters:
// letters and digits in lower case, * for any run of them, and something beside *.
func CheckRedact(pattern string) error {
	real := false
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			real = true
		case c != '*':
			return fmt.Errorf("%q is no pattern for names: %w", pattern, errPattern)
		}
	}
	if !real {
		return fmt.Errorf("%q would fit every name: %w", pattern, errPattern)
	}
	return nil
}
