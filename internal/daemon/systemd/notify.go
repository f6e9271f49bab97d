// Package systemd reports the state of heed to the service manager that started it
// (systemd, sd_notify(3)), with github.com/coreos/go-systemd. It finds the manager in the
// environment of the process: NOTIFY_SOCKET, and WATCHDOG_USEC with WATCHDOG_PID. It also
// recognizes the journal.
package systemd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/journal"
)

// ToJournal reports whether w is standard error, and this is the stream of systemd's journal that
// JOURNAL_STREAM names by its device and inode (systemd.exec(5)). A stream that was redirected
// since is another one.
func ToJournal(w io.Writer) bool {
	is, err := journal.StderrIsJournalStream()
	return w == io.Writer(os.Stderr) && err == nil && is
}

// Manager is the service manager that started this process. Its methods are safe for
// concurrent use. Those of nil do nothing.
type Manager struct {
	log      *slog.Logger
	watchdog time.Duration // without a sign of life for this time, the manager ends heed; 0: it does not
}

// Open returns the service manager; nil when the environment names none. Messages that
// cannot be sent are logged to log.
func Open(log *slog.Logger) *Manager {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	m := &Manager{log: log}
	var err error
	if m.watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn("the service manager's watchdog is not used: WATCHDOG_USEC or WATCHDOG_PID cannot be read", "error", err)
	}
	return m
}

// Ready reports that heed serves requests, after its start or a reload. status is one
// sentence for people.
func (m *Manager) Ready(status string) { m.send(daemon.SdNotifyReady, statusLine(status)) }

// Reloading reports that heed reads its settings again. Ready must follow, also when they
// cannot be used. The message has the time that Type=notify-reload requires.
func (m *Manager) Reloading() {
	m.send(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

// Stopping reports that heed ends, within the time given, for which the manager waits.
func (m *Manager) Stopping(within time.Duration, status string) {
	m.send(daemon.SdNotifyStopping, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", within.Microseconds()), statusLine(status))
}

// checksPerWatchdog is how often the process is checked in the time after which the manager
// ends it, so that one slow check does not end it.
const checksPerWatchdog = 4

// Watch gives the manager a sign of life whenever alive returns nil, until ctx ends. It
// returns immediately when the manager has no watchdog. The context of alive ends when the
// next check is due.
func (m *Manager) Watch(ctx context.Context, alive func(context.Context) error) {
	if m == nil || m.watchdog <= 0 {
		return
	}
	every := m.watchdog / checksPerWatchdog
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		m.check(ctx, every, alive)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (m *Manager) check(ctx context.Context, within time.Duration, alive func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := alive(ctx); err == nil {
		m.send(daemon.SdNotifyWatchdog)
	} else {
		m.log.Error("heed does not answer itself; without an answer the service manager ends it", "watchdog", m.watchdog, "error", err)
	}
}

// statusLine returns the assignment of a status, which must not contain a newline.
func statusLine(status string) string {
	return "STATUS=" + strings.Join(strings.Fields(status), " ")
}

// send sends the lines as one message.
func (m *Manager) send(lines ...string) {
	if m == nil {
		return
	}
	if _, err := daemon.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		m.log.Warn("the service manager cannot be reached at NOTIFY_SOCKET", "message", lines[0], "error", err)
	}
}
