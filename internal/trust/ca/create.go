package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"heed/internal/base/safetext"
)

const (
	rootYears = 10
	backdate  = time.Hour // clients' clocks lag
	maxName   = 64        // characters of a common name or unit: RFC 5280, upper bounds
)

// pair is the two files of one authority.
type pair struct{ cert, key string }

func currentPair(dir string) pair {
	return pair{cert: filepath.Join(dir, "ca.pem"), key: filepath.Join(dir, "ca-key.pem")}
}

// create makes key and certificate when there is no certificate. Whatever
// number of processes does so at the same time, each file appears whole and once: the
// key first, and the certificate for the key that is there, so that a maker
// who died in between is continued by the next.
func (p pair) create(now time.Time) error {
	if _, err := os.Lstat(p.cert); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return unreadable("certificate of the CA", p.cert, err)
	}
	if _, err := os.Lstat(p.key); errors.Is(err, fs.ErrNotExist) {
		if err := p.createKey(); err != nil {
			return err
		}
	}
	key, err := readKey(p.key)
	if err != nil {
		return err
	}
	der, err := selfSign(key, now)
	if err != nil {
		return fmt.Errorf("the CA certificate cannot be made: %w", err)
	}
	return placeNew(p.cert, pemOf(certificateBlock, der), 0o644)
}

func (p pair) createKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("the CA key cannot be made: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("the CA key cannot be made: %w", err)
	}
	return placeNew(p.key, pemOf("PRIVATE KEY", der), 0o600)
}

// selfSign makes the root certificate for a key.
func selfSign(key crypto.Signer, now time.Time) ([]byte, error) {
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	// The identifier is any value that identifies a key (RFC 7093 §2).
	sum := sha256.Sum256(pub)
	id := sum[:20]
	start := now.Add(-backdate).Truncate(time.Second)
	root := &x509.Certificate{
		Subject:               rootName(id),
		NotBefore:             start,
		NotAfter:              start.AddDate(rootYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		SubjectKeyId:          id,
		AuthorityKeyId:        id,
	}
	return x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
}

// rootName is what a person finds in a browser's list. The key's identifier
// keeps two roots apart that lie in one store, user and host say whose it is.
func rootName(id []byte) pkix.Name {
	whose := "unknown user"
	if u, err := user.Current(); err == nil && u.Username != "" {
		whose = u.Username
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		whose += "@" + host
	}
	return pkix.Name{
		Organization:       []string{"heed local CA"},
		OrganizationalUnit: []string{safetext.Printable(whose, maxName)},
		CommonName:         fmt.Sprintf("heed local CA %x", id[:4]),
	}
}

// isPEMOf reports whether the first PEM block of text is c.
func isPEMOf(text []byte, c *x509.Certificate) bool {
	block, _ := pem.Decode(text)
	return block != nil && bytes.Equal(block.Bytes, c.Raw)
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
