package command

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// slowSite answers nothing for as long as its client waits.
func slowSite(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			<-r.Context().Done()
		}
	})}
	t.Cleanup(func() { server.Close() })
	go server.Serve(l)
	return "http://" + l.Addr().String() + "/"
}

// A command that goes round heed is told of, with where it went; requests
// through heed are not among them.
func TestHeed_ARunSeesWhatGoesRoundIt(t *testing.T) {
	startDaemon(t, nil)
	around := slowSite(t, "127.0.0.2:0")
	script := "curl -s -m 1 --noproxy '*' " + around + "; curl -s -m 1 --noproxy '*' " + around + "; curl -sS -o /dev/null " + page(t)
	_, _, stderr := heedRun(t, RunCmd{Command: command("sh", "-c", script)})
	to := strings.TrimSuffix(strings.TrimPrefix(around, "http://"), "/")
	if want := "heed: went round heed: 2 (not judged): curl to " + to + " (2)\n"; !strings.HasSuffix(stderr, want) {
		t.Errorf("it says\n%s\nwant at its end\n%s", stderr, want)
	}
	_, _, stderr = heedRun(t, RunCmd{Command: command("sh", "-c", "curl -s -m 1 --noproxy '*' "+around), JSON: true})
	var report runReport
	if err := json.Unmarshal([]byte(stderr), &report); err != nil {
		t.Fatal(err)
	}
	if r := report.WentRound; !r.Watched || r.Connections != 1 || len(r.To) != 1 || r.To[0] != (roundTo{"curl", to, "tcp", 1}) {
		t.Errorf("it says %+v", r)
	}
}

// A command that obeys went round nothing, however long it waits.
func TestHeed_ACommandThatObeysWentRoundNothing(t *testing.T) {
	startDaemon(t, nil)
	_, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-s", "-m", "1", slowSite(t, "127.0.0.2:0")), JSON: true})
	var report runReport
	if err := json.Unmarshal([]byte(stderr), &report); err != nil {
		t.Fatal(err)
	}
	if r := report.WentRound; !r.Watched || r.Connections != 0 || r.To == nil || report.Requests != 1 {
		t.Errorf("it says %+v of %d requests", r, report.Requests)
	}
}

// What is accepted, asked of a name server or stays within the run is no way
// round; UDP counts where HTTP/3 is spoken and when it lasts.
func TestHeed_OnlyConnectionsOutOfTheRunCount(t *testing.T) {
	at := netip.MustParseAddrPort
	w := &watcher{own: addresses([]string{"127.0.0.1:3128"}), done: map[uint64]bool{}, twice: map[uint64]bool{}, rounds: rounds{}}
	rows := []socket{
		{at("0.0.0.0:80"), at("0.0.0.0:0"), stateListen, 1},
		{at("127.0.0.1:80"), at("127.0.0.1:50000"), stateConnected, 2},   // accepted
		{at("127.0.0.1:50000"), at("127.0.0.1:80"), stateConnected, 3},   // to the run's own server
		{at("127.0.0.1:50001"), at("127.0.0.1:3128"), stateConnected, 4}, // to heed
		{at("127.0.0.1:50002"), at("127.0.0.53:53"), stateConnected, 5},  // names
		{at("127.0.0.1:50003"), at("192.0.2.1:443"), "02", 6},            // tried, at least
	}
	held := map[uint64]int{}
	for _, s := range rows {
		held[s.inode] = 1 << 30
	}
	l := newListeners(rows, held)
	for _, s := range rows {
		w.tcp(s, 1<<30, l)
	}
	quic := socket{at("127.0.0.1:50004"), at("192.0.2.1:443"), stateConnected, 7}
	w.udp(quic, 1<<30)
	if got := w.rounds.result(); got.Connections != 1 || got.To[0].To != "192.0.2.1:443" || got.To[0].Protocol != "tcp" {
		t.Errorf("counted %+v", got)
	}
	w.udp(quic, 1<<30)
	if got := w.rounds.result(); got.Connections != 2 {
		t.Errorf("with HTTP/3 %+v", got)
	}
}

// The kernel's addresses are read for what they are.
func TestHeed_TheTablesOfSocketsAreRead(t *testing.T) {
	for _, network := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", network)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var d net.Dialer
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := d.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		found := false
		for _, s := range append(readSockets("/proc/self/net/tcp"), readSockets("/proc/self/net/tcp6")...) {
			found = found || s.local.String() == c.LocalAddr().String() && s.remote.String() == l.Addr().String() && s.state == stateConnected
		}
		if !found {
			t.Errorf("the connection to %s is not found", l.Addr())
		}
	}
}

func TestHeed_FiveDestinationsAreNamed(t *testing.T) {
	r := rounds{}
	for i := range 9 {
		for range i + 1 {
			r.add(roundKey{"curl", "tcp", netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(8000+i))})
		}
	}
	var out strings.Builder
	r.result().print(&out)
	want := "heed: went round heed: 45 (not judged): curl to 192.0.2.1:8008 (9), curl to 192.0.2.1:8007 (8), curl to 192.0.2.1:8006 (7), curl to 192.0.2.1:8005 (6), curl to 192.0.2.1:8004 (5), 10 more\n"
	if got := out.String(); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}
