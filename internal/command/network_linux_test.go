package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A bot in a network whose only exit is heed, as in the topic containers of the
// manual: each of its requests is judged or fails. heed is configured by its
// environment alone.
func TestANetworkWithNoOtherWayOut(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"unshare", "ip", "curl"} {
		testkit.Program(t, program)
	}
	story := must.Get(filepath.Abs("testdata/network/story.sh"))(t)
	dir := t.TempDir()
	// All that the story starts ends with its first process.
	args := []string{"--net", "--mount", "--pid", "--fork", "--kill-child", "sh", story, testkit.Binary(t), dir}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", testkit.RaceOptions}
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s\nNetwork namespaces need root, or a kernel that gives them to users", err, out)
	got := string(out)
	for _, want := range []string{
		"routes: 172.20.0.0/24 dev eth0",
		"directly: curl: (7) ", // no way there
		"past-the-libraries: OSError: [Errno 101] Network is unreachable",
		"through-heed: the page",
		"refused: 403",
		"into-the-own-network: 502",
		"another-network: 403",
		"the site was asked for:  2 GET /page.html 1 GET /robots.txt", // one of the two is the story's own, before the bot's
		"recorded: 1 allowed, 3 refused",
	} {
		must.Contain(t, "\n"+got, "\n"+want, "%q is not in it:\n%s", want, got)
	}
}
