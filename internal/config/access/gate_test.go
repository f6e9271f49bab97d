package access

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"

	"golang.org/x/crypto/bcrypt"
)

var here = netip.MustParseAddr("127.0.0.1")

// hash is cheap: what is tested is not bcrypt.
func hash(t *testing.T, password string) string {
	t.Helper()
	h := must.Get(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t)
	return string(h)
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func open(t *testing.T, text string, now func() time.Time) *Gate {
	t.Helper()
	g := must.Get(Open(file(t, text), now))(t)
	return g
}

func TestHeed_AGateLetsItsUsersIn(t *testing.T) {
	g := open(t, "# the newsroom\nann:"+hash(t, "s3cret:with colon")+"\n\nbob:"+hash(t, "b")+"\r\n", time.Now)
	for _, c := range []struct {
		user, password string
		want           bool
	}{
		{"ann", "s3cret:with colon", true},
		{"ann", "s3cret:with colon", true}, // remembered
		{"bob", "b", true},
		{"bob", "s3cret:with colon", false},
		{"Ann", "s3cret:with colon", false},
		{"", "", false},
		{"unknown", "b", false},
	} {
		if got, _ := g.Verify(t.Context(), here, c.user, c.password); got != c.want {
			t.Errorf("%s:%s is %v", c.user, c.password, got)
		}
	}
}

// A line that Apache's htpasswd -B wrote.
func TestHeed_AGateReadsWhatHtpasswdWrites(t *testing.T) {
	g := open(t, `ann:$2y$04$pjzsi.OZWU5w53DvL4B6Iu2gHQZ9eVVOc8MssYf/IMGGvN8kTRB7e`+"\n", time.Now)
	if right, _ := g.Verify(t.Context(), here, "ann", "open sesame"); !right {
		t.Error("turned away")
	}
	if right, _ := g.Verify(t.Context(), here, "ann", "open says me"); right {
		t.Error("let in")
	}
}

func TestHeed_WhoKeepsFailingHasToWait(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	g := open(t, "ann:"+hash(t, "a"), func() time.Time { return now })
	for range maxFailed {
		if right, wait := g.Verify(t.Context(), here, "ann", "guess"); right || wait != 0 {
			t.Fatalf("a guess: %v, %v", right, wait)
		}
	}
	if right, wait := g.Verify(t.Context(), here, "ann", "a"); right || wait != failedFor {
		t.Errorf("after too many guesses: %v, %v", right, wait)
	}
	if right, _ := g.Verify(t.Context(), netip.MustParseAddr("127.0.0.2"), "ann", "a"); !right {
		t.Error("another address has to wait")
	}
	if right, _ := g.Verify(t.Context(), here, "ann", "a"); !right {
		t.Error("what was verified is not remembered")
	}
	now = now.Add(memory)
	if right, wait := g.Verify(t.Context(), here, "ann", "guess"); right || wait > 0 {
		t.Errorf("after the wait: %v, %v", right, wait)
	}
}

// A guesser with an IPv6 address has 2^64 of them.
func TestHeed_GuessesFromOneNetworkCountTogether(t *testing.T) {
	g := open(t, "ann:"+hash(t, "a"), time.Now)
	at := netip.MustParseAddr("2001:db8::1")
	for range maxFailed {
		g.Verify(t.Context(), at, "ann", "guess")
		at = at.Next()
	}
	if right, wait := g.Verify(t.Context(), at, "ann", "a"); right || wait <= 0 {
		t.Errorf("the next address of the /64: %v, %v", right, wait)
	}
	for _, other := range []string{"2001:db8:0:1::1", "192.0.2.1"} {
		if _, wait := g.Verify(t.Context(), netip.MustParseAddr(other), "ann", "guess"); wait != 0 {
			t.Errorf("%s has to wait %v", other, wait)
		}
	}
}

func TestHeed_WhatWasVerifiedIsForgottenAfterAWhile(t *testing.T) {
	now := time.Now()
	g := open(t, "ann:"+hash(t, "a"), func() time.Time { return now })
	if right, _ := g.Verify(t.Context(), here, "ann", "a"); !right || !g.knows(g.id("ann", "a")) {
		t.Fatal("not remembered")
	}
	if now = now.Add(memory); g.knows(g.id("ann", "a")) {
		t.Error("remembered for too long")
	}
}

func TestHeed_ManyAtOnceWithTheSameCredentials(t *testing.T) {
	g := open(t, "ann:"+hash(t, "a"), time.Now)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if right, _ := g.Verify(t.Context(), here, "ann", "a"); !right {
				t.Error("turned away")
			}
		})
	}
	wg.Wait()
}

func TestHeed_AnUnusableUsersFileSaysWhatToDo(t *testing.T) {
	good := "ann:" + hash(t, "a") + "\n"
	for _, c := range []struct{ text, want string }{
		{"", "heed config password NAME >> "},
		{"# no users yet\n", "there is no user in it"},
		{"ann\n", ":1: a line is NAME:HASH, and a name has no control characters; make one with: heed config password NAME"},
		{good + "bob:$apr1$x$y\n", ":2: the password of \"bob\" is not hashed with bcrypt; make the line anew with: heed config password bob"},
		{"ann:{SHA}5en6G6=\n", "make the line anew with: heed config password ann"},
		{good + good, ":2: the user \"ann\" is listed twice"},
		{"ann:$2y$31$" + strings.Repeat("a", 53) + "\n", "takes too long to check"},
		{":" + hash(t, "a"), ":1: a line is NAME:HASH"},
	} {
		if _, err := Open(file(t, c.text), time.Now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "users")
	if _, err := Open(missing, time.Now); err == nil || !strings.Contains(err.Error(), "; make it with: (umask 077; heed config password NAME > "+missing+")") {
		t.Errorf("without the file: %v", err)
	}
	path := file(t, good)
	must.OK(t, os.Chmod(path, 0o644))
	if _, err := Open(path, time.Now); err == nil || !strings.Contains(err.Error(), "chmod o= "+path) {
		t.Errorf("a file that everyone can read: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent"), time.Now); err == nil {
		t.Error("a file that is not there")
	}
}

// A line that heed makes is one that its gate takes, whatever the name and the password
// contain; what the gate could not verify, or the file not hold, is refused.
func TestHeed_ALineOfTheUsersFile(t *testing.T) {
	for _, c := range []struct{ name, password string }{
		{"ann", "open sesame"}, {"ann@news.test", " with: colons and blanks "}, {"Zoë", "p\u00e4ss\twort"}, {"a b", strings.Repeat("x", 72)},
	} {
		line, err := Line(c.name, c.password)
		if err != nil {
			t.Errorf("%q: %v", c.name, err)
			continue
		}
		if right, _ := open(t, line+"\n", time.Now).Verify(t.Context(), here, c.name, c.password); !right {
			t.Errorf("%q: its own line turns it away: %s", c.name, line)
		}
	}
	for _, c := range []struct{ name, password, why string }{
		{"", "x", "name"}, {"a:b", "x", "colon"}, {"#ann", "x", "name"}, {" ann", "x", "blank"}, {"ann\t", "x", "name"}, {"a\nb", "x", "name"},
		{"ann", "", "empty"}, {"ann", strings.Repeat("ä", 37), "72"},
	} {
		if line, err := Line(c.name, c.password); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q: %q, %v", c.name, line, err)
		}
	}
}
