package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"heed/internal/config"
	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// heedRun runs `heed run` of the heed under test, and returns its exit status and
// what it printed. It joins the heed of HEED_STATE.
func heedRun(t *testing.T, c RunCmd, environ ...string) (status int, stdout, stderr string) {
	t.Helper()
	args := []string{"run"}
	for _, f := range [][2]string{
		{"--config", c.Config}, {"--upstream", c.Upstream}, {"--agent", c.Agent}, {"--contact", c.Contact}, {"--log", c.Log}, {"--audit", c.Audit},
	} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	if c.Quiet {
		args = append(args, "--quiet")
	}
	if c.JSON {
		args = append(args, "--json")
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(testkit.Binary(t), append(args, c.Command...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HEED_STATE=" + os.Getenv("HEED_STATE"), testkit.RaceOptions,
	}, environ...)
	err := cmd.Run()
	must.Need(t, err == nil || cmd.ProcessState != nil, "%v", err)
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func command(words ...string) []string { return words }

func TestARunPassesTheExitStatusOn(t *testing.T) {
	testkit.Serve(t, "")
	noInterpreter := testkit.Write(t, filepath.Join(t.TempDir(), "script"), "#!/nonexistent/interpreter\n")
	must.OK(t, os.Chmod(noInterpreter, 0o700))
	plain := testkit.Write(t, filepath.Join(t.TempDir(), "plain"), "no program")
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
			got, _, stderr := heedRun(t, RunCmd{Command: c.command, Quiet: true})
			must.True(t, got == c.want, "status %d, want %d; it says %q", got, c.want, stderr)
		})
	}
}

func TestARunPrintsTheOutcomesOfItsRequests(t *testing.T) {
	testkit.Serve(t, "")
	target := testkit.Page(t)
	status, stdout, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", target)})
	must.Need(t, status == 0 && strings.HasPrefix(stdout, "curl/"), "status %d, the page is %q; %s", status, stdout, stderr)
	want := "heed: 1 request came through, to " + strings.TrimPrefix(target, "http://") + ": 1 allowed, 0 refused by rule\n  judged by path: all of the requests that came through heed\n"
	said, rest, _ := strings.Cut(stderr, "  `heed run --sealed")
	said, _, _ = strings.Cut(said, "  waited: ") // for robots.txt, on a busy machine
	must.True(t, said == want && strings.Contains(rest, "this run was not sealed"), "it says %q, want %q", stderr, want)
}

func TestAQuietRunSaysNothing(t *testing.T) {
	testkit.Serve(t, "")
	_, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", testkit.Page(t)), Quiet: true}, "HTTPS_PROXY=http://p.test:1")
	must.Equal(t, stderr, "", "it says")
}

func TestTheSummaryIsOneLineOfJSON(t *testing.T) {
	testkit.Serve(t, "")
	status, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", testkit.Page(t)), JSON: true}, "HTTPS_PROXY=http://p.test:1")
	var report runReport
	err := json.Unmarshal([]byte(stderr), &report)
	must.Need(t, err == nil, "%v in %q", err, stderr)
	if status != 0 || report.Exit != 0 || !report.Complete || report.Requests != 1 || report.Allowed != 1 || report.Command[0] != "curl" {
		t.Errorf("it reports %+v", report)
	}
	must.True(t, len(report.Remarks) == 1 && strings.Contains(report.Remarks[0], "--upstream env"),
		"the proxy found is not among the remarks: %q", report.Remarks)
}

func TestARunKeepsTheLinesOfItsDecisions(t *testing.T) {
	testkit.Serve(t, "")
	log := filepath.Join(t.TempDir(), "log")
	target := testkit.Page(t)
	for range 2 {
		status, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", target, target), Log: log, Quiet: true})
		must.Need(t, status == 0, "%s", stderr)
	}
	text := must.Get(os.ReadFile(log))(t)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	must.Need(t, len(lines) == 4, "%d lines, want one for each of 4 requests:\n%s", len(lines), text)
	for _, line := range lines {
		var record struct{ Verdict, URL string }
		err := json.Unmarshal([]byte(line), &record)
		must.True(t, err == nil && record.Verdict == "allow" && record.URL == target+"/", "%v: %s", err, line)
	}
	_, _, stderr := heedRun(t, RunCmd{Command: command("curl", "-sS", target), Log: "-", Quiet: true})
	must.True(t, strings.Contains(stderr, `"verdict":"allow"`) && strings.Count(stderr, "\n") == 1, "on stderr: %q", stderr)
}

func TestARunWithWhatItCannotUseEndsWithStatusTwo(t *testing.T) {
	state := testkit.Serve(t, "").State
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
		{"settings that are not there", RunCmd{FileFlags: config.FileFlags{Config: state + "/none.toml"}}, "none.toml"},
		{"other settings than those that are used", RunCmd{FileFlags: config.FileFlags{Config: testkit.Write(t, filepath.Join(t.TempDir(), "p.toml"), "contact = \"a@example.org\"\n")}}, "different settings"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.cmd.Command = command("true")
			status, _, stderr := heedRun(t, c.cmd)
			must.True(t, status == 2 && strings.Contains(stderr, c.want),
				"status %d, %q; want 2 and %q", status, stderr, c.want)
		})
	}
}

func TestARunGoesThroughTheUpstreamProxyItNames(t *testing.T) {
	testkit.Serve(t, "")
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
		c.cmd.Command = fetch
		status, _, stderr := heedRun(t, c.cmd, c.environ)
		mu.Lock()
		got := strings.Join(asked, " ")
		asked = nil
		mu.Unlock()
		if want := "http://site.test/robots.txt http://site.test/page"; status != 0 || got != want {
			t.Errorf("--upstream %s: the proxy was asked for %q, want %q; %s", c.cmd.Upstream, got, want, stderr)
		}
		must.Lack(t, stderr, "not used", "it says")
	}
}

func TestOneHonestIdentity(t *testing.T) {
	cases := []struct{ name, contact, token, userAgent string }{
		{"NewsBot", "https://example.org/bot", "NewsBot", "NewsBot/1.0 (+https://example.org/bot)"},
		{"NewsBot/2.1", "bot@example.org", "NewsBot", "NewsBot/2.1 (+bot@example.org)"},
		{"my_bot-2", "mailto:bot@example.org", "my_bot-2", "my_bot-2/1.0 (+mailto:bot@example.org)"},
		{"", "", "", ""},
	}
	for _, c := range cases {
		token, userAgent, err := declared(c.name, c.contact)
		must.True(t, err == nil && token == c.token && userAgent == c.userAgent,
			"%s, %s: %q, %q, %v", c.name, c.contact, token, userAgent, err)
	}
	for _, name := range []string{"*", "News Bot", "Bot\r\nX: y", "bot/", "bot/1 2", "böt", strings.Repeat("x", 65)} {
		_, _, err := declared(name, "https://example.org/")
		must.True(t, err != nil, "the name %q is taken", name)
	}
}

func TestARunGoesOnWhenItsHeedEnds(t *testing.T) {
	heed := testkit.Serve(t, "")
	begun, end := pipeFile(t), pipeFile(t)
	done := make(chan struct{})
	var status int
	var stderr string
	go func() {
		defer close(done)
		status, _, stderr = heedRun(t, RunCmd{Command: command("sh", "-c", "echo > "+begun+"; read x < "+end+"; exit 4")})
	}()
	must.Get(os.ReadFile(begun))(t)
	heed.Signal(syscall.SIGTERM)
	heed.Exit()
	testkit.Write(t, end, "\n")
	<-done
	must.True(t, status == 4 && strings.Contains(stderr, "no request came through"), "status %d, it says %q", status, stderr)
}

// pipeFile is a named pipe: opening it waits for the other side.
func pipeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	must.OK(t, syscall.Mkfifo(path, 0o600))
	return path
}

func TestABackgroundHeedDoesNotInheritOneRunsProxiesAndCAs(t *testing.T) {
	got := backgroundEnviron([]string{"PATH=/bin", "https_proxy=http://p", "SSL_CERT_FILE=/x", "NO_PROXY=y", "HEED_STATE=rel", "LANG=C"}, "/state")
	must.Equal(t, strings.Join(got, " "), "PATH=/bin LANG=C HEED_STATE=/state", "it inherits %q", got)
}

func TestWhatABackgroundHeedSaysReachesTheUser(t *testing.T) {
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
		must.OK(t, err)
		write.WriteString(c.said)
		write.Close()
		err = awaitReady(t.Context(), read, nil)
		read.Close()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("heed's error was %q; the user gets %v", c.said, err)
		}
	}
}

func TestExitStatusesOfShellsAreErrorsOfTheirOwn(t *testing.T) {
	var exit console.Exit
	_, err := exec.LookPath("no-such-command")
	err = cannotRun(&console.App{Stderr: new(bytes.Buffer)}, "no-such-command", err)
	must.True(t, errors.As(err, &exit) && exit == 127, "got %v", err)
}
