//go:build unix

package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonblock makes opening a FIFO not wait for its writer.
const nonblock = syscall.O_NONBLOCK

func others(path string, info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	switch {
	case !ok || mode&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeSocket) != 0: // of the shell that called heed
		return ""
	case !ours(stat.Uid, "SUDO_UID", 0, os.Geteuid()):
		return fmt.Sprintf("its owner (uid %d)", stat.Uid)
	case mode&0o002 != 0:
		return fmt.Sprintf("everyone (mode %04o)", mode.Perm())
	case mode&0o020 != 0 && !ours(stat.Gid, "SUDO_GID", os.Getegid()):
		return fmt.Sprintf("its group (gid %d, mode %04o)", stat.Gid, mode.Perm())
	}
	link, err := os.Lstat(path)
	if err != nil || link.Mode()&fs.ModeSymlink == 0 {
		return ""
	}
	if stat, ok := link.Sys().(*syscall.Stat_t); ok && !ours(stat.Uid, "SUDO_UID", 0, os.Geteuid()) {
		return fmt.Sprintf("the owner of the link (uid %d)", stat.Uid)
	}
	return ""
}

// ours reports whether id is one of the others, or under sudo that of the user who called it.
func ours(id uint32, caller string, others ...int) bool {
	if os.Geteuid() == 0 {
		if n, err := strconv.Atoi(os.Getenv(caller)); err == nil {
			others = append(others, n)
		}
	}
	return slices.Contains(others, int(id))
}

// Owner returns the number of the user that a file belongs to; ok is false where files have
// none.
func Owner(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// inode returns the number of a file in its file system; empty where files have none.
func inode(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(stat.Ino), 10)
}

// groupOf returns the number of the group that a file belongs to; ok is false where files have
// none.
func groupOf(info fs.FileInfo) (gid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Gid), true
}

// names returns the number of names (hard links) of a file.
func names(info fs.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink)
}

// tryLock locks the file exclusively, or fails immediately.
func tryLock(f *os.File) error { return flock(f, unix.LOCK_EX|unix.LOCK_NB) }

// WaitLock locks the file exclusively. It blocks until the lock is free.
func WaitLock(f *os.File) error { return flock(f, unix.LOCK_EX) }

// unlock releases the lock of f.
func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
