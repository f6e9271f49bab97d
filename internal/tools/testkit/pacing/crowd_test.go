package pacing

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// perWaiter is what a waiting request may take beyond its connection, in octets, of
// which 16 KiB are the stack of its goroutine.
const perWaiter = 24 << 10

// Ten thousand requests wait for a thousand sites. Each takes less than perWaiter
// beyond its connection, none holds anything of the site, and when their clients
// have left nothing is left of them.
func TestHeed_TenThousandWait(t *testing.T) {
	hosts, waiters := make([]string, tenth(1000)), tenth(10_000)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("site-%d.test", i)
	}
	hosts = append(hosts, "free.test")
	var env []string
	if testkit.Full {
		env = []string{"GOGC=10"} // little garbage, so that what waits is seen
	}
	b := newBed(t, testkit.GaugeOptions{Hosts: hosts, Plain: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that what is left afterwards is not for later requests
		if r.URL.Path == "/robots.txt" && r.Host != "free.test" {
			io.WriteString(w, delayed("600"))
			return
		}
		io.WriteString(w, "ok")
	})}, "max_wait = \"24h\"\n[limits]\nconnections = 10050\n"+
		"[[client]]\nname = \"first\"\nuser_agent = \"first/*\"\nmode = \"observe\"\n", env...)
	calm := newBed(t, testkit.GaugeOptions{Plain: true}, "")
	calm.load(t) // by then all of it runs
	idle, _ := calm.Goroutines()
	// Every site has been visited, by somebody who does not wait, and so its next
	// visitors do.
	conns := make([]*waiter, waiters)
	eachOf(t, waiters, func(n int) {
		host := "free.test"
		if n < len(hosts)-1 {
			host = hosts[n]
		}
		conns[n] = b.waiter(t, n)
		conns[n].send(t, "first/1.0", host, "/first")
		conns[n].status(t, http.StatusOK)
	})
	connected := b.memory(t)
	eachOf(t, waiters, func(n int) { conns[n].send(t, "pacer/1.0", hosts[n%(len(hosts)-1)], "/waits") })
	b.awaitWaiting(t, waiters)
	waiting := b.memory(t)
	each := (waiting - connected) / int64(waiters)
	t.Logf("%d requests wait for %d sites: %d octets each, beyond their connections; heed takes %d MiB, %d MiB before they asked",
		waiters, len(hosts)-1, each, waiting>>20, connected>>20)
	must.True(t, !testkit.Full || each <= perWaiter, "a waiting request takes %d octets", each)
	if early := b.site.Await(t, 0, func(a testkit.Arrival) bool { return a.Target == "/waits" }); len(early) > 0 {
		t.Errorf("%d did not wait", len(early))
	}
	for _, c := range conns {
		_ = c.Conn.(*net.TCPConn).SetLinger(0) // an end could be that of the request alone
		c.Close()
	}
	b.await(t, "no connection and no request is left", func(is load) bool { return is == (load{}) })
	// The goroutine of a connection ends a moment after it has closed it.
	count, stacks := b.Goroutines()
	must.True(t, count <= idle+waiters/100, "%d goroutines are left, an idle heed has %d:\n%s", count, idle, stacks)
}

// eachOf does something for each of n numbers, some at a time.
func eachOf(t *testing.T, n int, do func(n int)) {
	var busy sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		busy.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && !t.Failed(); i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	busy.Wait()
}

// waiter is a connection to heed on which requests are spoken in octets, so that
// the test itself stays small.
type waiter struct {
	net.Conn
	read *bufio.Reader
}

// waiter connects from an address that it shares with 249 others.
func (b *bed) waiter(t *testing.T, n int) *waiter {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(n/250+1))}
	c, err := (&net.Dialer{LocalAddr: from, Timeout: testkit.Patience}).Dial("tcp", b.Addr)
	if err != nil {
		t.Error(err)
		return &waiter{}
	}
	t.Cleanup(func() { c.Close() })
	return &waiter{c, bufio.NewReaderSize(c, 64)}
}

func (w *waiter) send(t *testing.T, agent, host, path string) {
	if _, err := fmt.Fprintf(w, "GET http://%s%s HTTP/1.1\r\nHost: %[1]s\r\nUser-Agent: %[3]s\r\n\r\n", host, path, agent); err != nil {
		t.Error(err)
	}
}

func (w *waiter) status(t *testing.T, want int) {
	w.SetReadDeadline(time.Now().Add(2 * testkit.Patience))
	resp, err := http.ReadResponse(w.read, nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != want {
		t.Errorf("%s, %v: %s", resp.Status, err, body)
	}
}

// memory is what heed has of the machine's memory, in bytes.
func (b *bed) memory(t *testing.T) int64 {
	t.Helper()
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/statm", b.Pid())))(t)
	var size, pages int64
	must.Get(fmt.Sscan(string(text), &size, &pages))(t)
	return pages * int64(os.Getpagesize())
}

// awaitWaiting waits until heed has so many requests under way.
func (b *bed) awaitWaiting(t *testing.T, requests int) {
	t.Helper()
	b.await(t, fmt.Sprintf("%d requests are under way", requests), func(is load) bool { return is.Requests == requests })
}

// await waits until what clients hold of heed is as wanted.
func (b *bed) await(t *testing.T, what string, wanted func(load) bool) {
	t.Helper()
	late := time.After(4 * testkit.Patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		is := b.load(t)
		if wanted(is) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not in time: %s; clients hold %+v", what, is)
		}
	}
}

// load is what clients hold of heed at present.
type load struct{ Requests, Connections int }

func (b *bed) load(t *testing.T) load {
	t.Helper()
	out, _ := b.heed("status", "--json").Output() // its exit status is 1 when heed is unhealthy
	var status struct{ Load load }
	if err := json.Unmarshal(out, &status); err != nil {
		t.Fatalf("heed status: %v: %s", err, out)
	}
	return status.Load
}

// heed is a command that concerns the running heed.
func (b *bed) heed(args ...string) *exec.Cmd {
	cmd := exec.Command(testkit.Binary(b.t), args...)
	cmd.Env = []string{"HEED_STATE=" + b.State, "HOME=" + b.State, testkit.RaceOptions}
	return cmd
}
