package soak

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const (
	mostIdle   = 5000      // tunnels that may be open
	idleMemory = 400 << 20 // is what heed takes with them, at the most
	perAddress = 250       // tunnels of one client address
	atOnce     = 16        // clients that connect
)

// Five thousand clients that keep an intercepted connection open and say nothing
// cost no more than 400 MiB, still have their connection when they speak again,
// and leave nothing behind.
func TestHeed_IdleTunnels(t *testing.T) {
	tunnels := mostIdle / 10
	if testkit.Full && !testkit.Race { // which multiplies the memory
		tunnels = mostIdle
	}
	ledger := newLedger()
	sites := newWeb(t, ledger)
	h := testkit.Start(t, testkit.Options{Config: sites.config, EachLine: ledger.line})
	before := usageOf(t, h)
	config := &tls.Config{RootCAs: h.Roots(), ServerName: "site-0.test", ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	open := make([]*tunnel, tunnels)
	each := func(what string, do func(n int) error) {
		t.Helper()
		var failed atomic.Int64
		var busy sync.WaitGroup
		for worker := range atOnce {
			busy.Go(func() {
				for n := worker; n < tunnels; n += atOnce {
					if err := do(n); err != nil && failed.Add(1) == 1 {
						t.Errorf("%s, tunnel %d: %v", what, n, err)
					}
				}
			})
		}
		busy.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	each("opening", func(n int) (err error) {
		open[n], err = openTunnel(h.Addr, n/perAddress, config)
		if err == nil {
			err = open[n].get(ledger)
		}
		return err
	})
	is := usageOf(t, h)
	t.Logf("%d idle tunnels: %d MiB and %d descriptors, before %d MiB and %d", tunnels, is.resident>>20, is.descriptors, before.resident>>20, before.descriptors)
	must.True(t, is.resident <= idleMemory && is.descriptors >= tunnels, "with %d tunnels heed holds %+v", tunnels, is)
	each("speaking again", func(n int) error { return open[n].get(ledger) })
	each("closing", func(n int) error { return open[n].conn.Close() })
	sites.hangUp()
	if after := rest(t, h, usage{before.descriptors, 1 << 40}, testkit.Patience); after.descriptors > before.descriptors {
		t.Errorf("%d descriptors are left, there were %d: %q", after.descriptors, before.descriptors, descriptors(h))
	}
	until(t, "every answer is in the log", ledger.settled)
	ledger.check(t)
	if count, stacks := h.Goroutines(); count > idleGoroutines(t) {
		t.Errorf("%d goroutines are left:\n%s", count, stacks)
	}
}

// tunnel is an intercepted connection to a site.
type tunnel struct {
	conn net.Conn
	read *bufio.Reader
}

// openTunnel opens one from a client address of its own number.
func openTunnel(proxy string, address int, config *tls.Config) (*tunnel, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(address+1))}
	c, err := (&net.Dialer{LocalAddr: from, Timeout: testkit.Patience}).Dial("tcp", proxy)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s:443 HTTP/1.1\r\nHost: %[1]s:443\r\n\r\n", config.ServerName); err != nil {
		return nil, err
	}
	read := bufio.NewReaderSize(c, 1<<10)
	resp, err := http.ReadResponse(read, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("CONNECT was answered %s", resp.Status)
	}
	secure := tls.Client(c, config)
	return &tunnel{secure, bufio.NewReaderSize(secure, 1<<10)}, secure.Handshake()
}

// get asks for a page of site-0.test.
func (u *tunnel) get(l *ledger) error {
	n := l.next.Add(1) - 1
	for hostOf(n) != "site-0.test" || kindOf(n) != page {
		n = l.next.Add(1) - 1
	}
	r, err := http.NewRequest(http.MethodGet, "https://site-0.test/page/"+strconv.FormatUint(n, 10), nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "soak/1.0")
	if err := r.Write(u.conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(u.read, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	l.answered.add(n)
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || len(body) != len(bodyOf(n)) {
		return fmt.Errorf("%s with %d bytes, %v", resp.Status, len(body), err)
	}
	l.fromSite.add(n)
	l.whole.add(n)
	return nil
}
