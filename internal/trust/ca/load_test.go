package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// keys makes one key of each kind an authority may have.
func keys(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	r := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	e := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	_, d := must.Two(ed25519.GenerateKey(rand.Reader))(t)
	return map[string]crypto.Signer{"RSA": r, "ECDSA": e, "Ed25519": d}
}

func withID(id string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.SubjectKeyId, c.AuthorityKeyId = []byte(id), []byte(id)
		c.NotBefore, c.NotAfter = time.Now().AddDate(0, -1, 0), time.Now().AddDate(2, 0, 0)
	}
}

func TestLoadTakesEveryFormOfKey(t *testing.T) {
	all := keys(t)
	ec := must.Get(x509.MarshalECPrivateKey(all["ECDSA"].(*ecdsa.PrivateKey)))(t)
	// openssl ecparam -genkey writes the curve's name in a block before the key.
	params := pemOf("EC PARAMETERS", []byte{0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22})
	forms := map[string]struct {
		key   crypto.Signer
		block []byte
	}{
		"PKCS8 RSA":     {all["RSA"], nil},
		"PKCS8 ECDSA":   {all["ECDSA"], nil},
		"PKCS8 Ed25519": {all["Ed25519"], nil},
		"PKCS1":         {all["RSA"], pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(all["RSA"].(*rsa.PrivateKey)))},
		"SEC1":          {all["ECDSA"], append(params, pemOf("EC PRIVATE KEY", ec)...)},
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			certFile, keyFile := write(t, form.block, issue(t, "Example CA", nil, form.key, nil))
			a := must.Get(Load(certFile, keyFile, at(noon)))(t)
			_, c := leaf(t, a, "example.com")
			must.Get(c.Verify(x509.VerifyOptions{Roots: pool(t, a), DNSName: "example.com", CurrentTime: noon}))(t)
		})
	}
}

func TestLoadTakesCertificateAndKeyFromOneFile(t *testing.T) {
	ca := issue(t, "Example CA", nil, nil, nil)
	der := must.Get(x509.MarshalPKCS8PrivateKey(ca.key))(t)
	both := filepath.Join(t.TempDir(), "both.pem")
	put(t, both, append(pemOf(certificateBlock, ca.cert.Raw), pemOf("PRIVATE KEY", der)...), 0o600)
	must.Get(Load(both, both, at(noon)))(t)
}

func TestRFC5280_IntermediatesGoOutWithTheLeafAndRootsDoNot(t *testing.T) {
	root := issue(t, "Example Root", nil, nil, func(c *x509.Certificate) { c.MaxPathLen = 1 })
	middle := issue(t, "Example Intermediate", root, nil, func(c *x509.Certificate) {
		c.MaxPathLenZero = true
		c.NotAfter = noon.AddDate(0, 0, 7)
	})
	certFile, keyFile := write(t, nil, middle, root)
	a := must.Get(Load(certFile, keyFile, at(noon)))(t)
	cert, c := leaf(t, a, "example.com")
	must.True(t, len(cert.Certificate) == 2 && string(cert.Certificate[1]) == string(middle.cert.Raw),
		"%d certificates go out, want leaf and intermediate", len(cert.Certificate))
	must.True(t, c.NotAfter.Equal(middle.cert.NotAfter) && a.DaysLeft(noon) == 7, "the leaf outlives the intermediate")
	must.Equal(t, len(certificates(a.CertPEM())), 2, "certificates in CertPEM")
}

func TestRFC5280_NameConstraintsAreKeptLeafByLeaf(t *testing.T) {
	root := issue(t, "Example Root", nil, nil, func(c *x509.Certificate) {
		c.PermittedDNSDomainsCritical, c.PermittedDNSDomains = true, []string{"example.com"}
		c.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}}
	})
	certFile, keyFile := write(t, nil, issue(t, "Example Intermediate", root, nil, nil), root)
	// The root signs the intermediate, which carries the constraint no further
	// itself; clients apply it to the leaf all the same.
	a, err := Load(certFile, keyFile, at(noon))
	must.OK(t, err)
	leaf(t, a, "www.example.com")
	for _, host := range []string{"example.org", "192.0.2.1"} {
		_, err = a.Leaf(host)
		fails(t, err, host, "may not sign for it", "exempt the host")
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	root := issue(t, "Example Root", nil, nil, func(c *x509.Certificate) { c.MaxPathLenZero = true })
	good := issue(t, "Example CA", nil, nil, nil)
	der := must.Get(x509.MarshalPKCS8PrivateKey(good.key))(t)
	short := must.Get(rsa.GenerateKey(rand.Reader, 1024))(t)
	change := func(f func(*x509.Certificate)) []*issued { return []*issued{issue(t, "Example CA", nil, nil, f)} }
	cases := map[string]struct {
		key   []byte
		chain []*issued
		says  []string
	}{
		"end certificate": {nil, change(func(c *x509.Certificate) { c.IsCA = false }), []string{"is not a CA certificate", "CA:TRUE"}},
		"no signing":      {nil, change(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }), []string{"may not sign certificates", "keyCertSign"}},
		"clients only": {nil, change(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
			[]string{"certificates for servers", "serverAuth"}},
		"all names excluded": {nil, change(func(c *x509.Certificate) { c.ExcludedDNSDomains = []string{""} }), []string{"exclude every name"}},
		"path too long":      {nil, []*issued{issue(t, "Example Intermediate", root, nil, nil), root}, []string{"allows 0 authorities below it and there are 1"}},
		"wrong order":        {pemOf("PRIVATE KEY", der), []*issued{good, root}, []string{"is not signed by", "signing certificate first"}},
		"key of another":     {pemOf("PRIVATE KEY", der), change(nil), []string{"does not belong to the certificate"}},
		"passphrase":         {pemOf("ENCRYPTED PRIVATE KEY", der), change(nil), []string{"passphrase", "openssl pkey"}},
		"old passphrase": {pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"DEK-Info": "AES"}, Bytes: der}),
			change(nil), []string{"passphrase", "openssl pkey"}},
		"damaged key":  {pemOf("PRIVATE KEY", der[:40]), change(nil), []string{"damaged"}},
		"short RSA":    {nil, []*issued{issue(t, "Example CA", nil, short, nil)}, []string{"1024 bits", "too short"}},
		"expired":      {nil, change(func(c *x509.Certificate) { c.NotAfter = noon.AddDate(0, 0, -1) }), []string{"expired on 2026-05-31", "a valid one"}},
		"expired root": {nil, expiredRoot(t), []string{`"Example Root"`, "expired on 2026-05-31"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			certFile, keyFile := write(t, c.key, c.chain...)
			_, err := Load(certFile, keyFile, at(noon))
			fails(t, err, c.says...)
		})
	}
}

func expiredRoot(t *testing.T) []*issued {
	root := issue(t, "Example Root", nil, nil, func(c *x509.Certificate) { c.NotAfter = noon.AddDate(0, 0, -1) })
	return []*issued{issue(t, "Example Intermediate", root, nil, nil), root}
}

func TestLoadSaysWhichFileIsMissing(t *testing.T) {
	certFile, keyFile := write(t, nil, issue(t, "Example CA", nil, nil, nil))
	_, err := Load(certFile+"x", keyFile, at(noon))
	fails(t, err, certFile+"x is missing")
	_, err = Load(certFile, keyFile+"x", at(noon))
	fails(t, err, keyFile+"x is missing")
}
