package testkit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"heed/internal/tools/testkit"
)

func TestClientsPrintThePageAsItIs(t *testing.T) {
	page := "<p>caf\xe9 \x00\r\nno newline at the end"
	o := testkit.NewOrigin(t, testkit.Site{Name: "site.test", Files: map[string]string{"/page.html": page}})
	dir := testkit.Clients(t)
	for _, name := range []string{"fetch-go", "fetch-java", "fetch-node", "fetch-perl", "fetch-python"} {
		cmd := exec.Command(filepath.Join(dir, name), o.URL("site.test", "/page.html"), "named/1.0")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
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
