//go:build unix

package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit/must"
)

// place makes a file with a mode, and as root with an owner.
func place(t *testing.T, mode fs.FileMode, uid, gid int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	err := os.WriteFile(path, []byte("x"), 0o600)
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(path, uid, gid)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	must.OK(t, err)
	return path
}

func TestHeed_WhoElseCanChangeAFileIsNamed(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	t.Setenv("SUDO_UID", "")
	link := filepath.Join(t.TempDir(), "link")
	must.OK(t, os.Symlink(place(t, 0o644, uid, gid), link))
	for path, want := range map[string]string{
		place(t, 0o600, uid, gid): "", place(t, 0o664, uid, gid): "", link: "", "/dev/null": "", "/no/file": "",
		place(t, 0o646, uid, gid): "everyone (mode 0646)",
	} {
		must.Equal(t, Others(path), want, path)
	}
	if uid != 0 {
		t.Skip("only root can make files of other users")
	}
	must.OK(t, os.Lchown(link, 4711, 4711))
	foreign := place(t, 0o600, 4711, 0)
	for path, want := range map[string]string{
		foreign: "its owner (uid 4711)", place(t, 0o660, 0, 4712): "its group (gid 4712, mode 0660)", link: "the owner of the link (uid 4711)",
	} {
		must.Equal(t, Others(path), want, path)
	}
	t.Setenv("SUDO_UID", "4711")
	t.Setenv("SUDO_GID", "4712")
	for _, path := range []string{foreign, link, place(t, 0o660, 4711, 4712)} {
		must.Equal(t, Others(path), "", "under sudo of its owner, %s", path)
	}
}

func TestHeed_AFileThatIsNoneNeitherBlocksNorFillsMemory(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	must.OK(t, syscall.Mkfifo(fifo, 0o600))
	_, err := Read("/dev/zero", 1000)
	must.True(t, errors.Is(err, ErrLarge), "/dev/zero: %v", err)
	f, err := Read(fifo, 1000)
	must.True(t, err == nil && len(f.Data) == 0, "a FIFO: %v", err)
	for _, path := range []string{fifo, "/dev/zero", t.TempDir()} {
		must.Fail(t, must.Err(ReadRegular(path, 1000)), "not a regular file", path)
	}
}

func TestHeed_AFileIsReplacedOrCreatedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, step := range []struct {
		do   func(string, []byte, fs.FileMode) error
		data string
		mode fs.FileMode
		want string
	}{{Create, "a", 0o600, "a"}, {Create, "b", 0o644, "a"}, {Write, "c", 0o644, "c"}} {
		must.OK(t, step.do(path, []byte(step.data), step.mode))
		got, err := os.ReadFile(path)
		must.True(t, err == nil && string(got) == step.want, "after %q: %q, %v", step.data, got, err)
	}
	info, err := os.Stat(path)
	must.True(t, err == nil && info.Mode() == 0o644, "%v %v", info.Mode(), err)
	err = Write(dir, nil, 0o600)
	must.True(t, err != nil, "a directory was replaced")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".heed-*"))
	must.True(t, len(left) == 0, "%v", left)
}

// The table of uses: who may own, read and change what heed acts on, and what
// HEED_STATE_GROUP changes.
func TestHeed_EachUseOfAFileHasItsOwnersAndModes(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	for _, c := range []struct {
		use      Role
		dir      bool
		mode     fs.FileMode
		uid, gid int
		group    string // HEED_STATE_GROUP
		says     string // empty: it is used
	}{
		{StateDir, true, 0o755, uid, gid, "", ""},
		{StateDir, true, 0o775, uid, gid, "", "can be changed by its group"},
		{StateDir, true, 0o777, uid, gid, "4712", "can be changed by everyone (mode 0777): run `chmod 700"},
		{StateDir, true, 0o770, uid, 4712, "", "can be changed by its group (gid 4712, mode 0770): run `chmod 700"},
		{StateDir, true, 0o770, uid, 4712, "4712", ""},
		{StateDir, true, 0o770, uid, 4712, "4713", "can be changed by its group (gid 4712"},
		{StateDir, true, 0o770, 4711, 4712, "4712", "belongs to user 4711"},
		{StateDir, false, 0o600, uid, gid, "", "is not a directory"},
		{SocketDir, true, 0o710, uid, 4712, "4712", "can be read by its group (gid 4712"},
		{Key, false, 0o600, uid, gid, "", ""},
		{Key, false, 0o600, 4711, gid, "", ""},
		{Key, false, 0o660, uid, 4712, "4712", "can be changed by its group (gid 4712"},
		{Key, false, 0o440, 4711, 4712, "", "can be read by its group (gid 4712"},
		{Key, false, 0o440, 4711, 4712, "4712", ""},
		{Key, false, 0o460, 4711, 4712, "4712", "can be changed by its group"},
		{Secret, false, 0o640, 4711, 4712, "", ""},
		{Secret, false, 0o644, uid, gid, "", "can be read by everyone (mode 0644): run `chmod o="},
	} {
		if uid != 0 && (c.uid != uid || c.gid != gid) {
			continue // only root can make files of other users
		}
		t.Setenv(GroupVariable, c.group)
		path := place(t, c.mode, c.uid, c.gid)
		if c.dir {
			path = filepath.Dir(path)
			must.OK(t, errors.Join(os.Chmod(path, c.mode), os.Chown(path, c.uid, c.gid)))
		}
		err := CheckFile(c.use, "it", path)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestHeed_ADirectoryAboveThatOthersCanChangeIsNamed(t *testing.T) {
	top := t.TempDir()
	state := filepath.Join(top, "a", "state")
	must.OK(t, os.MkdirAll(state, 0o700))
	for mode, want := range map[fs.FileMode]string{0o755: "", 0o777 | fs.ModeSticky: "", 0o777: filepath.Join(top, "a") + " can be changed by everyone (mode 0777)"} {
		must.OK(t, os.Chmod(filepath.Join(top, "a"), mode))
		must.Equal(t, Parent(state), want, "%v", mode)
	}
}
