package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is the authority behind a site's certificate: what the world's authorities
// are to a real site. It has nothing to do with heed's own CA.
type CA struct {
	// File holds the certificate as PEM, for `[upstream] ca_file` and for a
	// client that fetches directly.
	File string

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

// NewCA makes an authority whose files live as long as the test.
func NewCA(t testing.TB) *CA {
	t.Helper()
	return newCA(t, certTemplate("testkit site CA"))
}

// ExpiredCA writes ca.pem and ca-key.pem into dir, which it makes: an
// authority that ended an hour ago, for what heed says of such a CA of its own.
func ExpiredCA(t testing.TB, dir string) {
	t.Helper()
	template := certTemplate("testkit expired CA")
	template.NotAfter = time.Now().Add(-time.Hour)
	ca := newCA(t, template)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "ca.pem"), "CERTIFICATE", ca.cert.Raw)
	if err := os.WriteFile(filepath.Join(dir, "ca-key.pem"), []byte(ca.keyPEM(t)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keyPEM returns the key of ca.
func (ca *CA) keyPEM(t testing.TB) string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(ca.key)
	if err != nil {
		t.Fatalf("encoding a CA key: %v", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

func newCA(t testing.TB, template *x509.Certificate) *CA {
	t.Helper()
	key := newKey(t)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatalf("making the site CA: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("reading the site CA back: %v", err)
	}
	dir := t.TempDir()
	ca := &CA{File: filepath.Join(dir, "site-ca.pem"), cert: cert, key: key, dir: dir}
	writePEM(t, ca.File, "CERTIFICATE", der)
	return ca
}

// Pool holds this authority alone.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Leaf writes a certificate for one name or address and its key as PEM and
// returns both paths.
func (ca *CA) Leaf(t testing.TB, host string) (certFile, keyFile string) {
	t.Helper()
	return ca.leaf(t, host, certTemplate(host))
}

// ExpiredLeaf is a Leaf that ended an hour ago, for tests of a site that heed
// must not trust.
func (ca *CA) ExpiredLeaf(t testing.TB, host string) (certFile, keyFile string) {
	t.Helper()
	template := certTemplate(host)
	template.NotAfter = time.Now().Add(-time.Hour)
	return ca.leaf(t, host, template)
}

func (ca *CA) leaf(t testing.TB, host string, template *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		t.Fatalf("making a certificate for %s: %v", host, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("encoding the key for %s: %v", host, err)
	}
	certFile = filepath.Join(ca.dir, "leaf-"+template.SerialNumber.String()+".pem")
	keyFile = certFile + ".key"
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "PRIVATE KEY", keyDER)
	return certFile, keyFile
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	return key
}

// certTemplate is valid from two hours ago, so that an expired certificate can
// be made from it, to two hours from now.
func certTemplate(name string) *x509.Certificate {
	var serial [8]byte
	rand.Read(serial[:]) // never fails (crypto/rand)
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-2 * time.Hour),
		NotAfter:     time.Now().Add(2 * time.Hour),
	}
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatalf("writing %s: %v", path, err)
	}
}
