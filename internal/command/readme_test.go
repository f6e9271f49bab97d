package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/testkit"
)

// The README's commands about the record are run, and what they print is
// compared, by two stories. This holds the one against the others.
func TestHeed_TheReadmesCommandsAboutTheRecordAreStories(t *testing.T) {
	bare := strings.NewReplacer("'", "", `"`, "")
	stories := ""
	for _, name := range []string{"auditing.txtar", "site_writes.txtar"} {
		text, err := os.ReadFile(filepath.Join("testdata", "script", name))
		if err != nil {
			t.Fatal(err)
		}
		stories += bare.Replace(string(text))
	}
	readme, err := os.ReadFile(filepath.Join(testkit.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, chapters, ok := strings.Cut(string(readme), "\n## The record\n")
	chapters, _, ended := strings.Cut(chapters, "\n## Several heeds\n")
	if !ok || !ended {
		t.Fatal("the chapters about the record are not where they were")
	}
	found := 0
	for line := range strings.Lines(chapters) {
		command, ok := strings.CutPrefix(line, "    $ ")
		if !ok {
			continue
		}
		found++
		command, _, _ = strings.Cut(strings.TrimSpace(command), " > ")
		if !strings.Contains(stories, "\nexec "+bare.Replace(command)+"\n") {
			t.Errorf("no story runs %q", command)
		}
	}
	if found < 15 {
		t.Errorf("the chapters have %d commands", found)
	}
}
