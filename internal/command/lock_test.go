package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHeed_OneStateDirectoryBelongsToOneHeed(t *testing.T) {
	state := t.TempDir()
	lock, err := lockState(state, 0)
	if err != nil {
		t.Fatal(err)
	}
	says := func(h holder, parts ...string) {
		t.Helper()
		if h != (holder{}) {
			if err := lock.tell(h); err != nil {
				t.Fatal(err)
			}
		}
		_, err := lockState(state, 0)
		var held *errHeld
		if !errors.As(err, &held) {
			t.Fatalf("a second heed is told %v", err)
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
	}
	says(holder{}, "is starting", "Try again")
	says(holder{PID: 42, Listen: "127.0.0.1:3128"}, "pid 42", "127.0.0.1:3128", state, "HEED_STATE")
	says(holder{PID: 42, Background: true}, "heed run", "HEED_STATE")
	lock.release()
	next, err := lockState(state, 0)
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	defer next.release()
	if h, err := readHolder(state); err == nil {
		t.Errorf("the next one finds what the first wrote: %+v", h)
	}
}

func TestHeed_TheNextHeedWaitsForOneThatIsEnding(t *testing.T) {
	state := t.TempDir()
	lock, err := lockState(state, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		next, err := lockState(state, 20*time.Second)
		if err == nil {
			next.release()
		}
		got <- err
	}()
	lock.release()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestHeed_AStateDirectoryThatCannotBeLockedIsNamed(t *testing.T) {
	state := t.TempDir()
	if err := os.Mkdir(filepath.Join(state, lockName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := lockState(state, 0); err == nil || !strings.Contains(err.Error(), "cannot be locked") {
		t.Errorf("got %v", err)
	}
}

func TestHeed_TheControlSocketLiesInTheStateDirectory(t *testing.T) {
	if got, err := controlPath("/x/heed"); err != nil || got != "/x/heed/control.sock" {
		t.Errorf("got %s, %v", got, err)
	}
}

// longState is a state directory too long for a socket in it, and the
// directory that the socket goes to instead.
func longState(t *testing.T) (state, place string) {
	t.Helper()
	runtime, err := os.MkdirTemp("", "h") // short, unlike the test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtime) })
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	state = filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := controlPath(state)
	if err != nil {
		t.Fatal(err)
	}
	if len(path) > maxSocketPath || !strings.HasPrefix(path, runtime) {
		t.Fatalf("the socket goes to %s", path)
	}
	return state, filepath.Dir(path)
}

func TestHeed_ALongStateDirectoryHasItsSocketInAShortPlaceOfTheSameUser(t *testing.T) {
	state, place := longState(t)
	info, err := os.Lstat(place)
	if err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ownedByUs(info) {
		t.Errorf("the place has mode %v", info.Mode())
	}
	one, err1 := controlPath(state)
	two, err2 := controlPath(state + "er")
	if err1 != nil || err2 != nil || one == two {
		t.Errorf("two state directories: %s (%v) and %s (%v)", one, err1, two, err2)
	}
}

func TestHeed_APlaceThatSomebodyElsePreparedIsNotUsed(t *testing.T) {
	cases := map[string]func(place string) error{
		"a link": func(place string) error { return os.Symlink(t.TempDir(), place) },
		"a file": func(place string) error { return os.WriteFile(place, nil, 0o700) },
		"a directory others may enter": func(place string) error {
			return errors.Join(os.Mkdir(place, 0o755), os.Chmod(place, 0o755))
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			state, place := longState(t)
			if err := errors.Join(os.Remove(place), prepare(place)); err != nil {
				t.Fatal(err)
			}
			if path, err := controlPath(state); err == nil || !strings.Contains(err.Error(), place) {
				t.Errorf("it takes %s (%v)", path, err)
			}
		})
	}
}

// A log that could not be turned once, for want of a file perhaps, is written
// again when there is one: without it nothing would be let through.
func TestHeed_ABoundedLogGoesOnAfterATurnThatFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	w, err := openBounded(path, 30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 30)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".old"); err != nil { // as far as the turn came
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("and on\n")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "and on\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestHeed_ALogOfBoundedSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	write(t, path, "before\n")
	w, err := openBounded(path, 30)
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		if n, err := w.Write([]byte("0123456789\n")); n != 11 || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, name := range []string{path, path + ".old"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 30 || info.Size() == 0 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, mode %v", name, info.Size(), info.Mode())
		}
	}
}
