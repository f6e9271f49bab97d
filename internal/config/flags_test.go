package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// The file that is read follows from the flags, the environment and the working
// directory, in this order, and an error names the reason.
func TestHeed_TheSettingsFileIsChosenAndTheErrorSaysWhy(t *testing.T) {
	foreign, good := "[server]\n", "contact = \"bot@example.org\"\n"
	cases := []struct {
		name    string
		flags   FileFlags
		environ []string
		here    string // proxy.toml in the working directory; empty: none
		contact string
		err     string // empty: no error
		chosen  bool
	}{
		{name: "nothing"},
		{name: "working directory", here: good, contact: "bot@example.org"},
		{name: "stray file", here: foreign, err: "proxy.toml because it is in the working directory"},
		{name: "stray file, flag", flags: FileFlags{NoConfig: true}, here: foreign, chosen: true},
		{name: "stray file, empty variable", environ: []string{"HEED_CONFIG="}, here: foreign, chosen: true},
		{name: "stray file, another named", flags: FileFlags{Config: "good.toml"}, here: foreign, contact: "bot@example.org", chosen: true},
		{name: "variable", environ: []string{"HEED_CONFIG=good.toml"}, here: foreign, contact: "bot@example.org", chosen: true},
		{name: "variable, wrong file", environ: []string{"HEED_CONFIG=foreign.toml"}, here: good, err: "foreign.toml because HEED_CONFIG names it", chosen: true},
		{name: "variable, missing file", environ: []string{"HEED_CONFIG=none.toml"}, here: good, err: "none.toml because HEED_CONFIG names it", chosen: true},
		{name: "flag before variable", flags: FileFlags{Config: "good.toml"}, environ: []string{"HEED_CONFIG=foreign.toml"}, contact: "bot@example.org", chosen: true},
		{name: "flag before empty variable", flags: FileFlags{Config: "good.toml"}, environ: []string{"HEED_CONFIG="}, contact: "bot@example.org", chosen: true},
		{name: "no file before variable", flags: FileFlags{NoConfig: true}, environ: []string{"HEED_CONFIG=foreign.toml"}, here: foreign, chosen: true},
		{name: "flag, wrong file", flags: FileFlags{Config: "foreign.toml"}, here: good, err: "foreign.toml because --config names it", chosen: true},
		{name: "both flags", flags: FileFlags{Config: "good.toml", NoConfig: true}, err: "Leave one of them out", chosen: true},
	}
	defaults := testkit.BuiltIn(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			testkit.Write(t, filepath.Join(dir, "good.toml"), good)
			testkit.Write(t, filepath.Join(dir, "foreign.toml"), foreign)
			if c.here != "" {
				testkit.Write(t, filepath.Join(dir, FileName), c.here)
			}
			a := &console.App{Environ: c.environ, Defaults: defaults}
			got, err := c.flags.Load(a)
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want %q", err, c.err)
			case c.err == "" && err != nil:
				t.Error(err)
			case err == nil && got.Contact != c.contact:
				t.Errorf("contact %q, want %q", got.Contact, c.contact)
			}
			must.Equal(t, c.flags.Chosen(a), c.chosen, "chosen: %v", !c.chosen)
		})
	}
}

// A reload reads the file of the start, whatever the working directory has by then.
func TestHeed_AReloadReadsTheFileOfTheStart(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	a, none := &console.App{Defaults: testkit.BuiltIn(t)}, FileFlags{NoConfig: true}
	file := testkit.Write(t, filepath.Join(dir, FileName), "contact = \"bot@example.org\"\n")
	before := must.Get((&FileFlags{}).Load(a))(t)
	t.Chdir(t.TempDir())
	testkit.Write(t, FileName, "[server]\n")
	again, err := (&FileFlags{}).Again(a, before)
	must.True(t, err == nil && again.File == file, "read from %v, %v", again, err)
	again, err = none.Again(a, &Config{})
	must.True(t, err == nil && again.File == "", "with no file: %v, %v", again, err)
	must.OK(t, os.Remove(file))
	must.Fail(t, must.Err((&FileFlags{}).Again(a, before)), file, "the file of the start is gone")
}
