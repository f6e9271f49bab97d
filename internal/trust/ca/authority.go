// Package ca is the local certificate authority: the root that clients trust,
// the certificates made for the sites they visit, and the places a root has to
// be put for a client to trust it.
//
// A root made here is an ECDSA P-256 key in a file only its owner can read. It
// may sign end certificates but no further authorities. Leaves get keys of
// their own from crypto/rand and carry exactly one name, so that a client never
// reuses a connection to one site for another (RFC 9113 §9.1.1).
//
// Outside packages: software.sslmate.com/src/go-pkcs12, for the trust store
// Java reads.
package ca

import (
	"cmp"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"heed/internal/base/memo"
)

// Authority signs certificates for sites. It is made by Open or Load and safe
// for concurrent use. It keeps the key and certificates it was opened with: a
// root renewed on disk signs after the next Open.
type Authority struct {
	chain    []*x509.Certificate // the signing certificate, then its issuers
	key      crypto.Signer
	certPath string
	dir      string // where Open found it; empty after Load
	now      func() time.Time

	send        [][]byte                            // what follows the leaf in a handshake
	constrained bool                                // the chain has a name constraint
	leaves      memo.Kept[string, *tls.Certificate] // by host
	making      singleflight.Group
}

// Open returns the authority kept in dir, as ca.pem and ca-key.pem (0600), and
// makes directory (0700), key and certificate when there are none. Any number
// of processes may open an empty dir at the same time: they end up with the same
// authority. now is the clock for validity.
//
// An authority that others could have read or replaced, that is not valid now
// or that is no authority is an error which says what to do.
func Open(dir string, now func() time.Time) (*Authority, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the directory of the CA cannot be named: %w", err)
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	if err := currentPair(dir).create(now()); err != nil {
		return nil, err
	}
	chain, key, err := openCurrent(dir)
	if err != nil {
		return nil, err
	}
	a := newAuthority(chain, key, currentPair(dir).cert, now)
	a.dir = dir
	if err := a.checkValid("run `heed ca renew` to make a new one"); err != nil {
		return nil, err
	}
	return a, nil
}

// Load returns the authority in existing files: a root or an intermediate with
// its key, PEM, the key as PKCS #8, PKCS #1 or SEC 1 without a passphrase,
// RSA, ECDSA or Ed25519. Further certificates in certFile are the issuers of
// the first, in order; intermediates go out with every leaf, a root does not.
// The same file may hold both. now is the clock for validity.
//
// It makes the checks Open makes, and refuses a chain under which no client
// would accept an end certificate.
func Load(certFile, keyFile string, now func() time.Time) (*Authority, error) {
	certFile, err := filepath.Abs(certFile)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the CA cannot be named: %w", err)
	}
	chain, key, err := readPair(pair{cert: certFile, key: keyFile})
	if err != nil {
		return nil, err
	}
	a := newAuthority(chain, key, certFile, now)
	if err := a.checkValid("put a valid one in its place"); err != nil {
		return nil, err
	}
	return a, nil
}

// Published returns the authority of a running heed for what clients have to trust, without its
// key, so that root need not be its owner: certFile is its certificate, and dir the state directory.
// Leaf must not be called.
func Published(certFile, dir string, now func() time.Time) (*Authority, error) {
	chain, err := readChain(certFile)
	if err != nil {
		return nil, err
	}
	a := newAuthority(chain, nil, certFile, now)
	if certFile == currentPair(dir).cert {
		a.dir = dir
	}
	return a, nil
}

func newAuthority(chain []*x509.Certificate, key crypto.Signer, certPath string, now func() time.Time) *Authority {
	a := &Authority{chain: chain, key: key, certPath: certPath, now: now}
	for _, c := range chain {
		if !selfSigned(c) {
			a.send = append(a.send, c.Raw)
		}
		a.constrained = a.constrained || hasNameConstraints(c)
	}
	return a
}

// checkValid says which certificate of the chain is not valid now; cure is
// what the person can do about it.
func (a *Authority) checkValid(cure string) error {
	now := a.now()
	for _, c := range a.chain {
		if now.After(c.NotAfter) {
			return fmt.Errorf("the CA %q in %s expired on %s: %s", name(c), a.certPath, day(c.NotAfter), cure)
		}
		if now.Before(c.NotBefore) {
			return fmt.Errorf("the CA %q in %s is not valid before %s and the clock says %s: set the clock, or %s",
				name(c), a.certPath, c.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), cure)
		}
	}
	return nil
}

// CertPath returns the absolute path of the file with the signing certificate.
func (a *Authority) CertPath() string { return a.certPath }

// CertPEM returns what a client has to trust, as PEM: the signing certificate
// with its issuers, then the roots that Renew prepared or replaced and that
// are still valid, as they lie in the directory at this moment.
func (a *Authority) CertPEM() []byte {
	var out []byte
	for _, r := range a.Roots() {
		out = append(out, pemOf(certificateBlock, r.Cert.Raw)...)
	}
	return out
}

// NotAfter returns when leaves of this authority end to be accepted: the
// earliest end of validity in its chain.
func (a *Authority) NotAfter() time.Time {
	end := a.chain[0].NotAfter
	for _, c := range a.chain[1:] {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}

// NotBefore returns from when on leaves of this authority are accepted: the latest beginning in
// its chain.
func (a *Authority) NotBefore() time.Time {
	begin := a.chain[0].NotBefore
	for _, c := range a.chain {
		if c.NotBefore.After(begin) {
			begin = c.NotBefore
		}
	}
	return begin
}

// DaysLeft returns the whole days from now until NotAfter, 0 on the last day
// and afterwards.
func (a *Authority) DaysLeft(now time.Time) int {
	return max(0, int(a.NotAfter().Sub(now)/(24*time.Hour)))
}

// Fingerprint returns the SHA-256 of a certificate as browsers and openssl
// show it: upper-case pairs with colons.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

// short is the beginning of the fingerprint, for file names and aliases.
func short(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return fmt.Sprintf("%x", sum[:6])
}

// name is what a person knows the certificate by.
func name(c *x509.Certificate) string {
	return cmp.Or(c.Subject.CommonName, c.Subject.String())
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
