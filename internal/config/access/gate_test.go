package access

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
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
	return testkit.Write(t, filepath.Join(t.TempDir(), "users"), text)
}

func open(t *testing.T, text string, now func() time.Time) *Gate {
	t.Helper()
	return must.Get(Open(file(t, text), now))(t)
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
		got, _ := g.Verify(t.Context(), here, c.user, c.password)
		must.True(t, got == c.want, "%s:%s is %v", c.user, c.password, got)
	}
}

// A line that Apache's htpasswd -B wrote.
func TestHeed_AGateReadsWhatHtpasswdWrites(t *testing.T) {
	g := open(t, `ann:$2y$04$pjzsi.OZWU5w53DvL4B6Iu2gHQZ9eVVOc8MssYf/IMGGvN8kTRB7e`+"\n", time.Now)
	right, _ := g.Verify(t.Context(), here, "ann", "open sesame")
	must.True(t, right, "turned away")
	right, _ = g.Verify(t.Context(), here, "ann", "open says me")
	must.True(t, !right, "let in")
}

func TestHeed_WhoKeepsFailingHasToWait(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	g := open(t, "ann:"+hash(t, "a"), func() time.Time { return now })
	for range maxFailed {
		right, wait := g.Verify(t.Context(), here, "ann", "guess")
		must.Need(t, !right && wait == 0, "a guess: %v, %v", right, wait)
	}
	right, wait := g.Verify(t.Context(), here, "ann", "a")
	must.True(t, !right && wait == failedFor, "after too many guesses: %v, %v", right, wait)
	right, _ = g.Verify(t.Context(), netip.MustParseAddr("127.0.0.2"), "ann", "a")
	must.True(t, right, "another address waits")
	right, _ = g.Verify(t.Context(), here, "ann", "a")
	must.True(t, right, "what was verified is not remembered")
	now = now.Add(memory)
	right, wait = g.Verify(t.Context(), here, "ann", "guess")
	must.True(t, !right && wait <= 0, "after the wait: %v, %v", right, wait)
}

// A guesser with an IPv6 address has 2^64 of them.
func TestHeed_GuessesFromOneNetworkCountTogether(t *testing.T) {
	g := open(t, "ann:"+hash(t, "a"), time.Now)
	at := netip.MustParseAddr("2001:db8::1")
	for range maxFailed {
		g.Verify(t.Context(), at, "ann", "guess")
		at = at.Next()
	}
	right, wait := g.Verify(t.Context(), at, "ann", "a")
	must.True(t, !right && wait > 0, "the next address of the /64: %v, %v", right, wait)
	for _, other := range []string{"2001:db8:0:1::1", "192.0.2.1"} {
		_, wait := g.Verify(t.Context(), netip.MustParseAddr(other), "ann", "guess")
		must.True(t, wait == 0, "%s waits %v", other, wait)
	}
}

func TestHeed_WhatWasVerifiedIsForgottenAfterAWhile(t *testing.T) {
	now := time.Now()
	g := open(t, "ann:"+hash(t, "a"), func() time.Time { return now })
	right, _ := g.Verify(t.Context(), here, "ann", "a")
	must.Need(t, right && g.knows(g.id("ann", "a")), "not remembered")
	now = now.Add(memory)
	must.True(t, !g.knows(g.id("ann", "a")), "remembered for too long")
}

func TestHeed_ManyAtOnceWithTheSameCredentials(t *testing.T) {
	g := open(t, "ann:"+hash(t, "a"), time.Now)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			right, _ := g.Verify(t.Context(), here, "ann", "a")
			must.True(t, right, "turned away")
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
		must.Fail(t, must.Err(Open(file(t, c.text), time.Now)), c.want, "%q", c.text)
	}
	missing := filepath.Join(t.TempDir(), "users")
	if _, err := Open(missing, time.Now); err == nil || !strings.Contains(err.Error(), "; make it with: (umask 077; heed config password NAME > "+missing+")") {
		t.Errorf("without the file: %v", err)
	}
	path := file(t, good)
	must.OK(t, os.Chmod(path, 0o644))
	must.Fail(t, must.Err(Open(path, time.Now)), "chmod o= "+path, "a file that everyone can read")
	_, err := Open(filepath.Join(t.TempDir(), "absent"), time.Now)
	must.True(t, err != nil, "a file that is not there")
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
		right, _ := open(t, line+"\n", time.Now).Verify(t.Context(), here, c.name, c.password)
		must.True(t, right, "%q: its own line turns it away: %s", c.name, line)
	}
	for _, c := range []struct{ name, password, why string }{
		{"", "x", "name"}, {"a:b", "x", "colon"}, {"#ann", "x", "name"}, {" ann", "x", "blank"}, {"ann\t", "x", "name"}, {"a\nb", "x", "name"},
		{"ann", "", "empty"}, {"ann", strings.Repeat("ä", 37), "72"},
	} {
		line, err := Line(c.name, c.password)
		must.True(t, err != nil && strings.Contains(err.Error(), c.why), "%q: %q, %v", c.name, line, err)
	}
}
