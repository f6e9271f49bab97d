package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestHeed_TheStateDirectoryHasItsPlace(t *testing.T) {
	home := func() (string, error) { return "/home/me", nil }
	noHome := func() (string, error) { return "", errors.New("no home") }
	is := func(want, goos string, home func() (string, error), environ ...string) {
		t.Helper()
		getenv := func(name string) string { v, _ := console.Lookup(environ, name); return v }
		got, err := statePath(getenv, home, goos)
		must.True(t, got == want && (err != nil) == (want == ""), "%s %q: %q, %v; want %q", goos, environ, got, err, want)
	}
	is("/home/me/.local/state/heed", "linux", home)
	is("/xdg/heed", "linux", home, "XDG_STATE_HOME=/xdg")
	is("/home/me/.local/state/heed", "linux", home, "XDG_STATE_HOME=relative")
	is("/mine", "linux", home, "XDG_STATE_HOME=/xdg", "HEED_STATE=/mine")
	is("/home/me/Library/Application Support/heed", "darwin", home)
	is("/mine", "linux", noHome, "HEED_STATE=/mine")
	is("", "linux", noHome)
}

func TestHeed_TheStateDirectoryIsMadeForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	t.Setenv("HEED_STATE", dir)
	got, err := Dir()
	must.Need(t, err == nil && got == dir, "%q, %v", got, err)
	info, err := os.Stat(dir)
	must.True(t, err == nil && info.Mode().Perm() == 0o700, "mode %v, %v", info.Mode(), err)
	left, err := os.ReadDir(dir)
	must.True(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}

func TestHeed_AnUnfitStateDirectoryIsNamedWithItsCure(t *testing.T) {
	says := func(dir string, want ...string) {
		t.Helper()
		t.Setenv("HEED_STATE", dir)
		_, err := Dir()
		if err == nil {
			t.Errorf("%s is accepted", dir)
			return
		}
		for _, text := range want {
			must.Contain(t, err.Error(), text, "%q does not say %q", err, text)
		}
	}
	root := t.TempDir()
	file := testkit.Write(t, filepath.Join(root, "file"), "")
	says(file, "cannot be made", "HEED_STATE")
	says(filepath.Join(file, "below"), "cannot be made", "HEED_STATE")

	shared := filepath.Join(root, "shared place")
	must.OK(t, errors.Join(os.Mkdir(shared, 0o700), os.Chmod(shared, 0o777)))
	says(shared, "changed by everyone (mode 0777)", "chmod 700 '"+shared+"'")

	foreign := filepath.Join(root, "foreign")
	must.OK(t, os.Mkdir(foreign, 0o700))
	if os.Geteuid() != 0 { // only root can give a directory away, and nothing is closed to root
		must.OK(t, os.Chmod(foreign, 0o500))
		says(foreign, "cannot be written to", "HEED_STATE")
		return
	}
	must.OK(t, os.Chown(foreign, 65534, -1))
	says(foreign, "belongs to user 65534", "HEED_STATE")
}
