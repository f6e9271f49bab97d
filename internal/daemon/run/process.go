package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/base/ownfile"
	"heed/internal/base/state"
	"heed/internal/config/clientenv"
	"heed/internal/control"
	"heed/internal/daemon/logs"
	"heed/internal/output/console"
)

// Timeouts of starting and joining a background heed.
const (
	startTimeout = 15 * time.Second // from the start of a background heed until it is ready
	joinTimeout  = 30 * time.Second // for all attempts to join
)

// JoinOrStart joins the heed of the state directory. When there is none, it starts one in
// the background with the settings of configFile. Concurrent callers start only one: the
// others wait for it and join.
func JoinOrStart(ctx context.Context, stateDir, configFile string, j *control.JoinRequest) (*control.RunClient, error) {
	c := control.NewClient(stateDir)
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for ctx.Err() == nil {
		m, err := c.Join(ctx, j)
		var refused *control.Refusal
		switch {
		case err == nil:
			return m, nil
		case errors.Is(err, control.ErrNotRunning):
		case errors.As(err, &refused) && (refused.Again || refused.Retire && c.Retire(ctx)):
		default:
			return nil, err
		}
		if err := startOnce(ctx, stateDir, configFile); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no heed could be joined in %s within %v\nSee %s", stateDir, joinTimeout, filepath.Join(stateDir, state.BackgroundLog))
}

// startOnce starts a background heed unless one is running. It checks that under a lock,
// so that concurrent callers start only one.
func startOnce(ctx context.Context, stateDir, configFile string) error {
	gate, err := os.OpenFile(filepath.Join(stateDir, "start.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the state directory cannot be locked: %w\nMake it writable, or set HEED_STATE to another place", err)
	}
	defer gate.Close()
	if err := ownfile.WaitLock(gate); err != nil {
		return fmt.Errorf("the state directory cannot be locked: %w\nSet HEED_STATE to a directory on a local file system", err)
	}
	if status, err := control.ReadStatus(ctx, stateDir); err == nil && !status.Ending {
		return nil
	}
	return startBackground(ctx, stateDir, configFile)
}

// startBackground starts this program as a detached background heed and waits until it
// is ready.
func startBackground(ctx context.Context, stateDir, configFile string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the path of the heed program is unknown: %w\nStart it yourself with `heed serve`", err)
	}
	log, err := os.OpenFile(filepath.Join(stateDir, state.BackgroundLog), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the log of the background heed cannot be written: %w\n%s", err, state.Remedy(err))
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	args := []string{"serve", "--background", "--no-config"} // not those of the environment
	if configFile != "" {
		args = []string{"serve", "--background", "--config", configFile}
	}
	cmd := exec.Command(self, args...)
	cmd.Env = backgroundEnviron(os.Environ(), stateDir)
	cmd.Dir = stateDir                  // the user's directory may be removed
	cmd.Stdout, cmd.Stderr = write, log // messages before it is ready go to the pipe, a crash to the log
	detach(cmd)
	err = cmd.Start()
	write.Close()
	if err != nil {
		return fmt.Errorf("the background heed cannot be started: %w\nStart it yourself with `heed serve`", err)
	}
	defer cmd.Process.Release() // it continues after this process has ended
	return awaitReady(ctx, read, cmd.Process)
}

// awaitReady waits until the background heed prints to pipe that it is ready, or returns
// the error that it printed instead.
func awaitReady(ctx context.Context, pipe *os.File, p *os.Process) error {
	end := time.Now().Add(startTimeout)
	if limit, ok := ctx.Deadline(); ok && limit.Before(end) {
		end = limit
	}
	_ = pipe.SetReadDeadline(end) // pipes support deadlines
	text, err := io.ReadAll(io.LimitReader(pipe, 16<<10))
	words := strings.TrimSpace(string(text))
	switch {
	case words == control.ReadyWord, words == control.HeldWord:
		return nil
	case err != nil:
		_ = p.Kill() // it may have ended already
		return fmt.Errorf("the background heed was not ready in time\nStart it yourself with `heed serve` to see why")
	case words == "":
		return errors.New("the background heed ended before it was ready\nStart it yourself with `heed serve` to see why")
	}
	return errors.New(strings.TrimPrefix(words, "heed: "))
}

// backgroundEnviron returns environ without the variables of one run: its proxies and
// CAs are part of its JoinRequest.
func backgroundEnviron(environ []string, state string) []string {
	own := clientenv.NamesOf(clientenv.ProxyURL, clientenv.Empty, clientenv.NoHost, clientenv.Bundle)
	own = append(own, "SSL_CERT_DIR", "HEED_STATE")
	environ = slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(own, name)
	})
	return append(environ, "HEED_STATE="+state)
}

// ReadStream starts reading the stream of m: log lines are written to log, and notices to
// stderr if notices is true. The function that it returns ends the run and returns its
// summary; nil when the heed that it joined has ended.
func ReadStream(m *control.RunClient, log, stderr io.Writer, notices bool) (finish func(*control.RunEnd) *counts.Summary) {
	summary := make(chan *counts.Summary, 1)
	go func() { summary <- readStream(m, log, stderr, notices) }()
	return func(end *control.RunEnd) *counts.Summary {
		ctx, cancel := context.WithTimeout(context.Background(), control.EndTimeout)
		defer cancel()
		_ = m.End(ctx, end) // on failure, the stream has ended or the timeout applies
		select {
		case s := <-summary:
			return s
		case <-ctx.Done():
			return nil
		}
	}
}

// readStream reads the stream of m to its end and returns the summary; nil when the stream
// ended without one.
func readStream(m *control.RunClient, log, stderr io.Writer, notices bool) *counts.Summary {
	for complete := true; ; {
		line, err := m.Next()
		switch {
		case err != nil:
			return nil
		case line.Summary != nil:
			if line.Dropped > 0 {
				fmt.Fprintf(stderr, "heed: the log is not complete: %s could not be sent, since the log was not written fast enough\n", console.Plural(line.Dropped, "line"))
			}
			return line.Summary
		case line.Notice != "" && notices:
			fmt.Fprintln(stderr, "heed:", console.Printable(line.Notice))
		case line.Log != nil && complete:
			if _, err := fmt.Fprintf(log, "%s\n", line.Log); err != nil {
				complete = false
				fmt.Fprintf(stderr, "heed: the log is not complete: %v\n", err)
			}
		}
	}
}

// child runs the command and returns its exit status as a shell does. The command is in
// our process group, so that it is in the terminal's foreground and stops and continues
// with us.
func (r *run) child(environ []string) (status int, err error) {
	cmd := exec.Command(r.path, r.args[1:]...)
	cmd.Args[0] = r.args[0]
	cmd.Env = environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.app.Stdin, r.app.Stdout, r.app.Stderr
	signals := notifySignals()
	defer signal.Stop(signals)
	adoptOrphans()
	if err := cmd.Start(); err != nil {
		return 0, cannotRun(r.app, r.args[0], err)
	}
	watcher := watch(cmd.Process.Pid, r.own)
	defer func() { r.bypass = watcher.finish() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	passSignals(signals, cmd.Process, ended)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		fmt.Fprintf(r.app.Stderr, "heed: %v\n", err)
	}
	return exitStatus(cmd.ProcessState), nil
}

// notifySignals returns a channel of the signals that a run passes to its command.
func notifySignals() chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, s := range passedOn {
		if !signal.Ignored(s) { // ignored signals (nohup) are inherited by the command
			signal.Notify(signals, s)
		}
	}
	return signals
}

// passSignals passes signals to the command p until ended is closed.
func passSignals(signals <-chan os.Signal, p *os.Process, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if !fromKeyboard(s) {
				_ = p.Signal(s) // it may have ended already
			}
		case <-ended:
			return
		}
	}
}

// shellWords are commands that only a shell knows.
var shellWords = []string{"alias", "cd", "eval", "exec", "export", "set", "source", "ulimit", "umask", "unset", "."}

// cannotRun prints why the command cannot be run and returns the status of a shell: 127
// when the command, or the interpreter of a script, is missing, 126 otherwise.
func cannotRun(a *console.App, name string, err error) error {
	missing := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	if lookup, ok := errors.AsType[*exec.Error](err); ok {
		err = lookup.Err
		if missing {
			err = errors.New("there is no such command")
		}
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if _, found := exec.LookPath(name); missing && found == nil {
		err = errors.New("the interpreter that its first line names, or its loader, is missing; a file with the line ends of Windows names none that exists")
	}
	fmt.Fprintf(a.Stderr, "heed: %s: the command cannot be run: %v\n", console.Printable(name), err)
	switch {
	case missing && (strings.Contains(name, " ") || slices.Contains(shellWords, name)):
		fmt.Fprintln(a.Stderr, "A line or a word of a shell needs the shell: heed run -- sh -c 'LINE'")
	case missing && (strings.HasPrefix(name, "-") || strings.HasPrefix(name, "—")):
		fmt.Fprintln(a.Stderr, "Write the flags of heed run with two hyphens, before the two that the command follows: heed run --sealed -- CMD")
	case errors.Is(err, fs.ErrPermission):
		fmt.Fprintln(a.Stderr, "Make the file executable (chmod +x), or name its interpreter before it")
	}
	if missing {
		return console.Exit(127)
	}
	return console.Exit(126)
}

// exitStatus returns the status as a shell does: 128 plus the signal's number for a
// command that a signal ended.
func exitStatus(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return console.SignalStatus(w.Signal())
	}
	return state.ExitCode()
}

// runLog is the log of a run. It may be a slow file, or a pipe whose reader is slow.
type runLog struct {
	*logs.Writer
	closeFile func() error
}

// openRunLog opens the file of --log; "-" is stderr.
func openRunLog(name string, stderr io.Writer) (*runLog, error) {
	if name == "-" {
		return &runLog{logs.NewWriter(stderr), func() error { return nil }}, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the log cannot be written: %w\nName another file with --log", err)
	}
	return &runLog{logs.NewWriter(f), f.Close}, nil
}

// wait returns when all lines are written, when writing has failed for EndTimeout, or at a
// signal. It calls notify once when writing has been blocked for EndTimeout, such as by a
// slow reader of a pipe.
func (l *runLog) wait(signals <-chan os.Signal, notify func()) error {
	begun, notified := time.Now(), false
	for {
		err := l.Drain(logs.RetryEvery)
		long := time.Since(begun) > control.EndTimeout
		switch {
		case err == nil, len(signals) > 0, long && !errors.Is(err, logs.ErrPending):
			return err
		case long && !notified:
			notified = true
			notify()
		}
	}
}
