// Package passport signs requests of robots and verifies such signatures: Web Bot Auth
// (draft-ietf-webbotauth-httpsig-protocol-01), a profile of HTTP message signatures (RFC
// 9421) with Ed25519 keys (RFC 8037).
//
// key.go has keys and their files, sign.go signs a request, directory.go publishes keys,
// card.go describes a robot (draft-meunier-webbotauth-registry-04), and verify.go does what a
// site does that verifies, for signatures as heed makes them. Nothing here opens a file or a connection.
package passport

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// PublicKey is a key that signatures are verified with.
type PublicKey struct {
	Public     ed25519.PublicKey
	Thumbprint string    // of its JWK with SHA-256, in base64url (RFC 7638, RFC 8037 §A.3)
	NotBefore  time.Time // zero: it has no beginning
	NotAfter   time.Time // zero: it has no end
}

// Key is a key that requests are signed with.
type Key struct {
	PublicKey
	private ed25519.PrivateKey
}

// MaxKeyFile is the greatest size of a file with a key, in octets.
const MaxKeyFile = 16 << 10

// testThumbprint is that of the key in RFC 9421 §B.1.4, which anyone can sign with.
const testThumbprint = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

// Published reports whether the private part of k is published in a document as an example.
func (k *PublicKey) Published() bool { return k.Thumbprint == testThumbprint }

// jwk is a key as JSON (RFC 7517, RFC 8037 §2). Dates are NumericDates (RFC 7519 §2).
type jwk struct {
	Type      string   `json:"kty"`
	Curve     string   `json:"crv"`
	ID        string   `json:"kid,omitempty"`
	X         string   `json:"x"`
	D         string   `json:"d,omitempty"`
	Use       string   `json:"use,omitempty"`
	NotBefore *float64 `json:"nbf,omitempty"`
	NotAfter  *float64 `json:"exp,omitempty"`
}

// NewKey returns a new key. A zero end means that it has none.
func NewKey(end time.Time) (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	k := keyOf(private)
	k.NotAfter = end.Truncate(time.Second)
	return k, nil
}

func keyOf(private ed25519.PrivateKey) *Key {
	return &Key{publicKeyOf(private.Public().(ed25519.PublicKey)), private}
}

func publicKeyOf(public ed25519.PublicKey) PublicKey {
	canonical := `{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`
	sum := sha256.Sum256([]byte(canonical))
	return PublicKey{Public: public, Thumbprint: base64.RawURLEncoding.EncodeToString(sum[:])}
}

// Errors of ParseKey.
var (
	errNoKey      = errors.New("it contains no key: neither a JWK (JSON) nor a private key in PEM form")
	errNotSeveral = errors.New("it contains several keys, or text after the key; write one key into it")
	errKind       = errors.New("the key is not an Ed25519 key (kty OKP, crv Ed25519)")
	errPublic     = errors.New("it contains only the public key (there is no d); the private key signs")
	errPair       = errors.New("the public and the private part of the key do not belong together")
	errDates      = errors.New("nbf and exp are not seconds since 1970, or the key ends before it begins")
)

// ParseKey reads a private key: a JWK, or PKCS #8 in PEM form as openssl writes it. Its
// errors contain nothing of the key.
func ParseKey(data []byte) (*Key, error) {
	if data = bytes.TrimSpace(data); bytes.HasPrefix(data, []byte("-----BEGIN ")) {
		return parsePEM(data)
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, errNoKey
	}
	var j jwk
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&j); err != nil {
		return nil, errNoKey
	}
	if decoder.More() {
		return nil, errNotSeveral
	}
	public, err := j.public()
	if err != nil {
		return nil, err
	}
	seed, err := octets(j.D, ed25519.SeedSize)
	switch {
	case j.D == "":
		return nil, errPublic
	case err != nil:
		return nil, errKind
	}
	k := keyOf(ed25519.NewKeyFromSeed(seed))
	if k.Thumbprint != public.Thumbprint {
		return nil, errPair
	}
	k.PublicKey = *public
	return k, nil
}

func parsePEM(data []byte) (*Key, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errNoKey
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errNotSeveral
	case block.Type == "PUBLIC KEY":
		return nil, errPublic
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errKind
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errKind
	}
	return keyOf(private), nil
}

// public returns the public part of j.
func (j *jwk) public() (*PublicKey, error) {
	if j.Type != "OKP" || j.Curve != "Ed25519" {
		return nil, errKind
	}
	x, err := octets(j.X, ed25519.PublicKeySize)
	if err != nil {
		return nil, errKind
	}
	k := publicKeyOf(x)
	for _, d := range []struct {
		from *float64
		to   *time.Time
	}{{j.NotBefore, &k.NotBefore}, {j.NotAfter, &k.NotAfter}} {
		const most = 253_402_300_799 // the end of the year 9999
		switch {
		case d.from == nil:
		case !(*d.from >= 0 && *d.from <= most):
			return nil, errDates
		default:
			*d.to = time.Unix(int64(*d.from), 0).UTC()
		}
	}
	if !k.NotAfter.IsZero() && !k.NotBefore.Before(k.NotAfter) {
		return nil, errDates
	}
	return &k, nil
}

// octets decodes n octets in base64url.
func octets(text string, n int) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err == nil && len(b) != n {
		err = fmt.Errorf("%d octets in place of %d", len(b), n)
	}
	return b, err
}

// jwk returns the public key as it is published.
func (k *PublicKey) jwk() *jwk {
	date := func(t time.Time) *float64 {
		if t.IsZero() {
			return nil
		}
		return new(float64(t.Unix()))
	}
	return &jwk{
		Type: "OKP", Curve: "Ed25519", ID: k.Thumbprint, X: base64.RawURLEncoding.EncodeToString(k.Public), Use: "sig",
		NotBefore: date(k.NotBefore), NotAfter: date(k.NotAfter),
	}
}

// File returns the content of the file of k: its private JWK on one line.
func (k *Key) File() []byte {
	j := k.jwk()
	j.D = base64.RawURLEncoding.EncodeToString(k.private.Seed())
	return mustJSON(j, "")
}

// JWK returns the public key as JSON, on one line.
func (k *PublicKey) JWK() []byte { return mustJSON(k.jwk(), "") }

// mustJSON returns v as JSON with a line end.
func mustJSON(v any, indent string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		panic("a value of plain fields cannot be written as JSON: " + err.Error())
	}
	return b.Bytes()
}

// Valid reports whether k may be used at a time.
func (k *PublicKey) Valid(now time.Time) bool {
	return !now.Before(k.NotBefore) && (k.NotAfter.IsZero() || now.Before(k.NotAfter))
}
