package daemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/base/state"
	"heed/internal/check"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/ca"
)

// startDaemon runs a heed without a shared listener in this process until the
// test ends, and returns it with its state directory.
func startDaemon(t *testing.T, change func(*daemon)) (*daemon, string) {
	t.Helper()
	stateDir := t.TempDir()
	t.Setenv("HEED_STATE", stateDir)
	cfg := must.Get(config.Load("", testkit.BuiltIn(t)))(t)
	authority := must.Get(ca.Open(stateDir, time.Now))(t)
	app := &console.App{Environ: []string{}, Defaults: testkit.BuiltIn(t), Now: time.Now}
	d := &daemon{background: true, resources: &resources{
		authority: authority, log: slog.New(slog.DiscardHandler), level: &slog.LevelVar{}, decisionLog: audit.NewLog(slog.DiscardHandler, nil), lostLines: func() uint64 { return 0 },
		Options: route.Options{Turns: pace.New(pace.Config{})},
	}}
	must.OK(t, d.prepare(app, &serveEnv{cfg: cfg, joinHash: cfg.JoinHash(), state: stateDir}))
	if change != nil {
		change(d)
	}
	lock := must.Get(state.Acquire(stateDir, 0))(t)
	control := must.Get(listenControl(stateDir, d))(t)
	must.OK(t, lock.Publish(state.Holder{PID: os.Getpid(), Background: d.background, Socket: control.path}))
	served := make(chan error, 1)
	go func() { served <- control.serve() }()
	t.Cleanup(func() {
		d.shutdown(control)
		must.OK(t, <-served, "the control socket")
		lock.Release()
	})
	return d, stateDir
}

// joinAs joins as a run of the same version and settings does, with changes.
func joinAs(t *testing.T, d *daemon, state string, change func(*control.JoinRequest)) (*control.RunClient, error) {
	t.Helper()
	j := &control.JoinRequest{Version: console.Version(), Config: d.current.Load().cfg.JoinHash()}
	if change != nil {
		change(j)
	}
	m, err := control.NewClient(state).Join(t.Context(), j)
	if err == nil {
		t.Cleanup(m.Leave)
	}
	return m, err
}

// through fetches target through the proxy at addr.
func through(t *testing.T, addr, target string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr}), DisableKeepAlives: true,
	}}
	resp := must.Get(client.Get(target))(t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	return string(body)
}

func TestHeed_ControlSocketIsForItsOwnerOnly(t *testing.T) {
	_, state := startDaemon(t, nil)
	info := must.Get(os.Lstat(filepath.Join(state, "control.sock")))(t)
	must.True(t, info.Mode() == fs.ModeSocket|0o600, "mode %v, want a socket with 0600", info.Mode())
}

func TestHeed_ARunHasAListenerOfItsOwnForAsLongAsItLasts(t *testing.T) {
	d, state := startDaemon(t, nil)
	target := testkit.Page(t)
	first := must.Get(joinAs(t, d, state, nil))(t)
	second := must.Get(joinAs(t, d, state, nil))(t)
	must.True(t, first.Listen != second.Listen, "both runs listen on %s", first.Listen)
	through(t, first.Listen, target)
	through(t, first.Listen, target)
	through(t, second.Listen, target)

	must.OK(t, first.End(t.Context(), nil))
	line, err := first.Next()
	must.Need(t, err == nil && line.Summary != nil, "the last line is %+v (%v), want a summary", line, err)
	must.Equal(t, line.Summary.Requests, 2, "requests of the first run")
	_, err = first.Next()
	must.True(t, errors.Is(err, io.EOF), "after the summary: %v, want the end", err)
	refuses(t, first.Listen)
	through(t, second.Listen, target)
	testkit.Until(t, "heed has counted the requests of both", func() bool { return d.counts.Hour(time.Now()).Requests == 4 })
}

// refuses asserts that no program listens at addr.
func refuses(t *testing.T, addr string) {
	t.Helper()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Errorf("%s still takes connections", addr)
	}
}

// keepAlive asks for target through the proxy at addr and returns the
// connection, open and idle.
func keepAlive(t *testing.T, addr, target string) net.Conn {
	t.Helper()
	c := must.Get(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testkit.Patience))
	host := strings.TrimPrefix(target, "http://")
	must.Get(io.WriteString(c, "GET "+target+"/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n"))(t)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	must.Need(t, err == nil && resp.StatusCode == 200, "through heed: %v, %v", resp, err)
	io.Copy(io.Discard, resp.Body)
	return c
}

// awaitClose waits until the other end closes c.
func awaitClose(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := c.Read(make([]byte, 1))
	must.Need(t, errors.Is(err, io.EOF), "waiting for the connection's end: %v", err)
}

func TestHeed_ARunGetsItsSummaryWhenHeedStops(t *testing.T) {
	d, state := startDaemon(t, nil)
	m := must.Get(joinAs(t, d, state, nil))(t)
	through(t, m.Listen, testkit.Page(t))
	d.stop()
	line, err := m.Next()
	must.Need(t, err == nil && line.Summary != nil && line.Summary.Requests == 1,
		"the last line is %+v (%v), want a summary of one request", line, err)
	_, err = joinAs(t, d, state, nil)
	must.True(t, err != nil, "a heed that is ending lets a run join")
}

func TestHeed_AJoinThatCannotBeReadIsRefused(t *testing.T) {
	_, state := startDaemon(t, nil)
	path := must.Get(control.SocketPath(state))(t)
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	resp := must.Get(client.Post("http://heed/runs", "application/json", strings.NewReader("nonsense")))(t)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must.True(t, err == nil && resp.StatusCode == http.StatusBadRequest && strings.Contains(string(text), "cannot be parsed"),
		"status %d, %q, %v", resp.StatusCode, text, err)
}

func TestHeed_StatusSaysWhatIsGoingOn(t *testing.T) {
	d, state := startDaemon(t, nil)
	m := must.Get(joinAs(t, d, state, nil))(t)
	through(t, m.Listen, testkit.Page(t))
	s := must.Get(control.ReadStatus(t.Context(), state))(t)
	if s.PID != os.Getpid() || !s.Background || s.Version != console.Version() || s.ConfigHash != d.current.Load().cfg.Hash() {
		t.Errorf("it says of itself %+v", s.Info)
	}
	must.True(t, len(s.Listeners) == 0 && len(s.Runs) == 1 && s.Runs[0] == m.Listen,
		"listeners %v, runs %v", s.Listeners, s.Runs)
	must.True(t, s.Hour.Requests == 1 && s.CA.DaysLeft >= 3000 && s.CA.Path == d.authority.CertPath() && len(s.Troubles) == 0,
		"%+v", s)
}

func TestHeed_StatusWithoutAHeedIsNotRunning(t *testing.T) {
	state := t.TempDir()
	_, err := control.ReadStatus(t.Context(), state)
	must.True(t, errors.Is(err, control.ErrNotRunning), "in an empty directory: %v", err)
	l := must.Get(net.Listen("unix", filepath.Join(state, "control.sock")))(t)
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as after a kill
	l.Close()
	testkit.Write(t, filepath.Join(state, "lock"), `{"socket": "`+l.Addr().String()+`"}`)
	_, err = control.ReadStatus(t.Context(), state)
	must.True(t, errors.Is(err, control.ErrNotRunning), "with a dead one's socket: %v", err)
}

func TestHeed_ALogLineAfterTheEndOfTheStreamIsAnError(t *testing.T) {
	s := newStream(httptest.NewRecorder())
	go s.pump()
	s.close(control.StreamLine{Summary: &counts.Summary{}})
	_, err := s.Write([]byte("{}\n"))
	must.True(t, errors.Is(err, errStream), "got %v", err)
}

// A run that does not read its log loses lines of it, receives their number, and delays
// no request.
func TestHeed_AStalledReaderCostsLinesOfItsOwnLogOnly(t *testing.T) {
	answer := httptest.NewRecorder()
	s := newStream(answer)
	for range maxQueued + 7 { // nothing is sent yet
		must.Get(s.Write([]byte("{}\n")))(t)
	}
	go s.pump()
	s.close(control.StreamLine{Summary: &counts.Summary{}})
	lines := strings.Split(strings.TrimSpace(answer.Body.String()), "\n")
	if len(lines) != maxQueued+1 || !strings.Contains(lines[maxQueued], `"dropped":7`) {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}

// A heed that `heed run` started serves that run alone, and may end at any moment:
// check does not ask it.
func TestDaemon_CheckDoesNotAskTheHeedOfARun(t *testing.T) {
	startDaemon(t, nil)
	var out bytes.Buffer
	app := &console.App{Stdout: &out, Stderr: &out, Defaults: testkit.BuiltIn(t), Now: time.Now}
	agent := "x"
	err := (&check.CheckCmd{Agent: &agent, URLs: []string{testkit.Page(t)}}).Run(app)
	must.True(t, err == nil && strings.Contains(out.String(), "(asked just now)"), "%v, %s", err, out.String())
}
