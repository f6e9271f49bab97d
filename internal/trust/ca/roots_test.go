package ca

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// onlyRoots makes the given certificates the system's roots for this test.
func onlyRoots(t *testing.T, roots ...*issued) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "system.pem")
	var data []byte
	for _, r := range roots {
		data = append(data, "# "+r.cert.Subject.CommonName+"\n"...)
		data = append(data, pemOf(certificateBlock, r.cert.Raw)...)
	}
	put(t, file, data, 0o644)
	t.Setenv("SSL_CERT_FILE", file)
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	return file
}

// holds checks that a PEM text is exactly these certificates in this order.
func holds(t *testing.T, text []byte, want ...*x509.Certificate) {
	t.Helper()
	got := certificates(text)
	must.Need(t, len(got) == len(want), "%d certificates, want %d", len(got), len(want))
	for i := range got {
		must.True(t, bytes.Equal(got[i], want[i].Raw), "certificate %d is not %s", i+1, want[i].Subject)
	}
}

func TestBundleIsSystemThenExtraThenCAEachOnce(t *testing.T) {
	one, two, three := issue(t, "One", nil, nil, nil), issue(t, "Two", nil, nil, nil), issue(t, "Three", nil, nil, nil)
	onlyRoots(t, two, one, two)
	extraFile, _ := write(t, nil, one, three)
	a := open(t, noon)
	for range 2 { // the order stays
		bundle := must.Get(Bundle(a, []string{extraFile}))(t)
		holds(t, bundle, two.cert, one.cert, three.cert, a.chain[0])
	}
}

func TestBundleReadsDirectories(t *testing.T) {
	one, two, three := issue(t, "One", nil, nil, nil), issue(t, "Two", nil, nil, nil), issue(t, "Three", nil, nil, nil)
	onlyRoots(t, one)
	hashed, extra := t.TempDir(), t.TempDir()
	put(t, filepath.Join(hashed, "two.pem"), pemOf(certificateBlock, two.cert.Raw), 0o644)
	must.OK(t, os.Symlink("two.pem", filepath.Join(hashed, "0123abcd.0")))
	put(t, filepath.Join(extra, "three.crt"), pemOf(certificateBlock, three.cert.Raw), 0o644)
	put(t, filepath.Join(extra, "README"), []byte("not a certificate"), 0o644)
	t.Setenv("SSL_CERT_DIR", "/nonexistent:"+hashed)
	a := open(t, noon)
	bundle := must.Get(Bundle(a, []string{extra}))(t)
	holds(t, bundle, one.cert, two.cert, three.cert, a.chain[0])
}

// An SSL_CERT_FILE without certificates, an empty directory, leaves those of SSL_CERT_DIR alone.
func TestBundleHasNoRootsThatTheEnvironmentDoesNotName(t *testing.T) {
	one := issue(t, "One", nil, nil, nil)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "one.pem"), pemOf(certificateBlock, one.cert.Raw), 0o644)
	t.Setenv("SSL_CERT_FILE", t.TempDir())
	t.Setenv("SSL_CERT_DIR", dir)
	a := open(t, noon)
	bundle := must.Get(Bundle(a, nil))(t)
	holds(t, bundle, one.cert, a.chain[0])
}

func TestBundleFindsTheRootsOfThisSystem(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", "")
	t.Setenv("SSL_CERT_DIR", "")
	a := open(t, noon)
	bundle := must.Get(Bundle(a, nil))(t)
	n := len(certificates(bundle))
	must.True(t, n >= 2, "%d certificates", n)
}

func TestBundleSaysWhatIsMissing(t *testing.T) {
	system := onlyRoots(t, issue(t, "One", nil, nil, nil))
	a := open(t, noon)
	_, err := Bundle(a, []string{system + "x"})
	fails(t, err, system+"x is missing")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	put(t, empty, []byte("nothing"), 0o644)
	_, err = Bundle(a, []string{empty})
	fails(t, err, "no certificate in "+empty)
	_, err = SystemPool(empty)
	fails(t, err, "no certificate in "+empty)
	t.Setenv("SSL_CERT_FILE", system+"x")
	_, err = Bundle(a, nil)
	fails(t, err, "SSL_CERT_FILE", system+"x is missing")
	_, err = SystemPool()
	fails(t, err, "SSL_CERT_FILE", system+"x is missing")
}

func TestBundleFileIsForEveryoneAndReplacedWhole(t *testing.T) {
	one := issue(t, "One", nil, nil, nil)
	onlyRoots(t, one)
	a := open(t, noon)
	path := filepath.Join(t.TempDir(), "bundle.pem")
	put(t, path, bytes.Repeat([]byte("old "), 10000), 0o600)
	must.OK(t, writeBundle(path, a))
	data := must.Get(os.ReadFile(path))(t)
	holds(t, data, one.cert, a.chain[0])
	info, err := os.Stat(path)
	must.True(t, err == nil && info.Mode().Perm() == 0o644, "mode %v, %v", info.Mode(), err)
	fails(t, writeBundle(filepath.Join(path, "x"), a), "cannot be written")
}

func TestSystemPoolHoldsTheExtraRoots(t *testing.T) {
	extra := issue(t, "Extra", nil, nil, nil)
	file, _ := write(t, nil, extra)
	site := issue(t, "Site", extra, nil, func(c *x509.Certificate) {
		c.IsCA, c.KeyUsage, c.DNSNames = false, x509.KeyUsageDigitalSignature, []string{"site.test"}
	})
	pool := must.Get(SystemPool(file))(t)
	must.Get(site.cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: "site.test", CurrentTime: noon}))(t)
	if without, err := SystemPool(); err != nil {
		t.Error(err)
	} else if _, err := site.cert.Verify(x509.VerifyOptions{Roots: without, DNSName: "site.test", CurrentTime: noon}); err == nil {
		t.Error("the extra root stayed in the system's pool")
	}
}

func TestOpenSSLAndPythonTrustTheBundle(t *testing.T) {
	a := must.Get(Open(newDir(t), time.Now))(t)
	path := filepath.Join(t.TempDir(), "bundle.pem")
	must.OK(t, writeBundle(path, a))
	port := serve(t, a)
	t.Run("openssl", func(t *testing.T) {
		run(t, true, testkit.Program(t, "openssl"), "s_client", "-connect", "127.0.0.1:"+port, "-servername", "example.com", "-verify_hostname", "example.com",
			"-CAfile", path, "-no-CApath", "-no-CAstore", "-x509_strict", "-verify_return_error", "-brief")
	})
	t.Run("python", func(t *testing.T) {
		run(t, true, testkit.Program(t, "python3"), "-c", `
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
context.verify_flags |= ssl.VERIFY_X509_STRICT
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as plain:
    with context.wrap_socket(plain, server_hostname="example.com") as conn:
        assert conn.recv(5) == b"hello"
`, port, path)
	})
}
