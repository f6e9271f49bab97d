package ca

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// client is one that trusts what CertPEM said at some moment.
type client struct{ roots *x509.CertPool }

func trusting(t *testing.T, a *Authority) client { return client{pool(t, a)} }

func (c client) accepts(t *testing.T, a *Authority) bool {
	t.Helper()
	_, leaf := leaf(t, a, "example.com")
	_, err := leaf.Verify(x509.VerifyOptions{Roots: c.roots, DNSName: "example.com", CurrentTime: a.now()})
	return err == nil
}

func renew(t *testing.T, dir string, now time.Time, switchNow bool) *Renewal {
	t.Helper()
	return must.Get(Renew(dir, now, switchNow))(t)
}

func reopen(t *testing.T, dir string, now time.Time) *Authority {
	t.Helper()
	return must.Get(Open(dir, at(now)))(t)
}

func TestRenewalBreaksNoClientThatFollows(t *testing.T) {
	dir := newDir(t)
	running := reopen(t, dir, noon)
	early := trusting(t, running)

	first := renew(t, dir, noon, false)
	must.True(t, !first.Switched && first.NewFile == filepath.Join(dir, "ca-next.pem"), "the first step: %+v", first)
	again := renew(t, dir, noon, false)
	must.True(t, !again.Switched && again.New.Equal(first.New), "a second call without the switch changed something")
	restarted := reopen(t, dir, noon)
	must.True(t, early.accepts(t, restarted), "a client broke before the switch")
	follower := trusting(t, running) // a running heed hands out the prepared root too

	second := renew(t, dir, noon, true)
	must.True(t, second.Switched && second.New.Equal(first.New) && second.NewFile == running.CertPath(),
		"the switch: %+v", second)
	switched := reopen(t, dir, noon)
	must.True(t, switched.chain[0].Equal(first.New), "the new root does not sign")
	must.True(t, follower.accepts(t, switched) && follower.accepts(t, running), "a client that follows broke in the switch")
	if late := trusting(t, switched); !late.accepts(t, switched) || !late.accepts(t, running) {
		t.Error("a new client does not accept both a heed of before and one of after the switch")
	}
	must.True(t, !early.accepts(t, switched), "a client that never saw the new root accepts it: this test proves nothing")
}

func TestRenewalKeepsTheOldCertificateUntilItExpires(t *testing.T) {
	dir := newDir(t)
	old := reopen(t, dir, noon)
	later := noon.AddDate(9, 0, 0)
	renew(t, dir, later, true)
	roots := reopen(t, dir, later).Roots()
	must.True(t, len(roots) == 2 && !roots[0].Replaced && roots[1].Replaced && roots[1].Cert.Equal(old.chain[0]),
		"roots after the switch: %+v", roots)
	holds(t, read(t, roots[1].File), old.chain[0])
	roots = reopen(t, dir, noon.AddDate(11, 0, 0)).Roots()
	must.True(t, len(roots) == 1, "the expired root is still handed out: %d roots", len(roots))
	for _, key := range []string{"ca-next-key.pem", "ca-next.pem"} {
		_, err := os.Stat(filepath.Join(dir, key))
		must.True(t, err != nil, "%s is left over", key)
	}
}

func TestADeadRootIsSwitchedAtOnce(t *testing.T) {
	dir := newDir(t)
	reopen(t, dir, noon)
	dead := noon.AddDate(11, 0, 0)
	r := renew(t, dir, dead, false)
	must.True(t, r.Switched, "only prepared, though no client accepts the old one")
	a := reopen(t, dir, dead)
	must.True(t, trusting(t, a).accepts(t, a), "the new root does not work")
}

func TestRenewMakesTheFirstRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	r := renew(t, dir, noon, false)
	must.True(t, r.Switched && r.New.Equal(reopen(t, dir, noon).chain[0]), "%+v", r)
}

func TestAnInterruptedSwitchIsFinished(t *testing.T) {
	for name, finish := range map[string]func(dir string) error{
		"by Open":  func(dir string) error { _, err := Open(dir, at(noon)); return err },
		"by Renew": func(dir string) error { _, err := Renew(dir, noon, true); return err },
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			reopen(t, dir, noon)
			r := renew(t, dir, noon, false)
			// The power fails after the key has moved and before the certificate has.
			must.OK(t, os.Rename(nextPair(dir).key, currentPair(dir).key))
			must.OK(t, finish(dir))
			must.True(t, reopen(t, dir, noon).chain[0].Equal(r.New), "the switch was not finished")
		})
	}
}

func TestRenewSaysWhatIsWrong(t *testing.T) {
	dir := newDir(t)
	reopen(t, dir, noon)
	chmod(t, currentPair(dir).key, 0o644)
	_, err := Renew(dir, noon, false)
	fails(t, err, "chmod 600")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}
