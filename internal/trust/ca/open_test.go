package ca

import (
	"crypto/ecdsa"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestRootIsMadeOnFirstUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "ca")
	a := must.Get(Open(dir, at(noon)))(t)
	for file, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "ca-key.pem"): 0o600, a.CertPath(): 0o644} {
		info := must.Get(os.Stat(file))(t)
		must.Equal(t, info.Mode().Perm(), want, "mode of %s", file)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	must.True(t, err == nil && len(left) == 0, "temporary files left: %v, %v", left, err)
	again := must.Get(Open(dir, at(noon)))(t)
	must.Equal(t, Fingerprint(again.chain[0]), Fingerprint(a.chain[0]), "the second Open made another CA")
}

func TestRFC5280_RootMaySignOnlyEndCertificates(t *testing.T) {
	root := open(t, noon).chain[0]
	must.True(t, root.IsCA && root.MaxPathLenZero && root.MaxPathLen == 0, "not a CA with path length 0")
	must.Equal(t, root.KeyUsage, x509.KeyUsageCertSign|x509.KeyUsageCRLSign, "key usage")
	must.True(t, len(root.SubjectKeyId) > 0 && string(root.SubjectKeyId) == string(root.AuthorityKeyId),
		"no subject key identifier, or the authority's differs")
	_, ok := root.PublicKey.(*ecdsa.PublicKey)
	must.True(t, ok, "key is a %T", root.PublicKey)
	must.True(t, root.SerialNumber.BitLen() >= 64, "serial number has %d bits only", root.SerialNumber.BitLen())
	got := root.NotAfter
	must.True(t, got.Equal(noon.Add(-time.Hour).AddDate(10, 0, 0)), "ends on %v", got)
	must.True(t, strings.HasPrefix(root.Subject.CommonName, "heed local CA "),
		"common name %q is not recognisable", root.Subject.CommonName)
}

func TestManyStartsAtOnceMakeOneCA(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	prints := make([]string, 32)
	var starts sync.WaitGroup
	for i := range prints {
		starts.Go(func() {
			a, err := Open(dir, at(noon))
			if err != nil {
				t.Error(err)
				return
			}
			prints[i] = Fingerprint(a.chain[0])
		})
	}
	starts.Wait()
	for _, p := range prints {
		must.Need(t, p == prints[0], "several CAs were made")
	}
}

// TestMain lets the test binary stand in for another heed that opens a CA.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HEED_TEST_OPEN"); dir != "" {
		a, err := Open(dir, time.Now)
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(Fingerprint(a.chain[0]))
		return
	}
	os.Exit(m.Run())
}

func TestManyProcessesAtOnceMakeOneCA(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	self := must.Get(os.Executable())(t)
	prints := make([]string, 8)
	var processes sync.WaitGroup
	for i := range prints {
		processes.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "HEED_TEST_OPEN="+dir)
			out, err := cmd.Output()
			must.True(t, err == nil, "%v", err)
			prints[i] = string(out)
		})
	}
	processes.Wait()
	for _, p := range prints {
		must.Need(t, p == prints[0] && p != "", "several CAs were made: %q", prints)
	}
}

func TestAnInterruptedFirstUseIsContinued(t *testing.T) {
	dir := newDir(t)
	must.OK(t, currentPair(dir).createKey())
	key := must.Get(readKey(currentPair(dir).key))(t)
	a := must.Get(Open(dir, at(noon)))(t)
	must.True(t, matches(key, a.chain[0]), "the key that was there is not the CA's")
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	year := noon.AddDate(1, 0, 0)
	cases := []struct {
		name  string
		spoil func(t *testing.T, dir string)
		now   time.Time
		says  []string
	}{
		{"key others can read", func(t *testing.T, dir string) { chmod(t, dir+"/ca-key.pem", 0o640) }, year, []string{"chmod 600 ", "ca-key.pem", "0640"}},
		{"directory others can change", func(t *testing.T, dir string) { chmod(t, dir, 0o777) }, year, []string{"chmod 700 ", "0777"}},
		{"key missing", func(t *testing.T, dir string) { remove(t, dir+"/ca-key.pem") }, year, []string{"ca-key.pem is missing", "remove"}},
		{"key damaged", func(t *testing.T, dir string) { put(t, dir+"/ca-key.pem", []byte("x"), 0o600) }, year, []string{"no private key in"}},
		{"certificate damaged", func(t *testing.T, dir string) { put(t, dir+"/ca.pem", []byte("x"), 0o600) }, year, []string{"no certificate in"}},
		{"certificate a directory", func(t *testing.T, dir string) { remove(t, dir+"/ca.pem"); mkdir(t, dir+"/ca.pem") }, year, []string{"ca.pem cannot be read", "not a regular file"}},
		{"key of another CA", func(t *testing.T, dir string) {
			remove(t, dir+"/ca-key.pem")
			must.OK(t, currentPair(dir).createKey())
		}, year, []string{"does not belong to the certificate"}},
		{"expired", func(*testing.T, string) {}, noon.AddDate(11, 0, 0), []string{"expired on 2036-06-01", "heed ca renew"}},
		{"not yet valid", func(*testing.T, string) {}, noon.AddDate(-1, 0, 0), []string{"not valid before 2026-06-01", "set the clock"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := newDir(t)
			must.Get(Open(dir, at(noon)))(t)
			c.spoil(t, dir)
			_, err := Open(dir, at(c.now))
			fails(t, err, c.says...)
		})
	}
}

func TestOpenSaysWhyADirectoryWillNotDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, nil, 0o600)
	_, err := Open(file, at(noon))
	fails(t, err, "is not a directory", "HEED_STATE")
	_, err = Open(filepath.Join(file, "ca"), at(noon))
	fails(t, err, "cannot be made or read", "HEED_STATE")
}

func TestOpenRefusesWhatBelongsToSomebodyElse(t *testing.T) {
	_, err := Open(testkit.ForeignDir(t), at(noon))
	fails(t, err, "belongs to user ", "HEED_STATE")
}

func TestDaysLeft(t *testing.T) {
	a := open(t, noon)
	end := a.NotAfter()
	for left, now := range map[int]time.Time{
		30: end.Add(-30 * 24 * time.Hour),
		29: end.Add(-30*24*time.Hour + 1),
		0:  end.Add(time.Hour),
	} {
		must.Equal(t, a.DaysLeft(now), left, "DaysLeft(%v) =", now)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must.OK(t, os.Chmod(path, mode))
}

func remove(t *testing.T, path string) {
	t.Helper()
	must.OK(t, os.Remove(path))
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	must.OK(t, os.Mkdir(path, 0o700))
}
