package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// noon is the clock of the tests that do not run other programs.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// newDir makes a directory as Open makes it.
func newDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	must.OK(t, os.Mkdir(dir, 0o700))
	return dir
}

// open opens a fresh authority at the given time.
func open(t testing.TB, now time.Time) *Authority {
	t.Helper()
	return must.Get(Open(newDir(t), at(now)))(t)
}

// leaf makes and parses a leaf.
func leaf(t testing.TB, a *Authority, host string) (*tls.Certificate, *x509.Certificate) {
	t.Helper()
	cert := must.Get(a.Leaf(host))(t)
	parsed := must.Get(x509.ParseCertificate(cert.Certificate[0]))(t)
	return cert, parsed
}

// pool makes a pool of the authority's roots.
func pool(t testing.TB, a *Authority) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	must.Need(t, p.AppendCertsFromPEM(a.CertPEM()), "no certificate in CertPEM")
	return p
}

// issued is a certificate of the tests' own making.
type issued struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// issue signs a CA certificate with the parent's key, or its own when parent
// is nil; change adjusts the template.
func issue(t testing.TB, name string, parent *issued, key crypto.Signer, change func(*x509.Certificate)) *issued {
	t.Helper()
	if key == nil {
		k := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		key = k
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: noon.AddDate(-1, 0, 0), NotAfter: noon.AddDate(5, 0, 0),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true,
	}
	if change != nil {
		change(template)
	}
	signer, by := key, template
	if parent != nil {
		signer, by = parent.key, parent.cert
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, by, key.Public(), signer))(t)
	cert := must.Get(x509.ParseCertificate(der))(t)
	return &issued{cert, key}
}

// write writes the chain and the key of its first as files and returns them.
func write(t testing.TB, keyBlock []byte, chain ...*issued) (certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	var certs []byte
	for _, c := range chain {
		certs = append(certs, pemOf(certificateBlock, c.cert.Raw)...)
	}
	if keyBlock == nil {
		der := must.Get(x509.MarshalPKCS8PrivateKey(chain[0].key))(t)
		keyBlock = pemOf("PRIVATE KEY", der)
	}
	put(t, certFile, certs, 0o644)
	put(t, keyFile, keyBlock, 0o600)
	return certFile, keyFile
}

func put(t testing.TB, path string, data []byte, mode os.FileMode) {
	t.Helper()
	must.OK(t, os.WriteFile(path, data, mode))
	must.OK(t, os.Chmod(path, mode))
}

// fails checks that an error is one line that holds every part.
func fails(t *testing.T, err error, parts ...string) {
	t.Helper()
	must.Need(t, err != nil, "no error, want one with %q", parts)
	must.Lack(t, err.Error(), "\n", "not one line: %v", err)
	for _, part := range parts {
		must.Contain(t, err.Error(), part, "error %q does not say %q", err, part)
	}
}

// run runs a program and returns what it printed.
func run(t *testing.T, wantOK bool, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	must.Need(t, (err == nil) == wantOK, "%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	return string(out)
}

// writeBundle writes what Bundle returns to path.
func writeBundle(path string, a *Authority) error {
	data, err := Bundle(a, nil)
	if err != nil {
		return err
	}
	return WriteFile(path, data, 0o644)
}
