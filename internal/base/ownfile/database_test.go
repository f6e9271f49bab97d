//go:build linux

package ownfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"

	"golang.org/x/sys/unix"
)

// A database that SQLite has open keeps its locks: neither a descriptor nor a reader of
// settings closes it under any of its names, and what could not be closed is closed after it.
func TestHeed_NoDescriptorOfAnOpenDatabaseIsClosed(t *testing.T) {
	dir := t.TempDir()
	path, hard, symbolic := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db"), filepath.Join(dir, "c.db")
	must.OK(t, errors.Join(os.WriteFile(path, []byte("SQLite"), 0o600), os.WriteFile(path+"-shm", nil, 0o600), os.Link(path, hard), os.Symlink(path, symbolic)))
	open := func() int {
		t.Helper()
		all := must.Get(os.ReadDir("/proc/self/fd"))(t)
		n := 0
		for _, fd := range all {
			if at, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(at, dir) {
				n++
			}
		}
		return n
	}
	_, use := Using(path, nil)
	sqlites, err := os.OpenFile(path, os.O_RDWR, 0) // as SQLite opens and locks it
	must.OK(t, err)
	lock := unix.Flock_t{Type: unix.F_RDLCK, Start: 1073741826, Len: 510}
	must.OK(t, unix.FcntlFlock(sqlites.Fd(), unix.F_SETLK, &lock))
	locked := func(after string) {
		t.Helper()
		probe := unix.Flock_t{Type: unix.F_WRLCK, Start: 1073741826, Len: 510}
		other := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
		// The lock of an open file description conflicts with those of its own process.
		err := unix.FcntlFlock(other.Fd(), unix.F_OFD_GETLK, &probe)
		must.Need(t, err == nil && probe.Type != unix.F_UNLCK, "after %s, the lock is released (%v)", after, err)
		t.Cleanup(func() { other.Close() })
	}
	locked("nothing")
	before := open()
	claim := must.Get(Claim(symbolic))(t)
	for _, name := range []string{path, hard, symbolic} {
		_, err := Claim(name)
		must.True(t, errors.Is(err, ErrClaimed), "%s is claimed twice: %v", name, err)
		must.Fail(t, must.Err(Read(name, 1<<20)), "is a database that heed has open", name)
		if at, end := Using(name, nil); at != path {
			t.Errorf("%s is opened as %s", name, at)
		} else {
			end.Ended()
		}
		locked(name)
	}
	if _, err := Read(path+"-shm", 1<<20); err == nil {
		t.Error("the index is read")
	}
	n := open() - before
	must.True(t, n == 4, "%d files are open", n) // the claim, and three of locked
	must.OK(t, claim.Close())
	locked("closing")
	again, err := Claim(hard)
	must.OK(t, err, "its lock is not released")
	for range 3 {
		head, err := Head(symbolic, 3)
		must.True(t, len(head) == 0 && err == nil, "%q of an open database is read, %v", head, err)
	}
	locked("a look at it")
	must.OK(t, errors.Join(sqlites.Close(), again.Close()))
	use.Ended()
	n = open() - before
	must.True(t, n == 5-1, "%d files are open at the end", n) // those of locked, without that of SQLite
	head, err := Head(hard, 3)
	must.True(t, string(head) == "SQL" && err == nil, "%q, %v", head, err)
	f, err := Read(path, 1<<20)
	must.True(t, err == nil && string(f.Data) == "SQLite", "afterwards: %v", err)
	must.True(t, len(databases.all) == 0, "%d databases are remembered", len(databases.all))
}
