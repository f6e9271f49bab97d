package command_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// place is a state directory with the real heed in it.
type place struct {
	t     *testing.T
	state string
	dir   string // working directory of its commands
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, state: t.TempDir(), dir: t.TempDir()}
	t.Cleanup(p.end)
	return p
}

// heed is a heed command in the place.
func (p *place) heed(args ...string) *exec.Cmd {
	cmd := exec.Command(testkit.Binary(p.t), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "HEED_STATE=" + p.state}
	cmd.Dir = p.dir
	return cmd
}

// ok runs a heed command to its end and returns what it printed.
func (p *place) ok(args ...string) string {
	p.t.Helper()
	out, err := p.heed(args...).CombinedOutput()
	must.Need(p.t, err == nil, "heed %s: %v\n%s", strings.Join(args, " "), err, out)
	return string(out)
}

// pid asks which heed runs in the place; 0 when none does.
func (p *place) pid() int {
	out, _ := p.heed("status", "--json").Output() // the exit status says how it is
	var status struct{ PID int }
	_ = json.Unmarshal(out, &status) // no status, no pid
	return status.PID
}

// end stops the background heed and waits until it has given the place back.
func (p *place) end() {
	pid := p.pid()
	if pid == 0 {
		return
	}
	must.OK(p.t, syscall.Kill(pid, syscall.SIGTERM), "stopping heed")
	p.awaitLock()
}

// awaitLock waits until no heed holds the place.
func (p *place) awaitLock() {
	p.t.Helper()
	f := must.Get(os.OpenFile(filepath.Join(p.state, "lock"), os.O_RDWR, 0))(p.t)
	defer f.Close()
	must.OK(p.t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
}

// site is a site that counts how often its robots.txt is asked for.
type site struct {
	url  string
	hold func(*http.Request) // before a page is answered; nil: nothing
	mu   sync.Mutex
	n    int
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.url = "http://" + l.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(s.answer)}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return s
}

func (s *site) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		s.mu.Lock()
		s.n++
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	if s.hold != nil {
		s.hold(r)
	}
	fmt.Fprint(w, "page")
}

func (s *site) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func TestTwentyRunsAtOnceShareOneHeed(t *testing.T) {
	t.Parallel()
	p, s := newPlace(t), newSite(t)
	var all sync.WaitGroup
	pids := make(chan string, 20)
	for range 20 {
		all.Go(func() {
			cmd := p.heed("run", "--quiet", "--", "sh", "-c", `curl -sS "$0" && cat "$HEED_STATE/lock"`, s.url)
			out, err := cmd.CombinedOutput()
			must.True(t, err == nil && bytes.HasPrefix(out, []byte("page")), "a run: %v\n%s", err, out)
			pids <- string(out)
		})
	}
	all.Wait()
	first := <-pids
	for range 19 {
		must.Equal(t, <-pids, first, "the only heed")
	}
	must.Equal(t, s.asked(), 1, "times robots.txt was asked for")
}

func TestOtherSettingsReplaceAnIdleBackgroundHeed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.ok("run", "--quiet", "--", "true")
	first := p.pid()
	p.ok("run", "--quiet", "--", "true")
	again := p.pid()
	must.Need(t, again == first && first != 0, "the second run has heed %d, the first had %d", again, first)
	must.OK(t, os.WriteFile(filepath.Join(p.dir, "proxy.toml"), []byte("contact = \"bot@example.org\"\n"), 0o600))
	p.ok("run", "--quiet", "--", "true")
	next := p.pid()
	must.True(t, next != first && next != 0, "with other settings, the heed is %d as before (%d)", next, first)
}

func TestAHeedStartedByHandTakesTheStateDirectoryFromAnIdleOne(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.ok("run", "--quiet", "--", "true")
	h := testkit.Start(t, testkit.Options{State: p.state})
	must.Equal(t, p.pid(), h.Pid(), "the heed")
	p.ok("run", "--quiet", "--", "true") // joins, whatever its settings are
	h.Signal(syscall.SIGTERM)
	must.Equal(t, h.Exit(), 0, "exit status")
}

func TestASecondSignalEndsHeedAtOnce(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	slow := newSite(t)
	slow.hold = func(r *http.Request) {
		close(arrived)
		<-r.Context().Done() // never answers
	}
	cmd := newPlace(t).heed("serve", "--listen", "127.0.0.1:0")
	stderr := must.Get(cmd.StderrPipe())(t)
	must.OK(t, cmd.Start())
	defer cmd.Process.Kill()
	said := bufio.NewReader(stderr)
	conn := testkit.Dial(t, after(t, said, "listens on http://"))
	conn.Send("GET " + slow.url + "/ HTTP/1.1\r\nHost: " + strings.TrimPrefix(slow.url, "http://") + "\r\n\r\n")
	<-arrived
	for range 2 {
		must.OK(t, cmd.Process.Signal(syscall.SIGTERM))
		after(t, said, "heed: stopping")
	}
	var exit *exec.ExitError
	err := cmd.Wait()
	must.True(t, errors.As(err, &exit) && exit.ExitCode() == 128+int(syscall.SIGTERM), "it ends with %v, want 143", err)
}

// after reads lines until one has text in it, and returns the rest of that
// line; at the end of all lines, nothing.
func after(t *testing.T, lines *bufio.Reader, text string) string {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if _, rest, found := strings.Cut(line, text); found {
			return strings.TrimSpace(rest)
		}
		if err != nil {
			return ""
		}
	}
}

func TestAKilledRunTakesItsProxyWithIt(t *testing.T) {
	t.Parallel()
	p, s := newPlace(t), newSite(t)
	pipe := filepath.Join(p.dir, "pipe")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	cmd := p.heed("run", "--quiet", "--", "sh", "-c", `echo "$http_proxy" > "$0"; read forever`, pipe)
	stdin, err := cmd.StdinPipe() // its end ends the command that heed leaves behind
	must.OK(t, err)
	defer stdin.Close()
	must.OK(t, cmd.Start())
	said := must.Get(os.ReadFile(pipe))(t)
	addr := strings.TrimPrefix(strings.TrimSpace(string(said)), "http://")
	conn := testkit.Dial(t, addr)
	conn.Send("GET " + s.url + "/ HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.url, "http://") + "\r\n\r\n")
	must.Is(t, conn.Answer("GET").StatusCode, 200, "through the run's proxy")
	must.OK(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	conn.Closed()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("the run's proxy still takes connections")
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		must.OK(t, syscall.Mkfifo(pipe, 0o600))
		cmd := p.heed("run", "--quiet", "--", "sh", "-c",
			`trap 'exit 3' TERM INT HUP USR1; : > "$0"; while :; do sleep 0.02; done`, pipe)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, which would send it to the command as well
		must.OK(t, cmd.Start())
		must.Get(os.ReadFile(pipe))(t) // now the trap is set
		must.OK(t, cmd.Process.Signal(sig))
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("%v: the run ends with %v, want the command's status 3", sig, err)
		}
	}
}

func TestABackgroundHeedThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.ok("ca", "path")
	must.OK(t, os.Chmod(filepath.Join(p.state, "ca-key.pem"), 0o644))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cmd := p.heed("run", "--", "true")
	var said bytes.Buffer
	cmd.Stderr = &said
	must.OK(t, cmd.Start())
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	var exit *exec.ExitError
	err := cmd.Wait()
	must.True(t, errors.As(err, &exit) && exit.ExitCode() == 2, "it ends with %v, want 2", err)
	must.True(t, strings.HasPrefix(said.String(), "heed: ") && strings.Contains(said.String(), "chmod 600"),
		"it says %q", said.String())
}

func TestALongStateDirectoryWorksLikeAnyOther(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.state = filepath.Join(p.state, strings.Repeat("long", 40))
	s := newSite(t)
	must.Equal(t, p.ok("run", "--quiet", "--", "curl", "-sS", s.url), "page", "through heed")
	must.True(t, p.pid() != 0, "its heed is not found")
}
