package policyfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"heed/cache"
	"heed/internal/base/sqlite"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

const (
	toldTrouble = "policies cannot be saved for now: heed goes on with what is in memory"
	toldWell    = "policies are saved again"
)

// saysSo fails the test unless the log heard text so often.
func saysSo(t *testing.T, heard *bytes.Buffer, text string, times int) {
	t.Helper()
	n := strings.Count(heard.String(), text)
	must.True(t, n == times, "%q was told %d times, want %d: %s", text, n, times, heard)
}

func TestHeed_AWriteThatFailsIsReported(t *testing.T) {
	t.Parallel()
	f, heard := openFile(t, t.TempDir(), 1<<40)
	f.flushing.Lock() // the disk is busy
	k := f.ForRoute("")
	body := make([]byte, 1000)
	saved := 0
	for n := range 20_000 {
		if k.Save(fmt.Sprint("key ", n), []byte("r"), body) {
			saved++
		}
	}
	must.True(t, f.bytes <= maxPending && saved >= maxPending/2000 && saved != 20_000,
		"%d policies of %d bytes wait", saved, f.bytes)
	must.True(t, k.Drop("key 1"), "there was no room to forget")
	saysSo(t, heard, toldTrouble, 1)
	h := f.Health()
	must.True(t, h.Unsaved == uint64(20_000-saved) && h.Why == errTooFast.Error() && !h.Since.IsZero(), "%+v", h)
	f.flushing.Unlock()
	f.Flush()
	saysSo(t, heard, toldWell, 1)
	h = f.Health()
	must.True(t, h.Unsaved == uint64(20_000-saved) && h.Why == "", "%+v", h)
	lacks(t, k, "key 1")
	holds(t, k, "key 2", "r", string(body))
	closeFile(t, f)
}

// smallDisk is an empty file system of a few megabytes.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err == nil {
		t.Cleanup(func() {
			err := syscall.Unmount(dir, syscall.MNT_DETACH)
			must.True(t, err == nil, "%v", err)
		})
		return dir
	}
	out, err := exec.Command("sudo", "-n", "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=4m,mode=700,uid=%d", os.Getuid()), "tmpfs", dir).CombinedOutput()
	must.Need(t, err == nil,
		"this test fills a small disk, for which it mounts a tmpfs: run it as root, or where sudo asks for no password: %v %s", err, out)
	t.Cleanup(func() {
		out, err := exec.Command("sudo", "-n", "umount", "-l", dir).CombinedOutput()
		must.True(t, err == nil, "%v %s", err, out)
	})
	return dir
}

// A full disk costs what does not fit on it, while it is full. What was there
// before stays, what waited is written when there is room again, and the file is
// whole.
func TestHeed_AFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	f, heard := openFile(t, dir, 1<<30)
	k := f.ForRoute("")
	k.Save("before", []byte("r"), []byte("s"))
	must.Need(t, f.Flush(), "%v", heard)
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 4<<20), 0o600) // as far as it goes
	body := bytes.Repeat([]byte("x"), 10_000)
	for n := range 150 {
		k.Save(fmt.Sprint("key ", n), []byte("r"), body)
	}
	k.Drop("before")
	for range 3 {
		must.Need(t, !f.Flush(), "it fits")
	}
	saysSo(t, heard, toldTrouble, 1)
	h := f.Health()
	must.True(t, strings.Contains(h.Why, syscall.ENOSPC.Error()) && h.Unsaved == 0, "%+v", h)
	holds(t, k, "key 7", "r", string(body)) // it waits
	lacks(t, k, "before")
	k.Save("key 7", []byte("r2"), body)
	must.OK(t, os.Remove(ballast))
	must.Need(t, f.Flush(), "it does not fit: %+v", f.Health())
	saysSo(t, heard, toldWell, 1)
	closeFile(t, f)
	f, _ = openFile(t, dir, 1<<30)
	k = f.ForRoute("")
	holds(t, k, "key 7", "r2", string(body))
	holds(t, k, "key 8", "r", string(body))
	lacks(t, k, "before")
	closeFile(t, f)
}

// The writer tries again by itself, without anything new to save.
func TestHeed_AFullDiskThatHasRoomAgainIsNoticed(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	f, heard := openFile(t, dir, 1<<30)
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 4<<20), 0o600)
	k := f.ForRoute("")
	k.Save("key", []byte("r"), bytes.Repeat([]byte("x"), 1<<20))
	testkit.Until(t, "the failure shows", func() bool { return f.Health().Why != "" })
	must.OK(t, os.Remove(ballast))
	testkit.Until(t, "the failure is over", func() bool { return f.Health().Why == "" })
	closeFile(t, f)
	saysSo(t, heard, toldTrouble, 1)
	saysSo(t, heard, toldWell, 1)
}

// A file that another process has, or that may not be written, is no reason not
// to start: heed says so, and has it when it can be had.
func TestHeed_AFileThatCannotBeHadYet(t *testing.T) {
	t.Parallel()
	for name, takeAway := range map[string]func(t *testing.T, path string) (giveBack func()){
		"locked": func(t *testing.T, path string) func() {
			c, err := sqlite.Open(path, "rw", lockTime)
			if err == nil {
				_, err = c.Exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE policy SET saved = saved")
			}
			must.OK(t, err)
			return func() { c.Close() }
		},
		"read-only": func(t *testing.T, path string) func() { return readOnly(t, filepath.Dir(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallDisk(t)
			f, _ := openFile(t, dir, 1<<30)
			f.ForRoute("").Save("before", []byte("r"), []byte("s"))
			closeFile(t, f)
			giveBack := takeAway(t, f.path)
			f, heard := openFile(t, dir, 1<<30)
			saysSo(t, heard, toldTrouble, 1)
			k := f.ForRoute("")
			lacks(t, k, "before")
			k.Save("key", []byte("r"), []byte("s"))
			must.True(t, !f.Flush(), "it was saved")
			holds(t, k, "key", "r", "s")
			giveBack()
			must.Need(t, f.Flush(), "%+v", f.Health())
			saysSo(t, heard, toldTrouble, 1)
			saysSo(t, heard, toldWell, 1)
			holds(t, k, "before", "r", "s")
			holds(t, k, "key", "r", "s")
			closeFile(t, f)
		})
	}
}

// readOnly mounts the file system at dir read-only: root cannot write to it either.
func readOnly(t *testing.T, dir string) (undo func()) {
	t.Helper()
	remount := func(flags uintptr, option string) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, "size=4m"); err == nil {
			return
		}
		out, err := exec.Command("sudo", "-n", "mount", "-o", "remount,"+option, dir).CombinedOutput()
		must.Need(t, err == nil, "%v %s", err, out)
	}
	remount(syscall.MS_RDONLY, "ro")
	return func() { remount(0, "rw") }
}

// When the file is removed or replaced while heed uses it, heed does not go on
// writing to the old one, which has no name any more.
func TestHeed_AFileRemovedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, heard := openFile(t, dir, 1<<30)
	k := f.ForRoute("")
	k.Save("before", []byte("r"), nil)
	f.Flush()
	must.OK(t, os.Remove(f.path))
	k.Save("key", []byte("r"), []byte("s"))
	must.True(t, f.Flush(), "%+v", f.Health())
	saysSo(t, heard, "the policies file was removed or replaced while heed used it", 1)
	lacks(t, k, "before")
	closeFile(t, f)
	f, _ = openFile(t, dir, 1<<30)
	holds(t, f.ForRoute(""), "key", "r", "s")
	other, _ := filled(t)
	must.OK(t, os.Rename(other, f.path))
	f.ForRoute("").Save("key", []byte("r2"), []byte("s2"))
	f.Flush()
	holds(t, f.ForRoute(""), "key", "r2", "s2")
	holds(t, f.ForRoute(""), "key 1", "record key 1", "1 1 1 1 1 1 1 1 1 1 ")
	closeFile(t, f)
}

// The files that SQLite has beside the policies are removed or replaced by another program, and
// heed is killed: the next start has what was saved, and nothing that was purged. A start finds
// what it would find then in a copy of the directory.
func TestHeed_AFileBesideThePoliciesIsRemovedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	killed := func(f *File) cache.PolicyStore {
		dir := t.TempDir()
		must.OK(t, os.CopyFS(dir, os.DirFS(filepath.Dir(f.path))))
		next, _ := openFile(t, dir, 1<<30)
		t.Cleanup(func() { closeFile(t, next) })
		return next.ForRoute("")
	}
	remove := func(f *File, suffix string) func() error {
		return func() error { return os.Remove(f.path + suffix) }
	}
	f, heard := openFile(t, t.TempDir(), 1<<30)
	k := f.ForRoute("")
	k.Save("old\n", []byte("r"), nil)
	f.Flush()
	old := must.Get(os.ReadFile(f.path + "-wal"))(t)
	for i, spoil := range []func() error{
		remove(f, "-wal"), remove(f, "-shm"), func() error { return errors.Join(remove(f, "-wal")(), remove(f, "-shm")()) },
		func() error { return errors.Join(remove(f, "-wal")(), os.WriteFile(f.path+"-wal", old, 0o600)) },
	} {
		before, after := fmt.Sprint("before ", i), fmt.Sprint("after ", i)
		k.Save(before, []byte("r"), []byte("s"))
		f.Flush()
		must.OK(t, spoil())
		k.Save(after, []byte("r"), []byte("s"))
		must.True(t, f.Flush(), "%+v", f.Health())
		saysSo(t, heard, "a file beside the policies file was removed or replaced", i+1)
		next := killed(f)
		for _, key := range []string{before, after} {
			holds(t, k, key, "r", "s")
			holds(t, next, key, "r", "s")
		}
	}
	k.Drop("old\n")
	f.Flush()
	must.OK(t, errors.Join(remove(f, "-wal")(), remove(f, "-shm")()))
	lacks(t, killed(f), "old\n")
	closeFile(t, f)
}

// Any page may be lost, whether it holds policies or holds the file together.
// The process lives, nothing wrong is read, and heed saves on.
func TestHeed_ADamagedPageAnywhere(t *testing.T) {
	t.Parallel()
	path, want := filled(t)
	good := must.Get(os.ReadFile(path))(t)
	pages, step := len(good)/os.Getpagesize(), 61
	if testkit.Full {
		step = 1
	}
	for _, fill := range []byte{0, 0xff, 0x41} {
		for page := int(fill) % step; page < pages; page += step {
			bad := bytes.Clone(good)
			copy(bad[page*os.Getpagesize():], bytes.Repeat([]byte{fill}, os.Getpagesize()))
			dir := t.TempDir()
			must.OK(t, os.WriteFile(filepath.Join(dir, "policies.db"), bad, 0o600))
			f, _ := openFile(t, dir, 1<<30)
			right(t, f, want)
			k := f.ForRoute("")
			for n := range 20 {
				key := fmt.Sprint("key ", n*15)
				k.Save(key, []byte("record "+key), []byte(want[key]))
			}
			f.Flush()
			f.Flush() // into the new file, if the first met the damage
			right(t, f, want)
			must.OK(t, f.Close(), "page %d of %#x", page, fill)
		}
	}
}

// A change that could not be written does not undo what was saved later.
func TestHeed_WhatWaitsAgainIsNotNewerThanWhatCameSince(t *testing.T) {
	t.Parallel()
	f, _ := openFile(t, t.TempDir(), 1<<30)
	k := f.ForRoute("").(*fileStore)
	failed := map[string]change{
		k.prefix + "a\n":   {record: []byte("old"), snapshot: []byte("s")},
		k.prefix + "b\nas": {record: []byte("old")},
		k.prefix + "c":     {record: []byte("old")},
	}
	k.Save("a\n", []byte("new"), nil)
	k.Drop("b\n")
	f.mu.Lock()
	f.requeueLocked(failed)
	bytes := int64(0)
	for key, c := range f.pending {
		bytes += c.weight(key)
	}
	must.True(t, bytes == f.bytes, "%d bytes are counted, %d wait", f.bytes, bytes)
	f.mu.Unlock()
	for range 2 {
		holds(t, k, "a\n", "new", "")
		lacks(t, k, "b\nas")
		holds(t, k, "c", "old", "")
		f.Flush()
	}
	closeFile(t, f)
}

// restart returns a new cache over f, at whose only site ask sends one request for each
// agent, and returns how many reached the site.
func restart(f *File, site *httptest.Server) (c *cache.Cache, o rules.Origin, ask func(asked *atomic.Int32) int32) {
	at, _ := url.Parse(site.URL)
	o, _ = rules.OriginOf(at)
	c = cache.New(cache.Config{Transport: http.DefaultTransport, Store: f.ForRoute("")})
	return c, o, func(asked *atomic.Int32) int32 {
		before := asked.Load()
		for _, agent := range []string{"curl/8", "Wget/1.25", "NewsBot/2"} {
			c.Policy(context.Background(), o, agent)
		}
		return asked.Load() - before
	}
}

// What a site told single clients goes with the rest of it, also when it lies on disk
// alone; a purge that cannot be written there is reported: the rules might come back after
// a restart.
func TestHeed_APurgeReachesWhatLiesOnDiskAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasPrefix(r.UserAgent(), "heed") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, "User-agent: *\nDisallow: /private\n")
	}))
	t.Cleanup(site.Close)
	dir := t.TempDir()
	for _, step := range []struct {
		when  string
		want  int32
		purge bool
	}{{"at first", 4, false}, {"from the disk", 0, false}, {"before the purge", 0, true}, {"after the purge", 4, false}} {
		f, _ := openFile(t, dir, 1<<30)
		c, o, ask := restart(f, site)
		if !step.purge {
			n := ask(&asked)
			must.True(t, n == step.want, "%s: the site was asked %d times, want %d", step.when, n, step.want)
		} else if had, err := c.Purge(t.Context(), o); !had || err != nil {
			t.Errorf("%v, %v", had, err)
		}
		closeFile(t, f)
	}
	f, _ := openFile(t, dir, 1<<30)
	c, o, ask := restart(f, site)
	ask(&asked)
	must.OK(t, f.Close())
	had, err := c.Purge(t.Context(), o)
	must.True(t, had && err != nil && strings.Contains(err.Error(), "on disk cannot be removed now"), "%v, %v", had, err)
	must.True(t, errors.Is(openError("x", syscall.ENOTDIR), syscall.ENOTDIR) != isTemporary(syscall.ENOTDIR),
		"a place that is none passes")
}

// A walk through names that were never requested before fills neither the memory of the
// cache nor that of the file.
func TestHeed_ManyNamesTakeBoundedMemory(t *testing.T) {
	const room = 12 << 20
	names := 20_000
	if testkit.Full {
		names = 1_000_000
	}
	answer := transport(func(r *http.Request) (*http.Response, error) {
		body := "User-agent: *\nDisallow: /" + r.URL.Host + "\n"
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, nil
	})
	f, _ := openFile(t, t.TempDir(), 1<<30)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	c := cache.New(cache.Config{Transport: answer, Store: f.ForRoute(""), Memory: cache.NewMemory(0, room)})
	for n := range names {
		c.Policy(t.Context(), rules.Origin{Scheme: "https", Host: fmt.Sprintf("n%d.test", n), Port: 443}, "curl/8")
		if n%(names/20) == names/20-1 {
			held := heap() - before
			must.True(t, held <= (room+Memory)*11/10, "after %d names %d bytes are held", n+1, held)
		}
	}
	closeFile(t, f)
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A row whose values have other types than heed's, as a damaged page makes them, is damage when
// room is made: it does not end heed, and does not keep the file from being bounded.
func TestHeed_ARowOfOtherTypesIsDamage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"the first": "UPDATE policy SET saved = 'x'", "another": "UPDATE policy SET saved = 1; UPDATE policy SET saved = 1.5 WHERE rowid = 2",
		"without a key": "UPDATE policy SET saved = 1, key = NULL",
	} {
		dir := t.TempDir()
		f, _ := openFile(t, dir, 1<<30)
		for n := range 3 {
			f.ForRoute("").Save(fmt.Sprint("key ", n), []byte("r"), nil)
			f.Flush()
		}
		closeFile(t, f)
		c, err := sqlite.Open(f.path, "rw", lockTime)
		if err == nil {
			_, err = c.Exec(change)
			err = errors.Join(err, c.Close())
		}
		must.OK(t, err)
		f, heard := openFile(t, dir, 1<<30)
		k := f.ForRoute("")
		k.Save("new", []byte("r"), nil)
		f.Flush()
		holds(t, k, "new", "r", "")
		must.Contain(t, heard.String(), "set aside", "%s: the log heard %q", name, heard)
		closeFile(t, f)
	}
}

// A pipe in place of the file is an error: heed does not wait for what is in it.
func TestHeed_APipeInPlaceOfTheFileIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policies.db")
	must.OK(t, syscall.Mkfifo(path, 0o600))
	must.Fail(t, must.Err(Open(path, 1<<30, slog.New(slog.DiscardHandler))), "it is a pipe or a device", "the error")
}

// Two heeds whose [cache] file is the same: the second one keeps its policies in memory, says
// why, and has the file when the first one has ended.
func TestHeed_TwoWithOneFile(t *testing.T) {
	dir := t.TempDir()
	first, _ := openFile(t, dir, 1<<20)
	second, _ := openFile(t, dir, 1<<20)
	a, b := first.ForRoute(""), second.ForRoute("")
	a.Save("first", []byte("a"), nil)
	b.Save("second", []byte("b"), nil)
	must.True(t, first.Flush() && !second.Flush(), "the first has %+v, the second %+v", first.Health(), second.Health())
	must.Equal(t, second.Health().Why, errInUse.Error(), "the second says")
	got, _, ok := b.Load("second")
	must.True(t, ok && string(got) == "b", "the second has %q of what it saved", got)
	must.OK(t, first.Close())
	must.True(t, second.Flush() && second.Health().Why == "", "after the first has ended the second has %+v", second.Health())
	for key, want := range map[string]string{"first": "a", "second": "b"} {
		got, _, ok := b.Load(key)
		must.True(t, ok && string(got) == want, "%s is %q", key, got)
	}
}

// A [cache] file that names the database of another program, or a record, is refused, and
// nothing of it is moved.
func TestHeed_TheDatabaseOfSomethingElseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	c := must.Get(sqlite.Open(path, "rwc", lockTime))(t)
	defer c.Close() // its rows are in the log
	must.Get(c.Exec("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)"))(t)
	_, err := Open(path, 1<<20, slog.New(slog.DiscardHandler))
	must.True(t, errors.Is(err, errForeign), "opened, %v", err)
	n, err := sqlite.Value[int64](c, "SELECT count(*) FROM t")
	must.True(t, n == 2 && err == nil, "%d rows are left (%v)", n, err)
	names, _ := filepath.Glob(path + "*")
	must.True(t, !slices.Contains(names, path+damagedSuffix) && slices.Contains(names, path+"-wal"), "there are %q", names)
}
