package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heed/internal/sealed/process"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// slowSite answers nothing for as long as its client waits.
func slowSite(t *testing.T, address string) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", address))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			<-r.Context().Done()
		}
	})}
	t.Cleanup(func() { server.Close() })
	go server.Serve(l)
	return "http://" + l.Addr().String() + "/"
}

// Connections of a command that bypass heed are reported with their destination; those
// through heed are not.
func TestARunReportsConnectionsThatBypassHeed(t *testing.T) {
	testkit.Serve(t, "")
	around := slowSite(t, "127.0.0.2:0")
	direct := "curl -s -m 5 --noproxy '*' " + around // samples are far closer
	script := direct + "& " + direct + "& wait; curl -sS -o /dev/null " + testkit.Page(t)
	_, _, stderr := heedRun(t, "", "--", "sh", "-c", script)
	to := strings.TrimSuffix(strings.TrimPrefix(around, "http://"), "/")
	want := "heed: at least 2 connections bypassed heed (not judged): curl to " + to + " (2)\n  curl bypassed heed: --noproxy"
	must.True(t, strings.Contains(stderr, want), "it says\n%s\nwant in it\n%s", stderr, want)
	record := filepath.Join(t.TempDir(), "audit.db")
	_, _, stderr = heedRun(t, "", "--json", "--audit", record, "--", "sh", "-c", direct)
	events, err := exec.Command(testkit.Program(t, "sqlite3"), record, "SELECT kind, name, count, detail FROM event").CombinedOutput()
	want = "bypassed|curl|1|to " + to + "\n"
	must.True(t, err == nil && string(events) == want, "the record has %q, %v; want %q", events, err, want)
	var report runReport
	must.OK(t, json.Unmarshal([]byte(stderr), &report))
	if r := report.Bypass; !r.Watched || r.Connections != 1 || len(r.To) != 1 || r.To[0] != (bypassed{"curl", to, "tcp", 1}) {
		t.Errorf("it says %+v", r)
	}
}

// A connection that a shell has opened is the shell's, while a program reads from it as well.
func TestAConnectionIsThatOfTheProcessThatOpenedIt(t *testing.T) {
	to := strings.TrimSuffix(strings.TrimPrefix(slowSite(t, "127.0.0.2:0"), "http://"), "/")
	script := fmt.Sprintf("exec 3<>/dev/tcp/%s; cat <&3; :", strings.Replace(to, ":", "/", 1))
	cmd := exec.Command("sh", "-c", `bash -c "$1"; :`, "sh", script)
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start())
	w := &watcher{group: process.NewGroup(cmd.Process.Pid), done: map[uint64]bool{}, connectedOnce: map[uint64]bool{}, counts: bypassCounts{}}
	defer func() {
		for _, pid := range append(w.group.Members(), cmd.Process.Pid) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		cmd.Wait()
	}()
	testkit.Until(t, "cat has inherited the connection", func() bool {
		return slices.ContainsFunc(w.group.Members(), func(pid int) bool {
			return filepath.Base(process.Program(pid)) != "bash" && len(process.Sockets(pid)) > 0
		})
	})
	w.sample()
	got := w.counts.result()
	must.True(t, len(got.To) == 1 && got.To[0] == (bypassed{"bash", to, "tcp", 1}), "counted %+v", got)
}

// A command that obeys went round nothing, however long it waits.
func TestACommandThatObeysWentRoundNothing(t *testing.T) {
	testkit.Serve(t, "")
	_, _, stderr := heedRun(t, "", "--json", "--", "curl", "-s", "-m", "1", slowSite(t, "127.0.0.2:0"))
	var report runReport
	must.OK(t, json.Unmarshal([]byte(stderr), &report))
	if r := report.Bypass; !r.Watched || r.Connections != 0 || r.To == nil || report.Requests != 1 {
		t.Errorf("it says %+v of %d requests", r, report.Requests)
	}
}

// What is accepted, asked of a name server or stays within the run is no way
// round; UDP counts where HTTP/3 is spoken and when it lasts.
func TestOnlyConnectionsOutOfTheRunCount(t *testing.T) {
	at := netip.MustParseAddrPort
	w := &watcher{own: addresses([]string{"127.0.0.1:3128"}), done: map[uint64]bool{}, connectedOnce: map[uint64]bool{}, counts: bypassCounts{}}
	rows := []process.Socket{
		{Local: at("0.0.0.0:80"), Remote: at("0.0.0.0:0"), State: process.Listening, Inode: 1},
		{Local: at("127.0.0.1:80"), Remote: at("127.0.0.1:50000"), State: process.Connected, Inode: 2},   // accepted
		{Local: at("127.0.0.1:50000"), Remote: at("127.0.0.1:80"), State: process.Connected, Inode: 3},   // to the run's own server
		{Local: at("127.0.0.1:50001"), Remote: at("127.0.0.1:3128"), State: process.Connected, Inode: 4}, // to heed
		{Local: at("127.0.0.1:50002"), Remote: at("127.0.0.53:53"), State: process.Connected, Inode: 5},  // names
		{Local: at("127.0.0.1:50003"), Remote: at("192.0.2.1:443"), State: "02", Inode: 6},               // tried, at least
	}
	held := map[uint64]int{}
	for _, s := range rows {
		held[s.Inode] = 1 << 30
	}
	l := newListeners(rows, held)
	for _, s := range rows {
		w.tcp(s, 1<<30, l)
	}
	quic := process.Socket{Local: at("127.0.0.1:50004"), Remote: at("192.0.2.1:443"), State: process.Connected, Inode: 7}
	w.udp(quic, 1<<30)
	got := w.counts.result()
	must.True(t, got.Connections == 1 && got.To[0].To == "192.0.2.1:443" && got.To[0].Protocol == "tcp", "counted %+v", got)
	w.udp(quic, 1<<30)
	got = w.counts.result()
	must.True(t, got.Connections == 2, "with HTTP/3 %+v", got)
}

// The kernel's addresses are read for what they are.
func TestTheTablesOfSocketsAreRead(t *testing.T) {
	for _, network := range []string{"127.0.0.1:0", "[::1]:0"} {
		l := must.Get(net.Listen("tcp", network))(t)
		defer l.Close()
		var d net.Dialer
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c := must.Get(d.DialContext(ctx, "tcp", l.Addr().String()))(t)
		defer c.Close()
		found := false
		for _, s := range process.TCP(os.Getpid()) {
			found = found || s.Local.String() == c.LocalAddr().String() && s.Remote.String() == l.Addr().String() && s.State == process.Connected
		}
		if !found {
			t.Errorf("the connection to %s is not found", l.Addr())
		}
	}
}

func TestFiveDestinationsAreNamed(t *testing.T) {
	r := bypassCounts{}
	for i := range 9 {
		for range i + 1 {
			r.add(bypassed{Command: "curl", To: fmt.Sprint("192.0.2.1:", 8000+i), Protocol: "tcp"})
		}
	}
	var out strings.Builder
	r.result().print(&out)
	want := "heed: at least 45 connections bypassed heed (not judged): curl to 192.0.2.1:8008 (9), curl to 192.0.2.1:8007 (8), curl to 192.0.2.1:8006 (7), curl to 192.0.2.1:8005 (6), curl to 192.0.2.1:8004 (5), 10 more\n"
	must.Equal(t, out.String(), want)
}
