package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Clients is how much of a client's address the record keeps.
type Clients uint8

// How clients are kept.
const (
	ClientsFull      Clients = iota // address and port
	ClientsTruncated                // the network: /24, of IPv6 /48
	ClientsHashed                   // a keyed hash, of user names too
)

// ClientsNames are the names of Clients, in their order.
var ClientsNames = []string{"full", "truncated", "hashed"}

// ParseClients returns the Clients with a name of ClientsNames.
func ParseClients(name string) (Clients, error) {
	i := slices.Index(ClientsNames, name)
	if i < 0 {
		return 0, fmt.Errorf("%q is no way to keep clients; write full, truncated or hashed", name)
	}
	return Clients(i), nil
}

// PrivacyKeySize is the length of the key of a Privacy, in bytes.
const PrivacyKeySize = 32

// Privacy replaces personal data and secrets before they are recorded. Equal
// texts have equal hashes under one key, so that related decisions can be found;
// without the key, guesses cannot be verified. Make it with NewPrivacy; nil
// keeps everything. It is safe for concurrent use.
type Privacy struct {
	clients Clients
	names   *namePatterns
	key     []byte
}

// NewPrivacy returns a Privacy that hides the values of query parameters whose
// names match a pattern of redact (see CheckRedact), with a key of PrivacyKeySize
// bytes.
func NewPrivacy(clients Clients, redact []string, key []byte) (*Privacy, error) {
	if len(key) != PrivacyKeySize {
		return nil, fmt.Errorf("a key of %d octets, not %d", len(key), PrivacyKeySize)
	}
	for _, pattern := range redact {
		if err := CheckRedact(pattern); err != nil {
			return nil, err
		}
	}
	return &Privacy{clients: clients, names: newNamePatterns(redact), key: append([]byte(nil), key...)}, nil
}

// clientMode returns p.clients; ClientsFull for nil.
func (p *Privacy) clientMode() Clients {
	if p == nil {
		return ClientsFull
	}
	return p.clients
}

// Client returns the recorded form of the client at hostport, and its port; 0
// unless full addresses are kept.
func (p *Privacy) Client(hostport string) (client string, port uint16) {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		if p.clientMode() == ClientsFull {
			return hostport, 0
		}
		return p.hash("client", hostport), 0
	}
	addr := at.Addr().Unmap()
	switch p.clientMode() {
	case ClientsTruncated:
		bits := 24
		if addr.Is6() {
			bits = 48
		}
		network, _ := addr.WithZone("").Prefix(bits) // never fails: addresses are longer
		return network.String(), 0
	case ClientsHashed:
		return p.hash("client", addr.WithZone("").String()), 0
	default:
		return addr.String(), at.Port()
	}
}

// User returns the recorded form of an authenticated user name.
func (p *Privacy) User(name string) string {
	if name == "" || p.clientMode() != ClientsHashed {
		return name
	}
	return p.hash("user", name)
}

// hash returns a keyed hash of text, 64 bits in hexadecimal digits after kind,
// which separates the hashes of different kinds of texts.
func (p *Privacy) hash(kind, text string) string {
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(kind + "\x00" + text)) // never fails
	return kind + "-" + hex.EncodeToString(mac.Sum(nil)[:8])
}

var errPattern = errors.New(`write letters and digits in lower case, with * for any run of them or ^ for whole names, such as "token", "*apikey" or "^code"`)

// CheckRedact returns an error unless pattern is valid for names of query
// parameters: lower-case letters and digits, at least one, and * for any run of them; or a
// ^ and letters and digits, for the whole name only.
func CheckRedact(pattern string) error {
	names := pattern
	if name, isWhole := strings.CutPrefix(pattern, "^"); isWhole && !strings.Contains(name, "*") {
		names = name
	}
	switch {
	case strings.Trim(names, "abcdefghijklmnopqrstuvwxyz0123456789*") != "":
		return fmt.Errorf("%q is no pattern for names: %w", pattern, errPattern)
	case strings.Trim(names, "*") == "":
		return fmt.Errorf("%q would fit every name: %w", names, errPattern)
	}
	return nil
}

// Command returns the recorded form of a command line: values of names that
// match the patterns of NewPrivacy are replaced in options (--name=value, --name
// value), in fields (name: value), in variables (NAME=value) and in URLs. A
// secret under any other name is kept.
func (p *Privacy) Command(args []string) []string {
	kept := make([]string, len(args))
	hide := false // the argument is the value of the one before it
	for i, arg := range args {
		if hide && !strings.HasPrefix(arg, "-") {
			kept[i], hide = p.hash("redacted", arg), false
			continue
		}
		kept[i], hide = p.argument(arg)
	}
	return kept
}

// argument returns the recorded form of an argument, and whether it is an option
// whose value is the next argument and has to be hidden.
func (p *Privacy) argument(arg string) (kept string, valueFollows bool) {
	if p == nil {
		return arg, false
	}
	end := strings.IndexAny(arg, "=:")
	option := strings.HasPrefix(arg, "-")
	switch {
	case end < 0:
		return arg, option && p.names.matches(arg)
	case end+1 < len(arg) && !strings.ContainsAny(arg[:end], "/?&") && p.names.matches(arg[:end]):
		value := strings.TrimLeft(arg[end+1:], " ")
		if value == "" {
			return arg, false
		}
		return strings.TrimSuffix(arg, value) + p.hash("redacted", value), false
	}
	kept, _ = p.Redact(arg)
	return kept, false
}
