package command_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/config/clientenv"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// doctor runs `heed doctor` with a PATH, by default one with a new Node first, and looks
// whether it leaves anything behind.
func doctor(t *testing.T, path string, args ...string) (out string, status int) {
	t.Helper()
	left := t.TempDir()
	if path == "" {
		path = filepath.Dir(testkit.Node(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	}
	cmd := exec.Command(testkit.Binary(t), append([]string{"doctor"}, args...)...)
	cmd.Env = []string{
		"PATH=" + path, "HOME=" + t.TempDir(), "TMPDIR=" + left, "NO_PROXY=*", testkit.RaceOptions,
		"HEED_LISTEN=0.0.0.0:3128", "HEED_CLIENTS=172.16.0.0/12", // as in a container: the check has nothing to do with it
	}
	text, err := cmd.Output()
	exit := (*exec.ExitError)(nil)
	must.Need(t, err == nil || errors.As(err, &exit), "%v", err)
	rest, _ := filepath.Glob(filepath.Join(left, "heed-doctor-*"))
	must.True(t, len(rest) == 0, "heed doctor left %v behind", rest)
	return string(text), cmd.ProcessState.ExitCode()
}

// The runtimes of a machine are listed, with what ignores proxies; a version of Node that
// reads them is not the one that does not.
func TestDoctorListsTheRuntimesThatIgnoreProxies(t *testing.T) {
	t.Parallel()
	few := t.TempDir()
	for name, script := range map[string]string{"node": "echo v20.20.2", "tclsh": "", "curl": "echo curl 8.5.0 x86_64", "sudo": "echo 1.9.1"} {
		testkit.Write(t, filepath.Join(few, name), "#!/bin/sh\n"+script+"\n")
		must.OK(t, os.Chmod(filepath.Join(few, name), 0o755))
	}
	out, status := doctor(t, few)
	node, _ := clientenv.ProgramOf("node")
	tcl, _ := clientenv.ProgramOf("tclsh")
	want := []string{"runtime|proxy variables|needs", "node 20.20.2|ignored|heed run --sealed, or: " + node.Proxy, "curl 8.5.0|read|-", "tclsh|ignored|heed run --sealed, or: " + tcl.Proxy, "To try a command: heed doctor -- CMD {}"}
	lines := strings.Split(out, "\n")
	for i, line := range want {
		must.Need(t, status == 0 && columns(lines[i]) == line,
			"status %d, %q in place of %q:\n%s", status, columns(lines[i]), line, out)
	}
	if !strings.Contains(out, "\nheed run --sealed: ") || !strings.HasSuffix(out, "\nsignatures: no client is signed (heed help identity)\n") {
		t.Error(out)
	}
	out, _ = doctor(t, filepath.Dir(testkit.Node(t)), "--json")
	var report struct {
		Runtimes []struct {
			Name    string
			Ignores bool `json:"ignores_proxies"`
		}
	}
	err := json.Unmarshal([]byte(out), &report)
	must.True(t, err == nil && len(report.Runtimes) == 1 && !report.Runtimes[0].Ignores, "%v: %s", err, out)
	if out, status := doctor(t, t.TempDir()); status != 0 || !strings.Contains(out, "\nTo try a command") {
		t.Errorf("on a machine with nothing: status %d\n%s", status, out)
	}
}

// For a command that lacks a variable, doctor prints the line that sets it.
func TestDoctorNamesTheMissingLine(t *testing.T) {
	t.Parallel()
	proxyOf := func(name string) string { p, _ := clientenv.ProgramOf(name); return p.Proxy }
	trustOf := func(name string) string { p, _ := clientenv.ProgramOf(name); return p.Trust }
	stream := testkit.Write(t, filepath.Join(t.TempDir(), "stream.php"), "<?php exit(@file_get_contents($argv[1]) === false ? 1 : 0);")
	node := `fetch(process.argv[1]).then(r => process.exit(r.ok ? 0 : 1)).catch(e => process.exit(2))`
	for _, c := range []struct {
		command string // words
		last    string // and one more
		row     []string
	}{
		{"curl -sSf", "", []string{"yes", "yes", "yes", "-"}},
		{"env -u NODE_USE_ENV_PROXY node -e", node, []string{"no", "-", "-", proxyOf("node")}},
		{"env -u NODE_EXTRA_CA_CERTS node -e", node, []string{"yes", "no", "yes", trustOf("node")}},
		{"env -u https_proxy -u HTTPS_PROXY -u all_proxy -u ALL_PROXY curl -sSf", "", []string{"http only", "-", "yes", proxyOf("curl")}},
		{"env -u CURL_CA_BUNDLE -u SSL_CERT_FILE curl -sSf", "", []string{"yes", "no", "yes", trustOf("curl")}},
		{"curl -sS", "", []string{"yes", "yes", "no", "a check of the answer's status: 403 is taken for success"}},
		{"curl -sSf --noproxy *", "", []string{"no", "-", "-", proxyOf("curl")}},
		{"env -u PHP_INI_SCAN_DIR php " + stream, "", []string{"no", "-", "-", proxyOf("php")}},
		{"aria2c -q --dry-run=true", "", []string{"yes", "no", "yes", "aria2c --ca-certificate=BUNDLE"}},
		{"no-such-command", "", []string{"no", "-", "-", "http_proxy=http://HEED https_proxy=http://HEED; heed run --sealed holds a program that ignores them"}},
	} {
		args := append([]string{"--"}, strings.Fields(c.command)...)
		if c.last != "" {
			args = append(args, c.last)
		}
		out, status := doctor(t, "", args...)
		well := c.row[3] == "-"
		lines := strings.Split(out, "\n")
		if len(lines) < 2 || well != (status == 0) || !well && status != 1 {
			t.Errorf("%s: status %d\n%s", c.command, status, out)
			continue
		}
		row := strings.Join(c.row, "|")
		must.True(t, strings.HasSuffix(columns(lines[1]), "|"+row), "%s: %s\nwant %s\n%s", c.command, columns(lines[1]), row, out)
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
