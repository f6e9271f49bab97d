package proof

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// begin opens exchanges that do not end by themselves, one of each kind, and
// returns their targets; of a tunnel, its host.
func begin(t *testing.T, h *testkit.Heed) (open []string) {
	t.Helper()
	download := testkit.Dial(t, h.Addr)
	download.Send("GET http://raw.test/a/endless HTTP/1.1\r\nHost: raw.test\r\n\r\n")
	download.Head("GET")
	upload := testkit.Dial(t, h.Addr)
	upload.Send("POST http://raw.test/a/upload HTTP/1.1\r\nHost: raw.test\r\nContent-Length: 1000\r\n\r\nsome of it")
	socket := testkit.Dial(t, h.Addr)
	socket.Send("GET http://raw.test/a/upgrade HTTP/1.1\r\nHost: raw.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	socket.Head("GET")
	tunnel := testkit.Dial(t, h.Addr).Connect("tunnel.test:443", "User-Agent: TunnelBot/1.0")
	tunnel.Send("\x16\x03\x01\x00\x10 no true handshake")
	stream := testkit.Dial(t, h.Addr).Connect("proof.test:443").TLS(h2(t, h)).HTTP2()
	req := must.Get(http.NewRequestWithContext(context.Background(), "GET", "https://proof.test/long/ever", nil))(t)
	resp := must.Get(stream.RoundTrip(req))(t)
	t.Cleanup(func() { resp.Body.Close() })
	return []string{"/a/endless", "/a/upload", "/a/upgrade", "/long/ever"}
}

// What is still open when heed stops gets its outcome: cut off. Also a second
// signal, which ends heed at once, costs no decision.
func TestHeed_WhatIsOpenWhenHeedStopsIsRecordedAsCutOff(t *testing.T) {
	t.Parallel()
	for _, signals := range []int{1, 2} {
		t.Run(fmt.Sprint(signals, " signals"), func(t *testing.T) {
			s, addr, dir := newSite(t), rawSite(t), t.TempDir()
			path := filepath.Join(dir, "audit.db")
			config := fmt.Sprintf("drain = \"300ms\"\n[audit]\nfile = %q\n[[host]]\nmatch = [\"tunnel.test\"]\nhttps = \"tunnel\"\n", path)
			config = s.config(config)
			config = strings.Replace(config, "resolve = {", fmt.Sprintf("resolve = { \"raw.test:80\" = %q, \"tunnel.test:443\" = %q,", addr, addr), 1)
			h := testkit.Start(t, testkit.Options{Config: config})
			open := begin(t, h)
			for range signals {
				h.Signal(os.Interrupt)
			}
			h.Exit()
			verify(t, path)
			db := view(t, path)
			for _, target := range open {
				w := toldOf(t, db, target)
				must.True(t, w.verdict == "allow" && w.ends && w.truncated && strings.HasPrefix(w.err, "heed: cut off"),
					"%s: %+v", target, w)
			}
			var tunnels, ended int
			if err := db.QueryRow("SELECT count(*), count(status) FROM decisions WHERE host = 'tunnel.test'").Scan(&tunnels, &ended); err != nil || tunnels == 0 || ended != tunnels {
				t.Errorf("%d entries of the tunnel, %d have an end, %v", tunnels, ended, err)
			}
		})
	}
}

// An HTTP/2 client that takes back its streams at any moment leaves an entry for
// each that was decided on, and each has its end.
func TestHeed_StreamsThatAreTakenBackAreRecorded(t *testing.T) {
	t.Parallel()
	s, dir := newSite(t), t.TempDir()
	path := filepath.Join(dir, "audit.db")
	h := withRecord(t, s, path, "")
	conn := testkit.Dial(t, h.Addr).Connect("proof.test:443").TLS(h2(t, h)).HTTP2()
	for i := range 60 {
		ctx, cancel := context.WithCancel(context.Background())
		req := must.Get(http.NewRequestWithContext(ctx, "GET", fmt.Sprint("https://proof.test/long/", i), nil))(t)
		if i%3 == 0 {
			go cancel()
		}
		resp, err := conn.RoundTrip(req)
		if err == nil {
			_, _ = io.CopyN(io.Discard, resp.Body, int64(i*100))
			resp.Body.Close()
		}
		cancel()
	}
	h.Signal(os.Interrupt)
	h.Exit()
	verify(t, path)
	rows, _ := rowsAfter(t, path, 0)
	agree(t, rows, nil, s.requests())
	for _, r := range rows {
		must.True(t, r.status.Valid, "%+v has no end", r)
	}
	must.True(t, len(rows) >= 40, "%d entries", len(rows))
}
