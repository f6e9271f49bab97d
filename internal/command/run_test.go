package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// heedRun runs `heed run` in this process, with a heed to join, and returns
// its exit status and what it printed.
func heedRun(t *testing.T, c RunCmd, environ ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs printed
	app := &App{
		Stdout: &out, Stderr: &errs, Defaults: builtIn(t), Now: time.Now,
		Environ: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environ...),
	}
	return app.fail(c.Run(app)), out.String(), errs.String()
}

// printed takes what the command and heed print at the same time.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func command(words ...string) []string { return words }

func TestHeed_ARunPassesTheExitStatusOn(t *testing.T) {
	startDaemon(t, nil)
	noInterpreter := write(t, filepath.Join(t.TempDir(), "script"), "#!/nonexistent/interpreter\n")
	if err := os.Chmod(noInterpreter, 0o700); err != nil {
		t.Fatal(err)
	}
	plain := write(t, filepath.Join(t.TempDir(), "plain"), "no program")
	cases := []struct {
		name    string
		command []string
		want    int
	}{
		{"success", command("true"), 0},
		{"a status of its own", command("sh", "-c", "exit 37"), 37},
		{"ended by SIGTERM", command("sh", "-c", "kill -TERM $$"), 143},
		{"ended by SIGKILL", command("sh", "-c", "kill -KILL $$"), 137},
		{"no such command", command("no-such-command"), 127},
		{"no such file", command("./no/such/file"), 127},
		{"no interpreter", command(noInterpreter), 127},
		{"no program", command(plain), 126},
		{"a directory", command("/"), 126},
		{"two dashes before it", command("--", "sh", "-c", "exit 5"), 5},
		{"nothing", nil, 2},
		{"nothing but dashes", command("--"), 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, _, stderr := heedRun(t, RunCmd{Command: c.command, Quiet: true}); got != c.want {
				t.Errorf("status %d, want %d; it says %q", got, c.want, stderr)
			}
		})
	}
}

func TestHeed_ARunTellsWhatBecameOfItsRequests(t *testing.T) {
	startDaemon(t, nil)
	target := page(t)
	status, stdout, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", target)})
	if status != 0 || !strings.HasPrefix(stdout, "curl/") {
		t.Fatalf("status %d, the page is %q; %s", status, stdout, stderr)
	}
	want := "heed: 1 request to " + strings.TrimPrefix(target, "http://") + ": 1 allowed, 0 refused\n  judged by path: all of them\n"
	if stderr != want {
		t.Errorf("it says %q, want %q", stderr, want)
	}
}

func TestHeed_AQuietRunSaysNothing(t *testing.T) {
	startDaemon(t, nil)
	_, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", page(t)), Quiet: true}, "HTTPS_PROXY=http://p.test:1")
	if stderr != "" {
		t.Errorf("it says %q", stderr)
	}
}

func TestHeed_ARunTellsMachinesInOneLineOfJSON(t *testing.T) {
	startDaemon(t, nil)
	status, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", page(t)), JSON: true}, "HTTPS_PROXY=http://p.test:1")
	var report runReport
	if err := json.Unmarshal([]byte(stderr), &report); err != nil {
		t.Fatalf("%v in %q", err, stderr)
	}
	if status != 0 || report.Exit != 0 || !report.Complete || report.Requests != 1 || report.Allowed != 1 || report.Command[0] != "curl" {
		t.Errorf("it reports %+v", report)
	}
	if len(report.Remarks) != 1 || !strings.Contains(report.Remarks[0], "--upstream env") {
		t.Errorf("the proxy found is not among the remarks: %q", report.Remarks)
	}
}

func TestHeed_ARunKeepsTheLinesOfItsDecisions(t *testing.T) {
	startDaemon(t, nil)
	log := filepath.Join(t.TempDir(), "log")
	target := page(t)
	for range 2 {
		if status, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", target, target), Log: log, Quiet: true}); status != 0 {
			t.Fatal(stderr)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want one for each of 4 requests:\n%s", len(lines), text)
	}
	for _, line := range lines {
		var record struct{ Verdict, URL string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Verdict != "allow" || record.URL != target+"/" {
			t.Errorf("%v: %s", err, line)
		}
	}
	_, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", target), Log: "-", Quiet: true})
	if !strings.Contains(stderr, `"verdict":"allow"`) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("on stderr: %q", stderr)
	}
}

func TestHeed_WhenNoRequestCameThroughTheCureIsNamed(t *testing.T) {
	startDaemon(t, nil)
	_, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", "--noproxy", "*", page(t))})
	for _, part := range []string{"no request came through", "  curl and wget: ", "Node.js", "Java", "Python", "sudo"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("it lacks %q:\n%s", part, stderr)
		}
	}
	lines := strings.Split(stderr, "\n")
	if !strings.HasPrefix(lines[2], "  curl and wget: ") {
		t.Errorf("the cure for the command at hand is not the first: %q", lines[2])
	}
}

func TestHeed_ARunWithWhatItCannotUseEndsWithStatusTwo(t *testing.T) {
	_, state := startDaemon(t, nil)
	cases := []struct {
		name string
		cmd  RunCmd
		want string
	}{
		{"agent without contact", RunCmd{Agent: "NewsBot"}, "--agent needs --contact"},
		{"contact without agent", RunCmd{Contact: "bot@example.org"}, "--agent"},
		{"contact that leads nowhere", RunCmd{Agent: "NewsBot", Contact: "x"}, "--contact"},
		{"agent that no robots.txt can name", RunCmd{Agent: "News Bot", Contact: "bot@example.org"}, "--agent"},
		{"no proxy in the environment", RunCmd{Upstream: "env"}, "--upstream env: the environment names no proxy"},
		{"upstream that is none", RunCmd{Upstream: "ftp://x"}, "--upstream"},
		{"log that cannot be", RunCmd{Log: state}, "the log cannot be written"},
		{"settings that are not there", RunCmd{Config: state + "/none.toml"}, "none.toml"},
		{"other settings than those that are used", RunCmd{Config: write(t, filepath.Join(t.TempDir(), "p.toml"), "contact = \"a@example.org\"\n")}, "other settings"},
	}
	d, _ := joinForever(t, state)
	defer d()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.cmd.Command = command("true")
			status, _, stderr := heedRun(t, c.cmd)
			if status != 2 || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, %q; want 2 and %q", status, stderr, c.want)
			}
		})
	}
}

// joinForever keeps the heed of the state directory busy until it is told to
// let go.
func joinForever(t *testing.T, state string) (letGo func(), m *membership) {
	t.Helper()
	cfg, err := Load("", builtIn(t))
	if err != nil {
		t.Fatal(err)
	}
	m, err = newControlClient(state).join(t.Context(), &join{Version: Version(), Config: cfg.JoinHash()})
	if err != nil {
		t.Fatal(err)
	}
	return m.leave, m
}

func TestHeed_ARunGoesThroughTheUpstreamProxyItNames(t *testing.T) {
	startDaemon(t, nil)
	var mu sync.Mutex
	var asked []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.String())
		mu.Unlock()
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
		}
	}))
	defer upstream.Close()
	fetch := command("curl", "-sS", "http://site.test/page")
	for _, c := range []struct {
		cmd     RunCmd
		environ string
	}{
		{RunCmd{Upstream: upstream.URL}, "X=Y"},
		{RunCmd{Upstream: "env"}, "http_proxy=" + upstream.URL},
	} {
		asked = nil
		c.cmd.Command = fetch
		status, _, stderr := heedRun(t, c.cmd, c.environ)
		if want := "http://site.test/robots.txt http://site.test/page"; status != 0 || strings.Join(asked, " ") != want {
			t.Errorf("--upstream %s: the proxy was asked for %q, want %q; %s", c.cmd.Upstream, asked, want, stderr)
		}
		if strings.Contains(stderr, "not used") {
			t.Errorf("it says %q", stderr)
		}
	}
}

func TestHeed_OneHonestIdentity(t *testing.T) {
	cases := []struct{ name, contact, token, userAgent string }{
		{"NewsBot", "https://example.org/bot", "NewsBot", "NewsBot/1.0 (+https://example.org/bot)"},
		{"NewsBot/2.1", "bot@example.org", "NewsBot", "NewsBot/2.1 (+bot@example.org)"},
		{"my_bot-2", "mailto:bot@example.org", "my_bot-2", "my_bot-2/1.0 (+mailto:bot@example.org)"},
		{"", "", "", ""},
	}
	for _, c := range cases {
		token, userAgent, err := declared(c.name, c.contact)
		if err != nil || token != c.token || userAgent != c.userAgent {
			t.Errorf("%s, %s: %q, %q, %v", c.name, c.contact, token, userAgent, err)
		}
	}
	for _, name := range []string{"*", "News Bot", "Bot\r\nX: y", "bot/", "bot/1 2", "42", "böt", strings.Repeat("x", 65)} {
		if _, _, err := declared(name, "https://example.org/"); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
}

func TestHeed_ARunGoesOnWhenItsHeedEnds(t *testing.T) {
	d, _ := startDaemon(t, nil)
	begun, end := pipeFile(t), pipeFile(t)
	done := make(chan struct{})
	var status int
	var stderr string
	go func() {
		defer close(done)
		status, _, stderr = heedRun(t, RunCmd{Command: command("sh", "-c", "echo > "+begun+"; read x < "+end+"; exit 4")})
	}()
	if _, err := os.ReadFile(begun); err != nil {
		t.Fatal(err)
	}
	d.stop()
	write(t, end, "\n")
	<-done
	if status != 4 || !strings.Contains(stderr, "no request came through") {
		t.Errorf("status %d, it says %q", status, stderr)
	}
}

// pipeFile is a named pipe: whoever opens it waits for the other side.
func pipeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHeed_ABackgroundHeedDoesNotInheritOneRunsProxiesAndCAs(t *testing.T) {
	got := backgroundEnviron([]string{"PATH=/bin", "https_proxy=http://p", "SSL_CERT_FILE=/x", "NO_PROXY=y", "HEED_STATE=rel", "LANG=C"}, "/state")
	if strings.Join(got, " ") != "PATH=/bin LANG=C HEED_STATE=/state" {
		t.Errorf("it inherits %q", got)
	}
}

func TestHeed_WhatABackgroundHeedSaysReachesTheUser(t *testing.T) {
	cases := []struct {
		said string
		want string
	}{
		{"ready\n", ""},
		{"held\n", ""},
		{"heed: the CA has ended\nRun: heed ca renew\n", "the CA has ended\nRun: heed ca renew"},
		{"", "ended before it was ready"},
	}
	for _, c := range cases {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		write.WriteString(c.said)
		write.Close()
		err = awaitReady(t.Context(), read, nil)
		read.Close()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("it said %q; the user is told %v", c.said, err)
		}
	}
}

func TestHeed_ExitStatusesOfShellsAreErrorsOfTheirOwn(t *testing.T) {
	var exit Exit
	_, err := findCommand(&App{Stderr: new(bytes.Buffer)}, "no-such-command")
	if !errors.As(err, &exit) || exit != 127 {
		t.Errorf("got %v", err)
	}
}
