package studycmd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// interrupted starts heed study over the standard input, writes lines and keeps the pipe
// open, as tail -f does, and interrupts it. It returns what it printed and its exit status.
func interrupted(t *testing.T, lines int, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), append([]string{"study"}, append(args, "-")...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "HEED_STATE=" + t.TempDir()}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	at := time.Date(2025, 3, 1, 10, 0, 0, 0, time.UTC)
	for i := range lines {
		line := fmt.Sprintf("192.0.2.7 - - [%s] \"GET /%d HTTP/1.1\" 200 50 \"-\" \"PoliteBot/1.0\"\n", at.Add(time.Duration(i)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), i)
		must.Get(io.WriteString(in, line))(t)
	}
	must.OK(t, cmd.Process.Signal(os.Interrupt))
	err = cmd.Wait() // while the input is open
	var exit *exec.ExitError
	must.Need(t, err == nil || errors.As(err, &exit), "%v", err)
	return out.String(), complaints.String(), cmd.ProcessState.ExitCode()
}

// 10,000 lines are more than a pipe and the reader hold, so that most have been read when
// the last one is written.
func TestHeed_AnInterruptWhileTheInputBlocksPrintsTheTables(t *testing.T) {
	t.Parallel()
	stdout, stderr, status := interrupted(t, 10_000)
	must.True(t, status == 130, "the exit status is %d\n%s", status, stderr)
	must.Contain(t, stderr, "interrupted: the tables are of what had been read", "standard error")
	var requests int
	_, err := fmt.Sscanf(strings.ReplaceAll(stdout, ",", ""), "%d requests to 1 site", &requests)
	must.True(t, err == nil && requests >= 3000 && requests <= 10_000, "%d requests, %v in\n%.300s", requests, err, stdout)
	for _, want := range []string{"reading was interrupted", "politebot", `unparsed lines +0\n`} {
		must.True(t, regexp.MustCompile(want).MatchString(stdout), "there is no %q in\n%.2000s", want, stdout)
	}
}

// The files of an interrupted study are complete.
func TestHeed_AnInterruptedStudyEndsItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stdout, stderr, status := interrupted(t, 10_000, "--json", "--csv", dir+"/tables")
	must.Need(t, status == 130 && strings.Contains(stdout, `"partial": true`), "the exit status is %d\n%s", status, stderr)
	if rows := strings.Count(testkit.Read(t, dir+"/tables/requests.csv"), "\n"); rows < 3000 || !strings.Contains(testkit.Read(t, dir+"/tables/agents.csv"), "politebot") {
		t.Errorf("requests.csv has %d lines", rows)
	}
}
