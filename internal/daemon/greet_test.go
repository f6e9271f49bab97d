package daemon

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"heed/internal/config"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestHeed_TheNameIsRandomAndStays(t *testing.T) {
	dir := t.TempDir()
	names := make([]string, 20)
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() {
			var err error
			names[i], err = ProxyName(&config.Config{}, dir)
			must.True(t, err == nil, "%v", err)
		})
	}
	all.Wait()
	for _, name := range names {
		must.Need(t, name == names[0], "several names: %q", names)
	}
	host, err := os.Hostname()
	must.True(t, err == nil && names[0] != host && len(names[0]) == 12 && config.CheckName(names[0]) == nil,
		"the name is %q, %v", names[0], err)
	other, err := ProxyName(&config.Config{}, t.TempDir())
	must.True(t, err == nil && other != names[0], "another state directory has the name %q, %v", other, err)
	given, err := ProxyName(&config.Config{Name: "edge-1"}, dir)
	must.True(t, err == nil && given == "edge-1", "the configured name is %q, %v", given, err)
}

func TestHeed_ANameThatCannotBeSentIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "two words\n", "a\r\nX: y\n"} {
		file := testkit.Write(t, filepath.Join(dir, "name"), text)
		name, err := ProxyName(&config.Config{}, dir)
		must.True(t, err != nil, "%q in %s gives %q", text, file, name)
	}
}
