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
		if err := unix.FcntlFlock(other.Fd(), unix.F_OFD_GETLK, &probe); err != nil || probe.Type == unix.F_UNLCK {
			t.Fatalf("after %s, the lock is released (%v)", after, err)
		}
		t.Cleanup(func() { other.Close() })
	}
	locked("nothing")
	before := open()
	claim, err := Claim(symbolic)
	must.OK(t, err)
	for _, name := range []string{path, hard, symbolic} {
		if _, err := Claim(name); !errors.Is(err, ErrClaimed) {
			t.Errorf("%s is claimed twice: %v", name, err)
		}
		if _, err := Read(name, 1<<20); err == nil || !strings.Contains(err.Error(), "is a database that heed has open") {
			t.Errorf("%s is read: %v", name, err)
		}
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
	if n := open() - before; n != 4 { // the claim, and three of locked
		t.Errorf("%d files are open", n)
	}
	must.OK(t, claim.Close())
	locked("closing")
	again, err := Claim(hard)
	if err != nil {
		t.Fatalf("its lock is not released: %v", err)
	}
	for range 3 {
		if head, err := Head(symbolic, 3); len(head) > 0 || err != nil {
			t.Errorf("%q of an open database is read, %v", head, err)
		}
	}
	locked("a look at it")
	must.OK(t, errors.Join(sqlites.Close(), again.Close()))
	use.Ended()
	if n := open() - before; n != 5-1 { // those of locked, without that of SQLite
		t.Errorf("%d files are open at the end", n)
	}
	if head, err := Head(hard, 3); string(head) != "SQL" || err != nil {
		t.Errorf("%q, %v", head, err)
	}
	if f, err := Read(path, 1<<20); err != nil || string(f.Data) != "SQLite" {
		t.Errorf("afterwards: %v", err)
	}
	if len(databases.all) > 0 {
		t.Errorf("%d databases are remembered", len(databases.all))
	}
}
