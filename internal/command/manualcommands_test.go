package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/output/manual"
	"heed/internal/tools/testkit/must"
)

// The commands of the manual about the record are run, and what they print is
// compared, by three scripts. This test compares the manual with the scripts.
func TestManual_CommandsAboutTheRecordAreRunByScripts(t *testing.T) {
	t.Parallel()
	bare := strings.NewReplacer("'", "", `"`, "")
	scripts := ""
	for _, name := range []string{"auditing.txtar", "site_writes.txtar", "audit_prove.txtar"} {
		text := must.Get(os.ReadFile(filepath.Join("testdata", "script", name)))(t)
		scripts += bare.Replace(string(text))
	}
	found := 0
	for _, name := range []string{"record", "auditing", "verification", "complaints"} {
		topic, ok := manual.Lookup(name)
		must.Need(t, ok, "the manual has no topic %s", name)
		for line := range strings.Lines(topic.Text) {
			command, ok := strings.CutPrefix(line, "    $ ")
			if !ok {
				continue
			}
			found++
			command, _, _ = strings.Cut(strings.TrimSpace(command), " > ")
			must.Contain(t, scripts, "\nexec "+bare.Replace(command)+"\n", "%s: no script runs %q", name, command)
		}
	}
	must.True(t, found >= 15, "the topics have %d commands", found)
}
