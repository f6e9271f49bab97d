package testkit_test

import (
	"os/exec"
	"testing"

	"heed/internal/testkit"
)

func TestClientsPrintThePageAsItIs(t *testing.T) {
	page := "<p>caf\xe9 \x00\r\nno newline at the end"
	o := testkit.NewOrigin(t, testkit.Site{Name: "site.test", Files: map[string]string{"/page.html": page}})
	clients := testkit.NewClients(t)
	for name, command := range map[string][]string{
		"go": clients.Go, "python": clients.Python, "perl": clients.Perl,
		"java": clients.Java, "node": clients.Node,
	} {
		args := append(command[1:len(command):len(command)], o.URL("site.test", "/page.html"), "named/1.0")
		cmd := exec.Command(command[0], args...)
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		out, err := cmd.Output()
		if err != nil || string(out) != page {
			t.Errorf("%s printed %q, %v", name, out, err)
		}
	}
	for _, hit := range o.Hits() {
		if hit.Agent != "named/1.0" {
			t.Errorf("a client called itself %q", hit.Agent)
		}
	}
}
