package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestHeed_FilesThatCannotBeReadSayWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := testkit.Write(t, filepath.Join(dir, name), string(data))
		return path
	}
	changed := func(sql string) string {
		m := newMade(t).entries(10)
		m.exec(sql)
		return m.path
	}
	other := filepath.Join(dir, "other.db")
	db, err := connect(other, "rwc")
	must.OK(t, err)
	defer db.Close()
	must.Get(db.Exec("CREATE TABLE a (b)"))(t)
	pipe := filepath.Join(dir, "pipe.db")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none.db"), "there is no record"},
		{pipe, "is not a regular file, and no record"},
		{file("long.db", bytes.Repeat([]byte("line\n"), 1000)), "is no record: heed keeps records in files of SQLite, and this is none\nName the file that"},
		{file("page.db", append([]byte(magic), make([]byte, 84)...)), "is damaged: file is not a database"},
		{dir, "is a directory"},
		{file("empty.db", nil), "is empty: nothing was recorded"},
		{file("text.db", []byte("User-agent: *\n")), "is no record: heed keeps records in files of SQLite, and this is none\nName the file that"},
		{file("head.db", []byte("SQLite format 3\x00")), "its end is missing"},
		{other, "no record of heed's"},
		{changed("PRAGMA user_version = 1"), "no record of heed's"}, // nothing of that layout was released
		{changed("PRAGMA user_version = 7"), "a newer heed wrote it: its layout is number 7"},
	} {
		must.Fail(t, must.Err(view(c.path)), c.want, c.path)
	}
	err = unreadable(&fs.PathError{Op: "open", Path: other, Err: syscall.EACCES})
	must.True(t, strings.Contains(err.Error(), "\nRun the command as the user"), "of another user: %v", err)
}

// Where the index of the write-ahead log cannot be made, what is in that log is read all
// the same; nothing is written. A record that cannot be completed says how many decisions
// its tail has beside it.
func TestHeed_ReadingNeedsNoWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := mustOpen(t, path, Options{})
	for i := range 4 {
		must.OK(t, w.Decided(request(i)))
		if i == 2 {
			must.OK(t, w.Complete()) // three are in the write-ahead log
			w.completing.Lock()
		}
	}
	path = killed(t, path)
	w.completing.Unlock()
	c := must.Get(connect(path, "alone"))(t)
	defer c.Close()
	if n, err := c.integer("SELECT count(*) FROM entry"); n != 3 || err != nil {
		t.Errorf("%d decisions, %v; want 3", n, err)
	}
	if _, err := os.Lstat(path + "-shm"); err == nil {
		t.Error("the index was made")
	}
	c.Close()
	must.OK(t, os.Remove(path+".tail2"))
	must.OK(t, os.Mkdir(path+".tail2", 0o700)) // which no one can complete it from
	proof, err := Verify(t.Context(), path, nil, nil)
	must.True(t, err == nil && proof.Whole && proof.Waiting == 1, "%+v, %v", proof, err)
	n, err := Completed(t.Context(), path)
	must.True(t, n == 1 && err == nil, "%d wait, %v", n, err)
	records, err := Records(path)
	must.True(t, err == nil && records[0].Last == 3 && records[0].Waiting == 1, "%+v, %v", records, err)
	proof, err = Backup(t.Context(), path, filepath.Join(t.TempDir(), "copy.db"), nil)
	must.True(t, err == nil && proof.Head.Entries == 3 && proof.Waiting == 1, "the backup: %+v, %v", proof, err)
	must.OK(t, os.Remove(path+".tail2"))
	n, err = Completed(t.Context(), path)
	must.True(t, n == 0 && err == nil && entries(t, path) == 4, "completed: %d wait, %v", n, err)
}

func TestHeed_AFileThatLostItsEndIsDamaged(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(500)
	whole := m.copy()
	data := must.Get(os.ReadFile(whole))(t)
	for size := 100; size < len(data); size += len(data) / 20 {
		must.OK(t, os.Truncate(whole, int64(size)))
		if proof, err := Verify(context.Background(), whole, nil, nil); err != nil || proof.Whole || !strings.Contains(proof.Damage.What, "its end is missing") {
			t.Errorf("%d of %d octets: %+v, %v", size, len(data), proof, err)
		}
		must.OK(t, os.WriteFile(whole, data, 0o600))
	}
}

// TestHeed_AChangedPageIsNotReadAsARecord changes single bits of the file.
// Those in the free space of its pages change nothing that is read.
func TestHeed_AChangedPageIsNotReadAsARecord(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(entriesOf(2000))
	path := m.copy()
	data := must.Get(os.ReadFile(path))(t)
	found := 0
	n := rounds(300)
	for range n {
		at := 100 + m.random.IntN(len(data)-100)
		bit := byte(1) << m.random.IntN(8)
		data[at] ^= bit
		must.OK(t, os.WriteFile(path, data, 0o600))
		proof, err := Verify(context.Background(), path, nil, nil)
		if err != nil {
			t.Errorf("octet %d: %v", at, err)
		} else if !proof.Whole {
			found++
		}
		data[at] ^= bit
	}
	t.Logf("%d of %d found", found, n)
	must.True(t, found >= n/2, "of %d changed octets only %d were found", n, found)
}

// copy copies the record as it is into one file.
func (m *made) copy() string {
	m.t.Helper()
	path := filepath.Join(m.t.TempDir(), "copy.db")
	m.exec("VACUUM INTO ?", path)
	return path
}

// A reader stops in the middle of a query when its context ends.
func TestHeed_AReaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	record := must.Get(OpenRecord(newMade(t).entries(100).path))(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	r := must.Get(record.Read(ctx))(t)
	defer r.Close()
	rows := must.Get(r.Decisions(&Filter{}))(t)
	defer rows.Close()
	n, enough := 0, errors.New("enough")
	err := r.Entries(&Filter{}, func(*Entry) error {
		if n++; n == 10 {
			cancel(enough)
		}
		return nil
	})
	must.True(t, n == 10 && errors.Is(err, enough), "%d rows were read: %v", n, err)
	values, err := rows.Next()
	must.True(t, values == nil && errors.Is(err, enough), "another query goes on: %v, %v", values, err)
}

// What a commit says was pruned is read whatever it is: a value without octets is not taken for
// that nothing was.
func TestHeed_APrunedWithoutOctetsIsDamage(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(20)
	must.Get(m.db.Exec("UPDATE commits SET pruned = x'' WHERE n = 1"))(t)
	_, err := OpenRecord(m.path)
	must.True(t, err != nil, "a record whose stub has no octets was opened")
}
