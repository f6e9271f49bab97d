package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"heed/internal/base/ownfile"
)

const (
	certificateBlock = "CERTIFICATE"
	maxFile          = 16 << 20 // of PEM; the system's roots come to a quarter of a megabyte
	minRSABits       = 2048     // clients refuse less
)

// readPair reads and checks a certificate chain and the key of its first.
func readPair(p pair) ([]*x509.Certificate, crypto.Signer, error) {
	key, err := readKey(p.key)
	if err != nil {
		return nil, nil, err
	}
	chain, err := readChain(p.cert)
	if err != nil {
		return nil, nil, err
	}
	if !matches(key, chain[0]) {
		return nil, nil, fmt.Errorf("the key %s does not belong to the certificate %s: put the two files of the same CA in place", p.key, p.cert)
	}
	if err := checkChain(chain); err != nil {
		return nil, nil, fmt.Errorf("the certificate %s cannot be used: %w", p.cert, err)
	}
	return chain, key, nil
}

// readKey reads a private key that only its owner can read.
func readKey(path string) (crypto.Signer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable("key of the CA", path, err)
	}
	if err := ownfile.Check(ownfile.Key, "the key of the CA", path, info); err != nil {
		return nil, err
	}
	data, err := readFile(path)
	if err != nil {
		return nil, unreadable("key of the CA", path, err)
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		key, err := parseKey(block)
		if err != nil {
			return nil, fmt.Errorf("the key of the CA %s cannot be used: %w", path, err)
		}
		return key, nil
	}
	return nil, fmt.Errorf("no private key in %s: a PEM file with one is needed", path)
}

func parseKey(block *pem.Block) (crypto.Signer, error) {
	if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
		return nil, errors.New("it is locked with a passphrase: write it without one (`openssl pkey -in KEY -out NEWKEY`), mode 0600")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("it is damaged or of an unknown kind (%v): restore it from a backup", err)
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("its RSA key of %d bits is too short for clients: use at least %d bits, or ECDSA P-256", key.N.BitLen(), minRSABits)
		}
		return key, nil
	case *ecdsa.PrivateKey:
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	}
	return nil, fmt.Errorf("a %T cannot sign certificates: use RSA, ECDSA or Ed25519", key)
}

// readChain returns the certificates of a PEM file, at least one.
func readChain(path string) ([]*x509.Certificate, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, unreadable("certificate of the CA", path, err)
	}
	var chain []*x509.Certificate
	for _, der := range certificates(data) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in %s is damaged (%v): restore the file from a backup", len(chain)+1, path, err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("no certificate in %s: a PEM file with one is needed", path)
	}
	return chain, nil
}

// certificates returns the DER of every certificate in a PEM text.
func certificates(text []byte) [][]byte {
	var out [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certificateBlock {
			out = append(out, block.Bytes)
		}
	}
	return out
}

// matches reports whether key is the private half of the certificate's key.
func matches(key crypto.Signer, c *x509.Certificate) bool {
	pub, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && pub.Equal(c.PublicKey)
}

func readFile(path string) ([]byte, error) {
	file, err := ownfile.ReadRegular(path, maxFile)
	if err != nil {
		return nil, err
	}
	return file.Data, nil
}

// unreadable says in a sentence why a file cannot be read and what helps.
func unreadable(what, path string, err error) error {
	cause := reason(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the %s %s is missing: restore it from a backup, or name another (%w)", what, path, cause)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the %s %s cannot be read by this user: run as its owner, or make it yours (%w)", what, path, cause)
	}
	return fmt.Errorf("the %s %s cannot be read: %w", what, path, cause)
}

func selfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(c) == nil
}

// checkChain says why no client would accept an end certificate under this
// chain, whatever the time: RFC 5280 §6.1 as far as it does not depend on the
// end certificate's name.
func checkChain(chain []*x509.Certificate) error {
	below := 0 // intermediates between certificate i and the leaf that count for its path length
	for i, c := range chain {
		if err := checkIssuer(c); err != nil {
			return fmt.Errorf("%q %w", name(c), err)
		}
		if limitsPath(c) && below > c.MaxPathLen {
			return fmt.Errorf("%q allows %d authorities below it and there are %d: get an intermediate whose issuers allow it", name(c), c.MaxPathLen, below)
		}
		if i+1 < len(chain) {
			if err := c.CheckSignatureFrom(chain[i+1]); err != nil {
				return fmt.Errorf("%q is not signed by %q which follows it (%v): put the signing certificate first, then each issuer", name(c), name(chain[i+1]), err)
			}
		}
		if !bytes.Equal(c.RawSubject, c.RawIssuer) {
			below++
		}
	}
	return nil
}

func limitsPath(c *x509.Certificate) bool { return c.MaxPathLen > 0 || c.MaxPathLenZero }

// checkIssuer says why a certificate may not sign certificates for servers.
func checkIssuer(c *x509.Certificate) error {
	if !c.BasicConstraintsValid || !c.IsCA {
		return errors.New("is not a CA certificate: use one with basic constraints CA:TRUE")
	}
	if c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
		return errors.New("may not sign certificates: use one with the key usage keyCertSign")
	}
	usages := c.ExtKeyUsage
	if len(usages)+len(c.UnknownExtKeyUsage) > 0 &&
		!slices.Contains(usages, x509.ExtKeyUsageServerAuth) && !slices.Contains(usages, x509.ExtKeyUsageAny) {
		return errors.New("may not sign certificates for servers: use one with the extended key usage serverAuth, or without any")
	}
	if len(c.UnhandledCriticalExtensions) > 0 {
		return fmt.Errorf("has a critical extension clients do not know (%v): use one without", c.UnhandledCriticalExtensions[0])
	}
	if excludesAll(c) {
		return errors.New("has name constraints that exclude every name: use one that may sign for the sites your clients visit")
	}
	return nil
}

// excludesAll reports whether the name constraints leave no name a site could
// have: the empty DNS name matches all (RFC 5280 §4.2.1.10). A constraint
// on some names is met leaf by leaf.
func excludesAll(c *x509.Certificate) bool { return slices.Contains(c.ExcludedDNSDomains, "") }

func hasNameConstraints(c *x509.Certificate) bool {
	return len(c.PermittedDNSDomains)+len(c.ExcludedDNSDomains)+len(c.PermittedIPRanges)+len(c.ExcludedIPRanges) > 0
}
