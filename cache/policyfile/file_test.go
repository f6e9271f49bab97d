package policyfile

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/cache"
	"heed/internal/base/sqlite"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// openFile opens the file in dir; heard is what the log was told.
func openFile(t *testing.T, dir string, limit int64) (f *File, heard *bytes.Buffer) {
	t.Helper()
	heard = &bytes.Buffer{}
	f = must.Get(Open(filepath.Join(dir, "policies.db"), limit, slog.New(slog.NewTextHandler(heard, nil))))(t)
	return f, heard
}

// closeFile closes f and has SQLite go over every page of what it wrote.
func closeFile(t *testing.T, f *File) {
	t.Helper()
	must.OK(t, f.Close())
	c := must.Get(sqlite.Open(f.path, "ro", lockTime))(t)
	defer c.Close()
	row, err := c.One("PRAGMA integrity_check")
	must.True(t, err == nil && row[0] == "ok", "the file is corrupt: %v, %v", row, err)
}

func holds(t *testing.T, k cache.PolicyStore, key, record, snapshot string) {
	t.Helper()
	r, s, ok := k.Load(key)
	must.True(t, ok && string(r) == record && string(s) == snapshot,
		"%s: %q %.60q %v, want %q %.60q", key, r, s, ok, record, snapshot)
}

func lacks(t *testing.T, k cache.PolicyStore, key string) {
	t.Helper()
	r, s, ok := k.Load(key)
	must.True(t, !ok && r == nil, "%s: %q %q, want nothing", key, r, s)
}

func TestHeed_WhatIsSavedIsThereAfterwards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, heard := openFile(t, dir, 1<<30)
	k := f.ForRoute("")
	k.Save("both", []byte("r1"), []byte("s1"))
	k.Save("changed", []byte("r1"), []byte("s1"))
	k.Save("dropped", []byte("r1"), []byte("s1"))
	k.Save("again", []byte("r1"), []byte("s1"))
	check := func() {
		t.Helper()
		holds(t, k, "both", "r1", "s1")
		holds(t, k, "changed", "r2", "s2")
		lacks(t, k, "dropped")
		holds(t, k, "again", "r2", "")
		lacks(t, k, "never")
	}
	change := func() {
		k.Save("changed", []byte("r2"), []byte("s2"))
		k.Drop("dropped")
		k.Drop("again")
		k.Save("again", []byte("r2"), nil)
	}
	change()
	check() // all of it waits
	f.Flush()
	check() // all of it is on disk
	change()
	check() // some of it is on disk, some waits
	closeFile(t, f)
	lacks(t, k, "both")
	f, _ = openFile(t, dir, 1<<30)
	k = f.ForRoute("")
	check()
	closeFile(t, f)
	must.True(t, heard.Len() == 0, "the log heard %s", heard)
}

// Who forgets a site forgets what it told single clients, too.
func TestHeed_AFamilyIsDroppedWithItsHead(t *testing.T) {
	t.Parallel()
	f, _ := openFile(t, t.TempDir(), 1<<30)
	k := f.ForRoute("")
	all := []string{"a\n\n", "a\n\nas x", "a\n\nas y"}
	for name, flush := range map[string]func() bool{"waiting": func() bool { return true }, "written": f.Flush} {
		for _, key := range append(all, "a\nas z", "b\n") {
			k.Save(key, []byte("r"), []byte("s"))
		}
		flush()
		k.Drop("a\n\n")
		for _, key := range all {
			lacks(t, k, key)
		}
		k.Save("a\n\n", []byte("r2"), nil)
		k.Save("a\n\nas x", []byte("r2"), nil)
		check := func() {
			t.Helper()
			holds(t, k, "a\n\n", "r2", "")
			holds(t, k, "a\n\nas x", "r2", "")
			lacks(t, k, "a\n\nas y")
			holds(t, k, "a\nas z", "r", "s")
			holds(t, k, "b\n", "r", "s")
		}
		check()
		f.Flush()
		check()
		must.Need(t, !t.Failed(), "%s", name)
	}
	closeFile(t, f)
}

func TestHeed_TheDiskIsAtMostASecondBehind(t *testing.T) {
	t.Parallel()
	f, _ := openFile(t, t.TempDir(), 1<<30)
	k := f.ForRoute("")
	for n := range 100 {
		k.Save(fmt.Sprint(n), []byte("r"), []byte("s"))
	}
	testkit.Until(t, "it is on disk", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.pending)+len(f.writing) == 0
	})
	r, s, err := f.db.read(k.(*fileStore).prefix + "7")
	must.True(t, string(r) == "r" && string(s) == "s" && err == nil, "on disk: %q %q, %v", r, s, err)
	must.True(t, writeDelay <= time.Second/2, "what is saved waits for %v", writeDelay)
	closeFile(t, f)
}

// What was fetched through one proxy must not be given to who goes through
// another.
func TestHeed_WaysToTheSitesShareAFileAndNothingElse(t *testing.T) {
	t.Parallel()
	f, _ := openFile(t, t.TempDir(), 1<<30)
	one, other := f.ForRoute("one"), f.ForRoute("other")
	one.Save("key", []byte("r"), []byte("s"))
	f.Flush()
	lacks(t, other, "key")
	other.Drop("key")
	f.Flush()
	holds(t, one, "key", "r", "s")
	holds(t, f.ForRoute("one"), "key", "r", "s")
	closeFile(t, f)
}

func TestHeed_TheFileIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	f, _ := openFile(t, t.TempDir(), 1<<30)
	defer closeFile(t, f)
	info, err := os.Stat(f.path)
	must.True(t, err == nil && info.Mode().Perm() == 0o600, "%v, %v", info.Mode(), err)
	_, err = Open(filepath.Join(f.path, "x.db"), 1<<30, slog.New(slog.DiscardHandler))
	must.Fail(t, err, "cannot be opened: not a directory\nMake its directory", "in no directory")
}

func TestHeed_TheFileIsBoundedAndTheOldestGoes(t *testing.T) {
	t.Parallel()
	const limit, each, count = 2 << 20, 3000, 1875 // three times what there is room for
	f, heard := openFile(t, t.TempDir(), limit)
	k := f.ForRoute("")
	body := bytes.Repeat([]byte("x"), each)
	for n := range count {
		k.Save(fmt.Sprint("key ", n*7919%count), []byte("record"), body)
		if n%100 == 99 {
			f.Flush()
		}
	}
	f.Flush()
	kept := 0
	for n := range count {
		if _, _, ok := k.Load(fmt.Sprint("key ", n*7919%count)); ok {
			kept++
		} else if n > count-count/10 {
			t.Fatalf("number %d of %d is gone; the log heard %q", n, count, heard)
		}
	}
	info := must.Get(os.Stat(f.path))(t)
	t.Logf("%d bytes, %d of %d policies, limit %d", info.Size(), kept, count, limit)
	must.True(t, info.Size() <= 2*limit && kept >= limit/each/2, "%d bytes, %d policies", info.Size(), kept)
	k.Save("large", []byte("r"), make([]byte, limit/4))
	f.Flush()
	lacks(t, k, "large")
	closeFile(t, f)
	must.True(t, heard.Len() == 0, "the log heard %s", heard)
}

// A file written under a larger limit is made smaller at the start, without a policy to save.
func TestHeed_ASmallerLimitHoldsFromTheStart(t *testing.T) {
	const limit, each = 8 << 20, 100_000
	dir := t.TempDir()
	f, _ := openFile(t, dir, limit)
	for n := range limit / each {
		f.ForRoute("").Save(fmt.Sprint("key ", n), []byte("r"), make([]byte, each))
		f.Flush()
	}
	closeFile(t, f)
	f, _ = openFile(t, dir, limit/8)
	closeFile(t, f)
	if info, err := os.Stat(f.path); err != nil || info.Size() > limit/8+limit/64 {
		t.Errorf("%v: %d octets, limit %d", err, info.Size(), limit/8)
	}
	f, _ = openFile(t, dir, limit/8)
	holds(t, f.ForRoute(""), fmt.Sprint("key ", limit/each-1), "r", string(make([]byte, each)))
	closeFile(t, f)
}

func TestRFC9309_ExpiredCopiesAreDeletedFromTheDisk(t *testing.T) {
	t.Parallel()
	f, _ := openFile(t, t.TempDir(), 1<<30)
	k := f.ForRoute("").(*fileStore)
	batch := map[string]change{k.prefix + "old": {record: []byte("r")}}
	must.OK(t, f.db.write(f.limit, batch, time.Now().Add(-maxAge-time.Hour)))
	holds(t, k, "old", "r", "")
	k.Save("new", []byte("r"), nil)
	f.Flush()
	lacks(t, k, "old")
	holds(t, k, "new", "r", "")
	closeFile(t, f)
}

// filled returns a closed file of 300 policies and what it holds.
func filled(t *testing.T) (path string, want map[string]string) {
	t.Helper()
	f, _ := openFile(t, t.TempDir(), 1<<30)
	k, want := f.ForRoute(""), map[string]string{}
	for n := range 300 {
		key, body := fmt.Sprint("key ", n), strings.Repeat(fmt.Sprint(n, " "), n*10)
		want[key] = body
		k.Save(key, []byte("record "+key), []byte(body))
		if n%50 == 0 {
			f.Flush()
		}
	}
	closeFile(t, f)
	return f.path, want
}

// right loads everything and fails for what is not as it was saved; what is
// gone is fetched again and does no harm.
func right(t *testing.T, f *File, want map[string]string) (found int) {
	t.Helper()
	k := f.ForRoute("")
	for key, body := range want {
		r, s, ok := k.Load(key)
		if !ok {
			continue
		}
		found++
		must.Need(t, string(r) == "record "+key && (s == nil || string(s) == body), "%s: %q with %d bytes", key, r, len(s))
	}
	return found
}

func TestHeed_ADamagedFileIsSetAside(t *testing.T) {
	t.Parallel()
	path, want := filled(t)
	good := must.Get(os.ReadFile(path))(t)
	for name, bad := range map[string][]byte{
		"cut in half":    good[:len(good)/2],
		"cut to a page":  good[:4096],
		"cut to nothing": good[:100],
		"something else": bytes.Repeat([]byte("hello "), 10_000),
		"zeros":          make([]byte, len(good)),
		"no head":        append(make([]byte, 4096), good[4096:]...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := testkit.Write(t, filepath.Join(dir, "policies.db"), string(bad))
			f, heard := openFile(t, dir, 1<<30)
			must.Equal(t, right(t, f, want), 0, "policies are found")
			if !strings.Contains(heard.String(), "is damaged: it was set aside, and policies are fetched anew") ||
				!strings.Contains(heard.String(), "moved_to="+path+".damaged") {
				t.Errorf("the log heard %q", heard)
			}
			aside, err := os.ReadFile(path + ".damaged")
			must.True(t, err == nil && bytes.Equal(aside, bad), "set aside: %d bytes of %d, %v", len(aside), len(bad), err)
			f.ForRoute("").Save("key", []byte("r"), nil)
			closeFile(t, f)
			f, heard = openFile(t, dir, 1<<30)
			holds(t, f.ForRoute(""), "key", "r", "")
			closeFile(t, f)
			must.True(t, heard.Len() == 0, "the next start heard %q", heard)
		})
	}
}

// Whatever octets a disk loses, heed comes up, gives no wrong answer, and saves.
func TestHeed_LostBytesNeverMakeAWrongPolicy(t *testing.T) {
	t.Parallel()
	path, want := filled(t)
	good := must.Get(os.ReadFile(path))(t)
	rounds := uint64(8)
	if testkit.Full {
		rounds = 80
	}
	damages, all := 0, 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 1))
		bad := bytes.Clone(good)
		for range 1 + r.IntN(30) {
			at := r.IntN(len(bad))
			if r.IntN(2) == 0 { // in what holds the pages together
				at = r.IntN(len(bad)/4096)*4096 + r.IntN(64)
			}
			bad[at] ^= byte(1 << r.IntN(8))
		}
		dir := t.TempDir()
		must.OK(t, os.WriteFile(filepath.Join(dir, "policies.db"), bad, 0o600))
		f, heard := openFile(t, dir, 1<<30)
		if right(t, f, want) == len(want) {
			all++
		}
		k := f.ForRoute("")
		for n := range 40 {
			k.Save(fmt.Sprint("key ", n*7), []byte("record "+fmt.Sprint("key ", n*7)), []byte(want[fmt.Sprint("key ", n*7)]))
		}
		f.Flush()
		right(t, f, want)
		if heard.Len() > 0 {
			damages++
		}
		must.OK(t, f.Close(), "seed %d", seed)
	}
	t.Logf("of %d damaged files %d were found out, %d still had everything", rounds, damages, all)
	must.True(t, uint64(damages) >= rounds/2, "%d damages were found out", damages)
}

// Who cuts or overwrites the file of a running heed costs it what was kept there.
func TestHeed_AFileCutWhileItIsUsedDoesNotEndHeed(t *testing.T) {
	t.Parallel()
	path, want := filled(t)
	f, heard := openFile(t, filepath.Dir(path), 1<<30)
	must.OK(t, os.Truncate(path, 8192))
	if n := right(t, f, want); n != 0 {
		t.Logf("%d were still found", n)
	}
	must.Contain(t, heard.String(), "set aside", "the log heard %q", heard)
	k := f.ForRoute("")
	k.Save("key", []byte("r"), nil)
	f.Flush()
	holds(t, k, "key", "r", "")
	for _, name := range []string{path, path + "-wal"} { // once more: the disk is not to be trusted
		testkit.Write(t, name, strings.Repeat("A", len(testkit.Read(t, name))))
	}
	k.Save("other", []byte("r"), nil)
	f.Flush()
	lacks(t, k, "key")
	must.True(t, !k.Save("third", []byte("r"), nil), "something is still saved")
	must.Contain(t, heard.String(), "is damaged again: nothing is kept on disk until the next start", "the log heard %q", heard)
	must.OK(t, f.Close())
}

// Who looks into the file finds what a heed saved, also one that is at work, and does not
// change it.
func TestHeed_LookingIntoTheFileLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, _ := openFile(t, dir, 1<<30)
	f.ForRoute("way").Save("key", []byte("r"), []byte("s"))
	f.Flush()
	holds(t, OpenReadOnly(f.path, "way"), "key", "r", "s")
	closeFile(t, f)
	path := f.path
	before := must.Get(os.ReadFile(path))(t)
	holds(t, OpenReadOnly(path, "way"), "key", "r", "s")
	lacks(t, OpenReadOnly(path, "another way"), "key")
	k := OpenReadOnly(path, "way")
	must.True(t, !k.Save("key", []byte("r2"), nil) && !k.Drop("key"), "something was saved or dropped")
	after, err := os.ReadFile(path)
	must.True(t, err == nil && string(after) == string(before), "the file has changed, or %v", err)
	lacks(t, OpenReadOnly(filepath.Join(dir, "none.db"), "way"), "key")
	testkit.Write(t, path, "hello")
	lacks(t, OpenReadOnly(path, "way"), "key")
}
