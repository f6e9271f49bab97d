package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
)

// A place where no record can be is named with the cure, and nothing is left
// beside it.
func TestHeed_APlaceWithoutARecordIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.OK(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "link")))
	for place, want := range map[string]string{
		filepath.Join(dir, "no", "audit.db"): "there is no directory",
		filepath.Join(dir, "link"):           "link to a file that does not exist",
		dir:                                  "Move it away, or name another file",
		os.DevNull:                           "Move it away, or name another file",
	} {
		if w, err := store.Open(place, store.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", place, err)
			if err == nil {
				w.Close("")
			}
		}
		for _, suffix := range []string{".tail", ".tail2", "-journal"} {
			_, err := os.Lstat(place + suffix)
			must.True(t, err != nil, "%s%s was left", place, suffix)
		}
	}
}

// What is no file is not read: a FIFO would wait for its writer, a device never ends.
func TestHeed_WhatIsNoFileIsNotReadAsARecord(t *testing.T) {
	t.Parallel()
	must.Fail(t, must.Err(store.OpenRecord("/dev/zero")), "is not a regular file", "a device")
	path := filepath.Join(t.TempDir(), "audit.db")
	open(t, path, store.Options{}).Close("")
	must.OK(t, os.Remove(path+".tail"))
	must.OK(t, os.Symlink("/dev/zero", path+".tail"))
	proof, err := store.Verify(t.Context(), path, nil, nil)
	must.True(t, err == nil && proof.Whole, "with a device for a tail: %+v, %v", proof, err)
}

// What another program put in the place of a file beside a record is named at the start, and
// after it was moved away nothing is missing.
func TestHeed_WhatIsNoFileBesideARecordIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{})
	must.OK(t, w.Decided(asked(policy("site.test"), "/")))
	must.OK(t, w.Close(""))
	for _, suffix := range []string{"-wal", "-shm"} {
		must.OK(t, os.Symlink(os.DevNull, path+suffix))
		must.Fail(t, must.Err(store.Open(path, store.Options{})), "audit.db"+suffix+" is not a file that SQLite made", suffix)
		must.OK(t, os.Remove(path+suffix))
	}
	must.OK(t, open(t, path, store.Options{}).Close(""))
	proof, err := store.Verify(t.Context(), path, nil, nil)
	must.True(t, err == nil && proof.Whole && proof.Head.Entries == 1, "%+v, %v", proof, err)
}

// A record is the same one by whatever link it is called: what a kill left in its
// tail is not forgotten by who comes another way.
func TestHeed_ALinkLeadsToTheRecordAndItsTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{})
	defer w.Close("")
	must.OK(t, w.Decided(asked(policy("site.test"), "/in-the-tail")))
	killed := store.Killed(t, path)
	link := filepath.Join(t.TempDir(), "link.db")
	must.OK(t, os.Symlink(killed, link))
	open(t, link, store.Options{}).Close("")
	must.Equal(t, count(t, view(t, killed), "SELECT count(*) FROM entry"), 1, "entries")
}
