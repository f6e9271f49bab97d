package run

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// heedRun runs `heed run` of the heed under test with a variable and arguments, and returns
// its exit status and what it printed. It joins the heed of HEED_STATE.
func heedRun(t *testing.T, variable string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(testkit.Binary(t), append([]string{"run"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HEED_STATE=" + os.Getenv("HEED_STATE"), testkit.RaceOptions, variable}
	err := cmd.Run()
	must.Need(t, err == nil || cmd.ProcessState != nil, "%v", err)
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestTheSummaryIsOneLineOfJSON(t *testing.T) {
	testkit.Serve(t, "")
	status, _, stderr := heedRun(t, "HTTPS_PROXY=http://p.test:1", "--json", "--", "curl", "-sS", testkit.Page(t))
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
		status, _, stderr := heedRun(t, "", "--quiet", "--log", log, "--", "curl", "-sS", target, target)
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
	_, _, stderr := heedRun(t, "", "--quiet", "--log", "-", "--", "curl", "-sS", target)
	must.True(t, strings.Contains(stderr, `"verdict":"allow"`) && strings.Count(stderr, "\n") == 1, "on stderr: %q", stderr)
}

func TestARunWithWhatItCannotUseEndsWithStatusTwo(t *testing.T) {
	state := testkit.Serve(t, "").State
	other := testkit.Write(t, filepath.Join(t.TempDir(), "p.toml"), "contact = \"a@example.org\"\n")
	for _, c := range []struct{ name, args, want string }{
		{"agent without contact", "--agent NewsBot", "--agent needs --contact"},
		{"contact without agent", "--contact bot@example.org", "--agent"},
		{"contact that leads nowhere", "--agent NewsBot --contact x", "--contact"},
		{"no proxy in the environment", "--upstream env", "--upstream env: the environment names no proxy"},
		{"upstream that is none", "--upstream ftp://x", "--upstream"},
		{"log that cannot be", "--log " + state, "the log cannot be written"},
		{"settings that are not there", "--config " + state + "/none.toml", "none.toml"},
		{"other settings than those that are used", "--config " + other, "different settings"},
	} {
		status, _, stderr := heedRun(t, "", strings.Fields(c.args+" -- true")...)
		must.True(t, status == 2 && strings.Contains(stderr, c.want), "%s: status %d, %q; want 2 and %q", c.name, status, stderr, c.want)
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
		status, _, stderr = heedRun(t, "", "--", "sh", "-c", "echo > "+begun+"; read x < "+end+"; exit 4")
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
