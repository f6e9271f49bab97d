package daemon

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"heed/internal/config"
	"heed/internal/tools/testkit"
)

func TestHeed_TheNameIsRandomAndStays(t *testing.T) {
	dir := t.TempDir()
	names := make([]string, 20)
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() {
			var err error
			if names[i], err = ProxyName(&config.Config{}, dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, name := range names {
		if name != names[0] {
			t.Fatalf("several names: %q", names)
		}
	}
	host, err := os.Hostname()
	if err != nil || names[0] == host || len(names[0]) != 12 || config.CheckName(names[0]) != nil {
		t.Errorf("the name is %q, %v", names[0], err)
	}
	if other, err := ProxyName(&config.Config{}, t.TempDir()); err != nil || other == names[0] {
		t.Errorf("another state directory has the name %q, %v", other, err)
	}
	if given, err := ProxyName(&config.Config{Name: "edge-1"}, dir); err != nil || given != "edge-1" {
		t.Errorf("the configured name is %q, %v", given, err)
	}
}

func TestHeed_ANameThatCannotBeSentIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "two words\n", "a\r\nX: y\n"} {
		file := testkit.Write(t, filepath.Join(dir, "name"), text)
		if name, err := ProxyName(&config.Config{}, dir); err == nil {
			t.Errorf("%q in %s gives %q", text, file, name)
		}
	}
}
