//go:build !unix

package ownfile

import (
	"errors"
	"io/fs"
	"os"
)

const nonblock = 0

// others is empty: the mode does not show it.
func others(string, fs.FileInfo) string { return "" }

// Owner returns false: access lists determine who may use a file.
func Owner(fs.FileInfo) (uid int, ok bool) { return 0, false }

func inode(fs.FileInfo) string { return "" }

func groupOf(fs.FileInfo) (gid int, ok bool) { return 0, false }

func names(fs.FileInfo) uint64 { return 1 }

// errLock is the error on systems where files cannot be locked as on Unix.
var errLock = errors.New("file locks are not supported on this system")

func tryLock(*os.File) error { return errLock }

func unlock(*os.File) error { return nil }

// WaitLock fails: it works only on Unix.
func WaitLock(*os.File) error { return errLock }
