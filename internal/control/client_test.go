package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heed/internal/base/state"
	"heed/internal/tools/testkit/must"
)

func TestHeed_TheControlSocketLiesInTheStateDirectory(t *testing.T) {
	got, err := SocketPath("/x/heed")
	must.True(t, err == nil && got == "/x/heed/control.sock", "got %s, %v", got, err)
}

// longState is a state directory too long for a socket in it, and the
// directory that the socket goes to instead.
func longState(t *testing.T) (state, place string) {
	t.Helper()
	runtime, err := os.MkdirTemp("", "h") // short, unlike the test's own
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(runtime) })
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	state = filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	must.OK(t, os.Mkdir(state, 0o700))
	path := must.Get(SocketPath(state))(t)
	must.Need(t, len(path) <= maxSocketPath && strings.HasPrefix(path, runtime), "the socket goes to %s", path)
	return state, filepath.Dir(path)
}

func TestHeed_ALongStateDirectoryHasItsSocketInAShortPlaceOfTheSameUser(t *testing.T) {
	stateDir, place := longState(t)
	info := must.Get(os.Lstat(place))(t)
	must.True(t, info.IsDir() && info.Mode().Perm() == 0o700 && state.OwnedByUs(info), "the place has mode %v", info.Mode())
	one, err1 := SocketPath(stateDir)
	two, err2 := SocketPath(stateDir + "er")
	must.True(t, err1 == nil && err2 == nil && one != two,
		"two state directories: %s (%v) and %s (%v)", one, err1, two, err2)
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
			must.OK(t, errors.Join(os.Remove(place), prepare(place)))
			path, err := SocketPath(state)
			must.True(t, err != nil && strings.Contains(err.Error(), place), "it takes %s (%v)", path, err)
		})
	}
}

// The running heed judges the octets of a URL, also where they are no UTF-8.
func TestHeed_ARequestToJudgeKeepsTheOctetsOfItsURLs(t *testing.T) {
	t.Parallel()
	for _, q := range []CheckRequest{
		{Agent: "x", URLs: [][]byte{[]byte("http://h.test/é?<&>"), []byte("http://h.test/")}},
		{Agent: "x", URLs: [][]byte{[]byte("http://h.test/\xff")}},
		{Agent: "x", URLs: [][]byte{[]byte("http://h.test/é"), []byte("http://h.test/caf\xe9"), {}, []byte("http://h.test/\xc3")}},
	} {
		var got CheckRequest
		text, err := json.Marshal(&q)
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		must.True(t, err == nil && slices.EqualFunc(got.URLs, q.URLs, bytes.Equal) && got.Agent == q.Agent,
			"%q: %q, %v", q.URLs, got.URLs, err)
	}
}
