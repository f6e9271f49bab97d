//go:build unix

package systemd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestOpen_WithoutAManagerNothingIsSent(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	m := Open(slog.New(slog.DiscardHandler))
	must.Need(t, m == nil, "Open returned %+v", m)
	m.Ready("")
	m.Reloading()
	m.Stopping(time.Second, "")
	m.Watch(t.Context(), nil)
}

// A manager whose socket is gone is logged, and heed goes on.
func TestSend_AManagerThatIsGoneIsLogged(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	t.Setenv("WATCHDOG_USEC", "soon")
	var log bytes.Buffer
	m := Open(slog.New(slog.NewTextHandler(&log, nil)))
	m.Ready("serving")
	for _, part := range []string{"WATCHDOG_USEC", "cannot be reached at NOTIFY_SOCKET", `message="READY=1"`} {
		must.True(t, strings.Contains(log.String(), part), "the log %q lacks %q", log.String(), part)
	}
}

func TestWatch_OnlyAnAliveProcessGivesASign(t *testing.T) {
	dir := must.Get(os.MkdirTemp("/tmp", "heed-notify-"))(t)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "socket")
	manager := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "4000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	var log bytes.Buffer
	m := Open(slog.New(slog.NewTextHandler(&log, nil)))

	ctx, cancel := context.WithCancel(t.Context())
	checks, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		m.Watch(ctx, func(ctx context.Context) error {
			if checks++; checks <= 5 {
				<-ctx.Done() // it hangs; the context ends when the next check is due
				return errors.New("hangs")
			}
			return nil
		})
	}()
	buffer := make([]byte, 64)
	manager.SetReadDeadline(time.Now().Add(testkit.Patience))
	n, err := manager.Read(buffer)
	cancel()
	<-ended
	must.True(t, err == nil && string(buffer[:n]) == "WATCHDOG=1", "the message is %q, %v", buffer[:n], err)
	must.True(t, checks >= 6 && strings.Count(log.String(), "hangs") == 5,
		"the first sign of life came at check %d; the log is %q", checks, log.String())
}
