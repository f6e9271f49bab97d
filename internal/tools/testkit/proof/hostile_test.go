package proof

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/audit/store"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// What clients choose freely, in hostile octets and sizes, is in the record as it
// came, or cut and marked as cut; it breaks neither the record nor who reads it.
func TestHeed_HostileOctetsDoNotBreakTheRecord(t *testing.T) {
	t.Parallel()
	addr, dir := rawSite(t), t.TempDir()
	path := filepath.Join(dir, "audit.db")
	h := testkit.Start(t, testkit.Options{Config: testkit.AnyPort + fmt.Sprintf(
		"[log]\nlevel = \"warn\"\n[audit]\nfile = %q\n[upstream]\nresolve = { \"raw.test:80\" = %q }\n", path, addr)})
	long := strings.Repeat("a", 60_000)
	names := strings.Repeat("Bot", 20_000) + " " + strings.Repeat("B0t/1 ", 20_000)
	for _, lines := range []string{
		"GET http://raw.test/\xff\xfe\x80 HTTP/1.1\r\nHost: raw.test\r\n",
		"GET http://raw.test/';DROP%20TABLE%20entry;-- HTTP/1.1\r\nHost: raw.test\r\nUser-Agent: '); DROP TABLE entry; --\r\n",
		"GET http://raw.test/%00%0a%0d%1b[31m HTTP/1.1\r\nHost: raw.test\r\nUser-Agent: \xc3\x28\xf0\x28\x8c\xbc \x1b[31m\r\n",
		"GET http://raw.test/" + long + " HTTP/1.1\r\nHost: raw.test\r\nUser-Agent: " + long + "\r\n",
		"GET http://raw.test/names HTTP/1.1\r\nHost: raw.test\r\nUser-Agent: " + names + "\r\n",
		"GET http://raw.test/private/?token=5ecret&" + long + " HTTP/1.1\r\nHost: raw.test\r\n",
		"GET http://raw.test/part HTTP/1.1\r\nHost: raw.test\r\nSec-Fetch-Dest: image\r\nReferer: http://me:5ecret@raw.test/?key=5ecret&" + long + "\r\n",
		"B\x00GUS http://raw.test/ HTTP/1.1\r\nHost: raw.test\r\n",
		strings.Repeat("M", 60_000) + " http://raw.test/method HTTP/1.1\r\nHost: raw.test\r\n",
		"GET http://" + strings.Repeat("h", 60_000) + ".test/ HTTP/1.1\r\nHost: x\r\n",
		"CONNECT " + strings.Repeat("h", 60_000) + ":443 HTTP/1.1\r\n",
		"GET http://raw.test/" + strings.Repeat("%c0%af", 10_000) + " HTTP/1.1\r\nHost: raw.test\r\n",
	} {
		c := testkit.Dial(t, h.Addr)
		c.Send(lines + "Connection: close\r\n\r\n")
		if c.Rest(); t.Failed() {
			t.Fatalf("after %.80q", lines)
		}
	}
	h.Signal(os.Interrupt)
	h.Exit()
	verify(t, path)
	db := view(t, path)
	var entries, agents, tokens, methods int
	must.OK(t, db.QueryRow("SELECT count(*), max(length(user_agent)), max(length(tokens)), max(length(method)) FROM decisions").Scan(&entries, &agents, &tokens, &methods))
	t.Logf("%d entries; the longest User-Agent %d, tokens %d, method %d", entries, agents, tokens, methods)
	must.True(t, entries == 12 && agents <= 5000 && tokens <= 5000 && methods <= 5000,
		"%d entries; the longest User-Agent %d, tokens %d, method %d", entries, agents, tokens, methods)
	var raw int
	if err := db.QueryRow(`SELECT count(*) FROM entry WHERE raw = CAST(X'687474703A2F2F7261772E746573742FFFFE80' AS BLOB) OR target = CAST(X'2FFFFE80' AS BLOB) OR raw = X'2FFFFE80'`).Scan(&raw); err != nil || raw == 0 {
		t.Errorf("the octets that came are nowhere: %d, %v", raw, err)
	}
	secretNowhere(t, dir, "5ecret")
}

// secretNowhere fails the test when a file below dir has the text.
func secretNowhere(t *testing.T, dir, secret string) {
	t.Helper()
	must.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		must.True(t, err != nil || !bytes.Contains(data, []byte(secret)), "%s has %q", path, secret)
		return err
	}))
}

// What must not be kept is in none of the files, neither while heed writes nor
// after it was killed: neither secrets of addresses nor who the client is.
func TestHeed_WhatMustNotBeKeptIsInNoFile(t *testing.T) {
	t.Parallel()
	s, state := newSite(t), testkit.StateDir(t)
	h := testkit.Start(t, testkit.Options{State: state, Config: s.config("[log]\nlevel = \"warn\"\n[audit]\nclients = \"hashed\"\n")})
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 77)}, Timeout: testkit.Patience}
	for _, target := range []string{
		"/page?token=5ecret", "/private?api_key=5ecret", "/page;jsessionid=5ecret/x", "/page?u=http%3A%2F%2Fs.test%2F%3Fsig%3D5ecret",
		"/page?tok%2565n=5ecret", "/page?u=http://me:5ecret@s.test/",
	} {
		for _, way := range []string{"plain", "https"} {
			conn := must.Get(d.Dial("tcp", h.Addr))(t)
			c, prefix := testkit.On(t, conn), "http://proof.test"
			if way == "https" {
				c, prefix = c.Connect("proof.test:443").TLS(&tls.Config{RootCAs: h.Roots(), ServerName: "proof.test"}), ""
			}
			c.Send("GET " + prefix + target + " HTTP/1.1\r\nHost: proof.test\r\nReferer: http://proof.test/?key=5ecret\r\nSec-Fetch-Dest: image\r\nConnection: close\r\n\r\n")
			c.Rest()
		}
	}
	secretNowhere(t, state, "5ecret")
	secretNowhere(t, state, "127.0.0.77")
	testkit.Delay(time.Second) // heed works on: it may commit before it is killed
	h.Signal(os.Kill)
	h.Exit()
	secretNowhere(t, state, "5ecret")
	secretNowhere(t, state, "127.0.0.77")
	path := filepath.Join(state, "audit.db")
	must.OK(t, store.Settle(path))
	db := view(t, path)
	var n, redacted, clients int
	if err := db.QueryRow("SELECT count(*), sum(redacted), count(DISTINCT client) FROM decisions WHERE judged = 'path'").Scan(&n, &redacted, &clients); err != nil || n != 12 || redacted != n || clients != 1 {
		t.Errorf("%d entries, %d redacted, %d clients, %v", n, redacted, clients, err)
	}
	secretNowhere(t, state, "5ecret")
}
