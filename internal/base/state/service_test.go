//go:build linux

package state

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"heed/internal/output/console"
	"heed/internal/tools/testkit/must"
)

// asOrdinaryUser makes this goroutine access files as an ordinary user until the test
// ends: nothing is closed to root.
func asOrdinaryUser(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread() // and never unlocked, so that the thread ends with the goroutine
	must.OK(t, unix.Setfsuid(65534))
	t.Cleanup(func() { unix.Setfsuid(0) }) // before files are removed
}

// On a machine where heed is installed as a service, a command about an existing heed finds
// the state directory of the service, unless the user has one or has named one.
func TestFind_TheStateDirectoryOfTheService(t *testing.T) {
	root := t.TempDir()
	service, home := filepath.Join(root, "service"), filepath.Join(root, "home")
	own := filepath.Join(home, ".local", "state", "heed")
	must.OK(t, errors.Join(os.Mkdir(service, 0o700), os.Mkdir(home, 0o700)))
	at := func(service, goos string, environ ...string) search {
		return search{
			getenv: func(name string) string { v, _ := console.Lookup(environ, name); return v },
			home:   func() (string, error) { return home, nil },
			goos:   goos, service: service, args: []string{"audit", "report", "--agent", "News Bot"},
		}
	}
	is := func(name, want string, s search) {
		t.Helper()
		got, err := s.serviceDir()
		must.True(t, got == want && err == nil, "%s: %q, %v; want %q", name, got, err, want)
	}
	is("the service's is used", service, at(service, "linux"))
	is("there is no service", "", at(filepath.Join(root, "none"), "linux"))
	is("a file", "", at(os.Args[0], "linux"))
	is("services of other systems have other places", "", at(service, "darwin"))
	is("HEED_STATE", "", at(service, "linux", "HEED_STATE="+root))
	is("XDG_STATE_HOME, without a directory", service, at(service, "linux", "XDG_STATE_HOME="+root+"/xdg"))

	noHome := at(service, "linux")
	noHome.home = func() (string, error) { return "", errors.New("no home") }
	is("a user without a home", service, noHome)

	must.OK(t, os.MkdirAll(own, 0o700))
	is("the user has a directory", "", at(service, "linux"))
	advice := at(service, "linux").advice(own)
	must.True(t, strings.Contains(advice, service) && strings.HasSuffix(advice, " heed audit report --agent 'News Bot'"),
		"the advice is %q", advice)
	must.Equal(t, at(service, "linux").advice(service), "", "the advice about the directory of the service")
	must.Equal(t, at(filepath.Join(root, "none"), "linux").advice(own), "", "the advice without a service")
}

// A user who may not read the service's state directory learns the command that may.
func TestFind_NamesSudoWhereTheServiceCannotBeRead(t *testing.T) {
	root := t.TempDir()
	service := filepath.Join(root, "service")
	must.OK(t, errors.Join(os.Chmod(filepath.Dir(root), 0o755), os.Mkdir(service, 0o700)))
	if os.Geteuid() != 0 {
		must.OK(t, os.Chmod(service, 0))
	}
	asOrdinaryUser(t)
	s := search{
		getenv: func(string) string { return "" }, home: func() (string, error) { return filepath.Join(root, "home"), nil },
		goos: "linux", service: service, args: []string{"status"},
	}
	got, err := s.serviceDir()
	must.Need(t, err != nil && got == "", "%q, %v", got, err)
	for _, part := range []string{service, "Run: sudo -u " + s.owner() + " heed status"} {
		must.Contain(t, err.Error(), part, "%q lacks %q", err, part)
	}
}

// A command that only reads needs no room and no right to write.
func TestFind_NeedsNoWrite(t *testing.T) {
	dir := "/sys/kernel" // also root can make no file in it
	if os.Geteuid() != 0 {
		dir = t.TempDir()
		must.OK(t, os.Chmod(dir, 0o500))
	}
	t.Setenv("HEED_STATE", dir)
	got, err := Find(io.Discard)
	must.True(t, got == dir && err == nil, "got %s, %v", got, err)
	_, err = Dir()
	must.True(t, err != nil, "a heed would start in it")
}

func TestFind_SaysThatItUsesTheService(t *testing.T) {
	s := thisSearch()
	s.getenv, s.home = func(string) string { return "" }, func() (string, error) { return t.TempDir(), nil }
	s.goos, s.service = "linux", t.TempDir()
	var said bytes.Buffer
	dir, err := s.find(&said)
	if got := said.String(); dir != s.service || err != nil || got != "heed: using the state directory of the service, "+s.service+"\n" {
		t.Errorf("%q, %v: %q", dir, err, got)
	}
}

// A command that only looks makes no directory, and for a user without a home it says what to type.
func TestFind_MakesNothing(t *testing.T) {
	for name := range map[string]bool{"HEED_STATE": true, "XDG_STATE_HOME": true} {
		t.Setenv(name, "")
	}
	home := filepath.Join(t.TempDir(), "nobody")
	t.Setenv("HOME", home)
	s := thisSearch()
	s.service = filepath.Join(home, "service") // also where heed is installed as one
	dir, err := s.find(io.Discard)
	must.True(t, err == nil && strings.HasPrefix(dir, home), "%q, %v", dir, err)
	_, err = os.Stat(home)
	must.True(t, errors.Is(err, fs.ErrNotExist), "%s was made: %v", home, err)
	t.Setenv("HOME", "")
	must.Fail(t, must.Err(s.find(io.Discard)), "HEED_STATE="+ServiceDir, "without a home")
}
