package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

func TestHeed_OneStateDirectoryBelongsToOneHeed(t *testing.T) {
	state := t.TempDir()
	lock := must.Get(Acquire(state, 0))(t)
	says := func(h Holder, parts ...string) {
		t.Helper()
		if h != (Holder{}) {
			must.OK(t, lock.Publish(h))
		}
		_, err := Acquire(state, 0)
		var held *HeldError
		must.Need(t, errors.As(err, &held), "a second heed gets %v", err)
		for _, part := range parts {
			must.Contain(t, err.Error(), part, "%q lacks %q", err, part)
		}
	}
	says(Holder{}, "is starting", "Try again")
	says(Holder{PID: 42, Listen: "127.0.0.1:3128"}, "pid 42", "127.0.0.1:3128", state, "HEED_STATE")
	says(Holder{PID: 42, Background: true}, "heed run", "HEED_STATE")
	lock.Release()
	next, err := Acquire(state, 0)
	must.OK(t, err, "after the first has gone")
	defer next.Release()
	h, err := ReadHolder(state)
	must.True(t, err != nil, "the next one finds what the first wrote: %+v", h)
}

func TestHeed_TheNextHeedWaitsForOneThatIsEnding(t *testing.T) {
	state := t.TempDir()
	lock := must.Get(Acquire(state, 0))(t)
	got := make(chan error)
	go func() {
		next, err := Acquire(state, 20*time.Second)
		if err == nil {
			next.Release()
		}
		got <- err
	}()
	lock.Release()
	must.OK(t, <-got)
}

func TestHeed_AStateDirectoryThatCannotBeLockedIsNamed(t *testing.T) {
	state := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(state, lockName), 0o700))
	must.Fail(t, must.Err(Acquire(state, 0)), "cannot be locked")
}
