package command_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// newSite starts a site without robots.txt and returns its URL. It calls hold before it answers
// a page; nil: nothing.
func newSite(t *testing.T, hold func(*http.Request)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		if hold != nil {
			hold(r)
		}
		fmt.Fprint(w, "page")
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
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
	slow := newSite(t, func(r *http.Request) {
		close(arrived)
		<-r.Context().Done() // never answers
	})
	cmd := newPlace(t).heed("serve", "--listen", "127.0.0.1:0")
	stderr := must.Get(cmd.StderrPipe())(t)
	must.OK(t, cmd.Start())
	defer cmd.Process.Kill()
	said := bufio.NewReader(stderr)
	conn := testkit.Dial(t, after(t, said, "listens on http://"))
	conn.Send("GET " + slow + "/ HTTP/1.1\r\nHost: " + strings.TrimPrefix(slow, "http://") + "\r\n\r\n")
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
	p, site := newPlace(t), newSite(t, nil)
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
	conn.Send("GET " + site + "/ HTTP/1.1\r\nHost: " + strings.TrimPrefix(site, "http://") + "\r\n\r\n")
	must.Is(t, conn.Answer("GET").StatusCode, 200, "through the run's proxy")
	must.OK(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	conn.Closed()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("the run's proxy still takes connections")
	}
}

func TestALongStateDirectoryWorksLikeAnyOther(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.state = filepath.Join(p.state, strings.Repeat("long", 40))
	site := newSite(t, nil)
	must.Equal(t, p.ok("run", "--quiet", "--", "curl", "-sS", site), "page", "through heed")
	must.True(t, p.pid() != 0, "its heed is not found")
}
