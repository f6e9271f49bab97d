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
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHeed_WhoElseCanChangeAFileIsNamed(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	t.Setenv("SUDO_UID", "")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(place(t, 0o644, uid, gid), link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		place(t, 0o600, uid, gid): "", place(t, 0o664, uid, gid): "", link: "", "/dev/null": "", "/no/file": "",
		place(t, 0o646, uid, gid): "everyone (mode 0646)",
	} {
		if got := Others(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if uid != 0 {
		t.Skip("only root can make files of other users")
	}
	if err := os.Lchown(link, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	foreign := place(t, 0o600, 4711, 0)
	for path, want := range map[string]string{
		foreign: "its owner (uid 4711)", place(t, 0o660, 0, 4712): "its group (gid 4712, mode 0660)", link: "the owner of the link (uid 4711)",
	} {
		if got := Others(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	t.Setenv("SUDO_UID", "4711")
	t.Setenv("SUDO_GID", "4712")
	for _, path := range []string{foreign, link, place(t, 0o660, 4711, 4712)} {
		if got := Others(path); got != "" {
			t.Errorf("under sudo of its owner, %s: %q", path, got)
		}
	}
}

func TestHeed_AFileThatIsNoneNeitherBlocksNorFillsMemory(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read("/dev/zero", 1000); !errors.Is(err, ErrLarge) {
		t.Errorf("/dev/zero: %v", err)
	}
	if f, err := Read(fifo, 1000); err != nil || len(f.Data) > 0 {
		t.Errorf("a FIFO: %v", err)
	}
	for _, path := range []string{fifo, "/dev/zero", t.TempDir()} {
		if _, err := ReadRegular(path, 1000); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
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
		if err := step.do(path, []byte(step.data), step.mode); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != step.want {
			t.Errorf("after %q: %q, %v", step.data, got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o644 {
		t.Error(info.Mode(), err)
	}
	if err := Write(dir, nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".heed-*")); len(left) > 0 {
		t.Error(left)
	}
}
