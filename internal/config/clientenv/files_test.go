package clientenv

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/config"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/fixture"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/ca"
)

func TestClientFilesHoldSystemFoundAndOwnRoots(t *testing.T) {
	system := fixture.SystemRoots(t)
	state := filepath.Join(t.TempDir(), "state")
	own := fixture.CA(t, state)
	corp, wgets := fixture.CA(t, filepath.Join(t.TempDir(), "corp")), fixture.CA(t, filepath.Join(t.TempDir(), "wget"))
	home := t.TempDir()
	testkit.Write(t, filepath.Join(home, ".wgetrc"), "tries = 3\nhttp_proxy = http://corp:1\nCA-Certificate="+wgets.CertPath())
	environ := []string{"HOME=" + home, "AWS_CA_BUNDLE=" + corp.CertPath()}

	files := must.Get(MakeClientFiles(state, own, Inspect(environ, state), time.Now()))(t)
	bundle := testkit.Read(t, files.Bundle)
	for who, root := range map[string]*ca.Authority{"the system's": system, "heed's": own, "the environment's": corp, "wget's": wgets} {
		must.Equal(t, strings.Count(bundle, string(root.CertPEM())), 1, "%s root is not in the bundle once", who)
	}
	store, _ := os.ReadFile(files.TrustStore)
	must.True(t, len(store) > 0, "no trust store")
	wget := testkit.Read(t, files.Wgetrc)
	want := "tries = 3\n# not behind heed: http_proxy = http://corp:1\nCA-Certificate=" + wgets.CertPath() + "\n# Added by heed:\nca_certificate = " + files.Bundle + "\n"
	must.Equal(t, wget, want, "wgetrc")
	info, err := os.Stat(files.Wgetrc)
	must.True(t, err == nil && info.Mode().Perm() == 0o600, "wgetrc, which may hold passwords, has mode %v, %v", info.Mode(), err)

	// A run inside the run finds the same roots and makes nothing new.
	inner := ClientEnviron(environ, "127.0.0.1:1", files)
	t.Setenv("SSL_CERT_FILE", files.Bundle)
	again := must.Get(MakeClientFiles(state, own, Inspect(inner, state, "127.0.0.1:1"), time.Now()))(t)
	must.Contain(t, testkit.Read(t, again.Bundle), string(corp.CertPEM()), "the run inside the run has lost a root")
	must.Equal(t, strings.Count(testkit.Read(t, again.Wgetrc), wgetrcMark), 1, "the settings of wget grow with each run")
}

func TestClientFilesAreMadeOncePerContentAndRemovedWhenUnused(t *testing.T) {
	fixture.SystemRoots(t)
	state := filepath.Join(t.TempDir(), "state")
	own := fixture.CA(t, state)
	corp := fixture.CA(t, filepath.Join(t.TempDir(), "corp"))
	now := time.Now()
	make := func(at time.Time, environ ...string) string {
		files := must.Get(MakeClientFiles(state, own, Inspect(environ, state), at))(t)
		return files.Bundle
	}
	plain := make(now)
	info := must.Get(os.Stat(plain))(t)
	must.Equal(t, make(now), plain, "the same roots have two places")
	same, err := os.Stat(plain)
	must.True(t, err == nil && os.SameFile(info, same), "the bundle was written again, %v", err)
	withCorp := make(now, "CURL_CA_BUNDLE="+corp.CertPath())
	make(now.Add(maxClientAge/2), "CURL_CA_BUNDLE="+corp.CertPath())
	must.True(t, withCorp != plain, "different roots share a place")
	make(now.Add(maxClientAge+time.Hour), "HOME=/nowhere", "CURL_CA_BUNDLE="+own.CertPath())
	_, err = os.Stat(plain)
	must.True(t, err != nil, "files that have not been used for long are still there")
	_, err = os.Stat(withCorp)
	must.True(t, err == nil, "files in use are gone: %v", err)
}

func TestCertificatesAreReadWithoutTheTextBesideThem(t *testing.T) {
	dir := t.TempDir()
	one := fixture.CA(t, filepath.Join(dir, "one"))
	key := testkit.Read(t, filepath.Join(dir, "one", "ca-key.pem"))
	mixed := testkit.Write(t, filepath.Join(dir, "mixed.pem"), "remark\n"+key+string(one.CertPEM())+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	got, err := config.ReadCerts(mixed)
	must.True(t, err == nil && bytes.Equal(got, one.CertPEM()), "got %s, %v", got, err)
	certs := t.TempDir()
	testkit.Write(t, filepath.Join(certs, "README"), "no certificate")
	testkit.Write(t, filepath.Join(certs, "a.pem"), string(one.CertPEM()))
	testkit.Write(t, filepath.Join(certs, "b.0"), string(one.CertPEM()))
	got, _, errs := ca.ReadCerts([]string{certs, mixed})
	must.True(t, len(errs) == 0 && bytes.Equal(got, one.CertPEM()), "got %s, %v", got, errs)
}
