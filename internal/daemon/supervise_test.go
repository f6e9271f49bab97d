//go:build unix

package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// manager is the socket of a service manager.
type manager struct {
	*testing.T
	conn *net.UnixConn
	path string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "heed-manager-") // the path of a socket is short
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	conn := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	t.Cleanup(func() { conn.Close() })
	return &manager{t, conn, path}
}

// await returns the lines of the next message that begins with first; signs of life
// before it are passed over.
func (m *manager) await(first string) map[string]string {
	m.Helper()
	m.conn.SetReadDeadline(time.Now().Add(testkit.Patience))
	for buffer := make([]byte, 4096); ; {
		n, err := m.conn.Read(buffer)
		must.OK(m, err, "no message %s", first)
		text := string(buffer[:n])
		switch begin, _, _ := strings.Cut(text, "\n"); begin {
		case first:
			all := map[string]string{}
			for line := range strings.SplitSeq(text, "\n") {
				name, value, _ := strings.Cut(line, "=")
				all[name] = value
			}
			return all
		case "WATCHDOG=1":
		default:
			m.Fatalf("the message is %q, want %s", text, first)
		}
	}
}

func (m *manager) expect(message map[string]string, name, part string) {
	m.Helper()
	must.True(m, strings.Contains(message[name], part) && message[name] != "",
		"%s is %q, want %q in it", name, message[name], part)
}

// systemctl start, reload, a reload of settings that are wrong, and stop.
func TestHeed_ReportsItsLifeToTheServiceManager(t *testing.T) {
	m := newManager(t)
	heed := testkit.Start(t, testkit.Options{
		Config: testkit.AnyPort + "drain = \"7s\"\n",
		Env:    []string{"NOTIFY_SOCKET=" + m.path, "WATCHDOG_USEC=200000"},
	})
	m.expect(m.await("READY=1"), "STATUS", "listening on "+heed.Addr)
	m.await("WATCHDOG=1")
	m.await("WATCHDOG=1")

	heed.Signal(syscall.SIGHUP)
	m.expect(m.await("RELOADING=1"), "MONOTONIC_USEC", "")
	m.expect(m.await("READY=1"), "STATUS", heed.Addr)

	testkit.Write(t, heed.File, testkit.AnyPort+"drain = 7\n")
	heed.Signal(syscall.SIGHUP)
	m.await("RELOADING=1")
	m.expect(m.await("READY=1"), "STATUS", "the settings were not reloaded: "+heed.File)

	heed.Signal(syscall.SIGTERM)
	stopping := m.await("STOPPING=1")
	m.expect(stopping, "STATUS", "7s")
	if within, err := time.ParseDuration(stopping["EXTEND_TIMEOUT_USEC"] + "us"); err != nil || within < 7*time.Second+stopSlack {
		t.Errorf("heed asks for %q to stop: %v", stopping["EXTEND_TIMEOUT_USEC"], err)
	}
	must.Equal(t, heed.Exit(), 0, "the exit status")
}

func TestAnswers(t *testing.T) {
	open := func(serve func(net.Conn)) string {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		t.Cleanup(func() { l.Close() })
		if serve != nil {
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					serve(c)
				}
			}()
		}
		return l.Addr().String()
	}
	closed := open(nil)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.Close()
	for _, c := range []struct {
		name, addr string
		alive      bool
	}{
		{"a listener that does not accept connections", closed, false},
		{"no listener", l.Addr().String(), false},
		{"a listener that closes connections at its limit", open(func(c net.Conn) { c.Close() }), true},
		{"a listener that answers", testkit.Start(t, testkit.Options{}).Addr, true},
	} {
		within := testkit.Patience
		if c.addr == closed {
			within = 50 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		err := answers(ctx, c.addr)
		must.True(t, (err == nil) == c.alive, "%s: %v", c.name, err)
		cancel()
	}
}

// A heed that hangs gives no signs of life, and the log has the reason.
func TestHeed_ThatHangsGivesNoSignOfLife(t *testing.T) {
	hangs := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer hangs.Close()
	d := &daemon{listeners: listeners{all: []*sharedListener{{Listener: hangs}}}}
	d.stopping, d.stop = context.WithCancel(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := d.alive(ctx)
	must.True(t, errors.Is(err, os.ErrDeadlineExceeded) && strings.Contains(err.Error(), hangs.Addr().String()), "alive: %v", err)
	d.stop()
	must.OK(t, d.alive(ctx), "alive, while it stops")
}
