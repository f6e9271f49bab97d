package command

import (
	"bufio"
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
	"heed/internal/ca"
	"heed/internal/pace"
)

// startDaemon runs a heed without a shared listener in this process until the
// test ends, and returns it with its state directory.
func startDaemon(t *testing.T, change func(*daemon)) (*daemon, string) {
	t.Helper()
	state := t.TempDir()
	t.Setenv("HEED_STATE", state)
	cfg, err := Load("", builtIn(t))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ca.Open(state, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	app := &App{Environ: []string{}, Defaults: builtIn(t), Now: time.Now}
	d, err := newDaemon(app, &place{cfg: cfg, joinHash: cfg.JoinHash(), state: state}, &opened{
		authority: authority, log: slog.New(slog.DiscardHandler), level: &slog.LevelVar{}, record: audit.NewLog(slog.DiscardHandler, nil),
		turns: pace.New(pace.Config{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.background = true
	if change != nil {
		change(d)
	}
	lock, err := lockState(state, 0)
	if err != nil {
		t.Fatal(err)
	}
	control, err := listenControl(state, d)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.tell(holder{PID: os.Getpid(), Background: d.background, Socket: control.path}); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- control.serve() }()
	t.Cleanup(func() {
		d.shutdown(control)
		if err := <-served; err != nil {
			t.Errorf("the control socket: %v", err)
		}
		lock.release()
	})
	return d, state
}

// joinAs joins as a run of the same version and settings does, with changes.
func joinAs(t *testing.T, d *daemon, state string, change func(*join)) (*membership, error) {
	t.Helper()
	j := &join{Version: Version(), Config: d.current().cfg.JoinHash()}
	if change != nil {
		change(j)
	}
	m, err := newControlClient(state).join(t.Context(), j)
	if err == nil {
		t.Cleanup(m.leave)
	}
	return m, err
}

// page is a site with a robots.txt that refuses nothing we ask for.
func page(t *testing.T) string {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, r.UserAgent())
	}))
	t.Cleanup(site.Close)
	return site.URL
}

// through fetches target through the proxy at addr.
func through(t *testing.T, addr, target string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr}), DisableKeepAlives: true,
	}}
	resp, err := client.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestHeed_ControlSocketIsForItsOwnerOnly(t *testing.T) {
	_, state := startDaemon(t, nil)
	info, err := os.Lstat(filepath.Join(state, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("mode %v, want a socket with 0600", info.Mode())
	}
}

func TestHeed_ARunHasAListenerOfItsOwnForAsLongAsItLasts(t *testing.T) {
	d, state := startDaemon(t, nil)
	target := page(t)
	first, err := joinAs(t, d, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := joinAs(t, d, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Listen == second.Listen {
		t.Errorf("both runs listen on %s", first.Listen)
	}
	through(t, first.Listen, target)
	through(t, first.Listen, target)
	through(t, second.Listen, target)

	if err := first.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	line, err := first.next()
	if err != nil || line.Summary == nil {
		t.Fatalf("the last line is %+v (%v), want a summary", line, err)
	}
	if got := line.Summary.Requests; got != 2 {
		t.Errorf("the first run is told of %d requests, want its own 2", got)
	}
	if _, err := first.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the summary: %v, want the end", err)
	}
	refuses(t, first.Listen)
	through(t, second.Listen, target)
	if got := d.tally.Summary().Requests; got != 4 {
		t.Errorf("heed has counted %d, want those of both", got)
	}
}

// refuses asserts that nobody listens at addr.
func refuses(t *testing.T, addr string) {
	t.Helper()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Errorf("%s still takes connections", addr)
	}
}

func TestHeed_TheListenerGoesWithARunThatJustVanishes(t *testing.T) {
	d, state := startDaemon(t, nil)
	m, err := joinAs(t, d, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := keepAlive(t, m.Listen, page(t))
	m.leave() // as the system does for a killed process
	awaitClose(t, kept)
	refuses(t, m.Listen)
}

// keepAlive asks for target through the proxy at addr and returns the
// connection, open and idle.
func keepAlive(t *testing.T, addr, target string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	host := strings.TrimPrefix(target, "http://")
	if _, err := io.WriteString(c, "GET "+target+"/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("through heed: %v, %v", resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	return c
}

// awaitClose waits until the other end closes c.
func awaitClose(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("waiting for the connection's end: %v", err)
	}
}

func TestHeed_ARunIsToldWhatItAskedForWhenHeedStops(t *testing.T) {
	d, state := startDaemon(t, nil)
	m, err := joinAs(t, d, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	through(t, m.Listen, page(t))
	d.stop()
	line, err := m.next()
	if err != nil || line.Summary == nil || line.Summary.Requests != 1 {
		t.Fatalf("the last line is %+v (%v), want a summary of one request", line, err)
	}
	if _, err := joinAs(t, d, state, nil); err == nil {
		t.Error("a heed that is ending lets a run join")
	}
}

func TestHeed_DecisionLinesTravelToTheRunThatWantsThem(t *testing.T) {
	d, state := startDaemon(t, nil)
	m, err := joinAs(t, d, state, func(j *join) { j.Log, j.Agent, j.UserAgent = true, "NewsBot", "NewsBot/2 (+https://example.org/)" })
	if err != nil {
		t.Fatal(err)
	}
	if got := through(t, m.Listen, page(t)); got != "NewsBot/2 (+https://example.org/)" {
		t.Errorf("the site is told %q", got)
	}
	line, err := m.next()
	if err != nil || line.Log == nil {
		t.Fatalf("got %+v (%v), want a decision", line, err)
	}
	for _, part := range []string{`"verdict":"allow"`, `"agent":"NewsBot"`, `"agent_from":"declared"`} {
		if !strings.Contains(strings.ToLower(string(line.Log)), strings.ToLower(part)) {
			t.Errorf("the line lacks %s: %s", part, line.Log)
		}
	}
}

func TestHeed_AJoinThatCannotBeReadIsRefused(t *testing.T) {
	_, state := startDaemon(t, nil)
	_, err := newControlClient(state).do(t.Context(), "POST", "/runs", "nonsense")
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v", err)
	}
}

func TestHeed_StatusSaysWhatIsGoingOn(t *testing.T) {
	d, state := startDaemon(t, nil)
	m, err := joinAs(t, d, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	through(t, m.Listen, page(t))
	s, err := readStatus(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	if s.PID != os.Getpid() || !s.Background || s.Version != Version() || s.ConfigHash != d.current().cfg.Hash() {
		t.Errorf("it says of itself %+v", s.heedInfo)
	}
	if len(s.Listeners) != 0 || len(s.Runs) != 1 || s.Runs[0] != m.Listen {
		t.Errorf("listeners %v, runs %v", s.Listeners, s.Runs)
	}
	if s.Hour.Requests != 1 || s.CA.DaysLeft < 3000 || s.CA.Path != d.authority.CertPath() || len(s.Troubles) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestHeed_StatusOfNobodyIsNotRunning(t *testing.T) {
	state := t.TempDir()
	if _, err := readStatus(t.Context(), state); !errors.Is(err, errNotRunning) {
		t.Errorf("in an empty directory: %v", err)
	}
	l, err := net.Listen("unix", filepath.Join(state, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as after a kill
	l.Close()
	write(t, filepath.Join(state, lockName), `{"socket": "`+l.Addr().String()+`"}`)
	if _, err := readStatus(t.Context(), state); !errors.Is(err, errNotRunning) {
		t.Errorf("with a dead one's socket: %v", err)
	}
}

func TestHeed_ALogLineAfterTheEndOfTheStreamIsAnError(t *testing.T) {
	s := &stream{w: httptest.NewRecorder()}
	s.open()
	go s.pump()
	s.close(streamLine{Summary: &audit.Summary{}})
	if _, err := s.Write([]byte("{}\n")); !errors.Is(err, errStream) {
		t.Errorf("got %v", err)
	}
}

// A run that does not read its log loses lines of it, is told how many, and
// holds nobody up.
func TestHeed_AStalledReaderCostsLinesOfItsOwnLogOnly(t *testing.T) {
	answer := httptest.NewRecorder()
	s := &stream{w: answer}
	s.open()
	for range maxWaiting + 7 { // nobody pumps yet
		if _, err := s.Write([]byte("{}\n")); err != nil {
			t.Fatal(err)
		}
	}
	go s.pump()
	s.close(streamLine{Summary: &audit.Summary{}})
	lines := strings.Split(strings.TrimSpace(answer.Body.String()), "\n")
	if len(lines) != maxWaiting+1 || !strings.Contains(lines[maxWaiting], `"dropped":7`) {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}
