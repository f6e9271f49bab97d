package command_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heed/internal/clientenv"
	"heed/internal/tools/testkit"
)

// doctor runs `heed doctor` with a new Node first in the PATH, and a JDK that starts in
// half the time, without the optimising compiler.
func doctor(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	jdk := t.TempDir()
	for name, flags := range map[string]string{"java": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "javac": "-J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC"} {
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' %s \"$@\"\n", testkit.Program(t, name), flags)
		if err := os.WriteFile(filepath.Join(jdk, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := []string{filepath.Dir(testkit.Node(t)), jdk, os.Getenv("PATH")}
	return doctorIn(t, strings.Join(path, string(os.PathListSeparator)), args...)
}

// doctorIn runs `heed doctor` with a PATH, and looks whether it leaves anything behind.
func doctorIn(t *testing.T, path string, args ...string) (out string, status int) {
	t.Helper()
	left := t.TempDir()
	cache, err := exec.Command("go", "env", "GOCACHE").Output() // compiled once for all tests
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testkit.Binary(t), append([]string{"doctor"}, args...)...)
	cmd.Env = []string{
		"PATH=" + path,
		"HOME=" + t.TempDir(), "TMPDIR=" + left, "GOCACHE=" + strings.TrimSpace(string(cache)), "NO_PROXY=*", testkit.RaceOptions,
		"HEED_LISTEN=0.0.0.0:3128", "HEED_CLIENTS=172.16.0.0/12", // as in a container: the check has nothing to do with it
	}
	text, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if rest, _ := filepath.Glob(filepath.Join(left, "heed-doctor-*")); len(rest) > 0 {
		t.Errorf("heed doctor left %v behind", rest)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// Runtimes that cannot be tested are listed, and so is the lack of any.
func TestDoctorListsWhatItDoesNotTry(t *testing.T) {
	t.Parallel()
	few := t.TempDir()
	for _, name := range []string{"curl", "java"} {
		if err := os.Symlink(testkit.Program(t, name), filepath.Join(few, name)); err != nil {
			t.Fatal(err)
		}
	}
	out, status := doctorIn(t, few)
	if status != 0 || strings.Count(out, "\n") != 5 || !strings.HasSuffix(out, "\nsignatures: no client is signed (heed help identity)\n") || !strings.Contains(out, "\ncurl ") ||
		!strings.Contains(out, "\nnot tried: java: only a JDK, with javac, can be tried\nheed run --sealed: ") {
		t.Errorf("status %d\n%s", status, out)
	}
	if out, status := doctorIn(t, t.TempDir()); status != 2 || out != "" {
		t.Errorf("on a machine with nothing: status %d\n%s", status, out)
	}
}

// examined is one runtime of `heed doctor --json`.
type examined struct {
	Name       string
	ProxyHTTP  bool `json:"proxy_http"`
	ProxyHTTPS bool `json:"proxy_https"`
	Trusted    bool
	Refusal    bool
	Missing    string
	Said       string
}

// Every runtime that the tests install goes through heed, trusts it and sees
// refusals, with nothing but what heed run sets.
func TestDoctorFindsTheRuntimesWell(t *testing.T) {
	t.Parallel()
	testkit.Clients(t) // they are all there
	wells := []string{"curl", "wget", "python3 urllib", "node", "git", "perl LWP", "php curl", "php streams"}
	var out string
	if testkit.Full {
		wells = append(wells, "java", "go")
		out, _ = doctor(t, "--json")
	} else { // what compiles first, and what else the machine has, in the long form
		few := t.TempDir()
		for _, name := range []string{"curl", "wget", "/usr/bin/python3", "git", "perl", "php"} {
			if err := os.Symlink(testkit.Program(t, name), filepath.Join(few, filepath.Base(name))); err != nil {
				t.Fatal(err)
			}
		}
		out, _ = doctorIn(t, filepath.Dir(testkit.Node(t))+string(os.PathListSeparator)+few, "--json")
	}
	var report struct{ Runtimes []examined }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range wells {
		i := slices.IndexFunc(report.Runtimes, func(r examined) bool { return r.Name == name })
		if i < 0 {
			t.Errorf("%s was not tried", name)
			continue
		}
		want := examined{name, true, true, true, true, "", ""}
		if got := report.Runtimes[i]; got != want {
			t.Errorf("not well: %+v", got)
		}
	}
}

// For a command that lacks a variable, doctor prints the line that sets it.
func TestDoctorNamesTheMissingLine(t *testing.T) {
	t.Parallel()
	php, _ := clientenv.ProgramOf("php")
	stream := testkit.Write(t, filepath.Join(t.TempDir(), "stream.php"), "<?php exit(@file_get_contents($argv[1]) === false ? 1 : 0);")
	node := `fetch(process.argv[1]).then(r => process.exit(r.ok ? 0 : 1)).catch(e => process.exit(2))`
	for _, c := range []struct {
		command string // words
		last    string // and one more
		row     []string
	}{
		{"curl -sSf", "", []string{"yes", "yes", "yes", "-"}},
		{"env -u NODE_USE_ENV_PROXY node -e", node, []string{"no", "-", "-", "NODE_USE_ENV_PROXY=1 http_proxy=http://HEED https_proxy=http://HEED"}},
		{"env -u NODE_EXTRA_CA_CERTS node -e", node, []string{"yes", "no", "yes", "NODE_EXTRA_CA_CERTS=BUNDLE"}},
		{"env -u https_proxy -u HTTPS_PROXY -u all_proxy -u ALL_PROXY curl -sSf", "", []string{"http only", "-", "yes", "http_proxy=http://HEED https_proxy=http://HEED"}},
		{"env -u CURL_CA_BUNDLE -u SSL_CERT_FILE curl -sSf", "", []string{"yes", "no", "yes", "CURL_CA_BUNDLE=BUNDLE"}},
		{"curl -sS", "", []string{"yes", "yes", "no", "a check of the answer's status: 403 is taken for success"}},
		{"curl -sSf --noproxy *", "", []string{"no", "-", "-", "http_proxy=http://HEED https_proxy=http://HEED"}},
		{"env -u PHP_INI_SCAN_DIR php " + stream, "", []string{"no", "-", "-", php.Proxy}},
		{"aria2c -q --dry-run=true", "", []string{"yes", "no", "yes", "aria2c --ca-certificate=BUNDLE"}},
		{"no-such-command", "", []string{"no", "-", "-", "http_proxy=http://HEED https_proxy=http://HEED"}},
	} {
		args := append([]string{"--"}, strings.Fields(c.command)...)
		if c.last != "" {
			args = append(args, c.last)
		}
		out, status := doctor(t, args...)
		well := c.row[3] == "-"
		lines := strings.Split(out, "\n")
		if len(lines) < 2 || well != (status == 0) || !well && status != 1 {
			t.Errorf("%s: status %d\n%s", c.command, status, out)
			continue
		}
		if row := strings.Join(c.row, "|"); !strings.HasSuffix(columns(lines[1]), "|"+row) {
			t.Errorf("%s: %s\nwant %s\n%s", c.command, columns(lines[1]), row, out)
		}
	}
}

// columns joins the columns of a table's line by |.
func columns(line string) string {
	var cells []string
	for _, cell := range strings.Split(line, "  ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			cells = append(cells, cell)
		}
	}
	return strings.Join(cells, "|")
}
