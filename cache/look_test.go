package cache

import (
	"os"
	"path/filepath"
	"testing"

	"heed/rules"
)

// Who looks into the file of a heed that has ended finds what it saved, and
// neither changes it nor keeps the next heed out.
func TestHeed_LookingIntoTheFileLeavesItAsItIs(t *testing.T) {
	dir := t.TempDir()
	site, o := newSite(t, status(200))
	f, _ := openFile(t, dir, 1<<30)
	writer, _ := newCache(t, Config{Keeper: f.Way("way")})
	writer.Policy(t.Context(), o, "")
	closeFile(t, f)
	path := f.path
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	looks := func(id string) rules.Source {
		c, _ := newCache(t, Config{Keeper: LookInto(path, id)})
		return c.Policy(t.Context(), o, "").Source()
	}
	if src := looks("way"); src.State != rules.Available || site.count.Load() != 1 {
		t.Errorf("%+v, %d requests", src, site.count.Load())
	}
	if looks("another way"); site.count.Load() != 2 {
		t.Errorf("another way finds it: %d requests", site.count.Load())
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed, or %v", err)
	}
	f, _ = openFile(t, dir, 1<<30)
	if _, _, ok := LookInto(path, "way").Load(keeperKey(o, "")); ok {
		t.Error("found in a file that is in use")
	}
	closeFile(t, f)
	if _, _, ok := LookInto(filepath.Join(dir, "none.db"), "way").Load(keeperKey(o, "")); ok {
		t.Error("found in no file")
	}
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := LookInto(path, "way").Load(keeperKey(o, "")); ok {
		t.Error("found in what is no such file")
	}
}
