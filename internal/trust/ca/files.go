package ca

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"heed/internal/base/ownfile"
)

// makeDir makes a directory for keys, or says why the one there cannot be
// trusted with them. A directory that exists keeps its mode: it may be one the
// user shares for reading, and the key has a mode of its own.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			info, err = os.Stat(dir)
		}
	}
	if err != nil {
		return fmt.Errorf("the directory of the CA %s cannot be made or read (%w): make it yours, or set HEED_STATE to a directory you can write", dir, reason(err))
	}
	return ownfile.Check(ownfile.StateDir, "the directory of the CA", dir, info)
}

// placeNew puts a file at path, whole or not at all, unless one is there
// already: then that one stays and the call succeeds.
func placeNew(path string, data []byte, perm os.FileMode) error {
	return unwritable(path, ownfile.Create(path, data, perm))
}

// WriteFile is ownfile.Write with an error that says what helps.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	return unwritable(path, ownfile.Write(path, data, perm))
}

// unwritable says in a sentence why a file cannot be written and what helps; nil for nil.
func unwritable(path string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%s cannot be written (%w): make room on its disk", path, reason(err))
	}
	return fmt.Errorf("%s cannot be written (%w): make its directory writable for this user, or name another", path, reason(err))
}

// reason strips the operation and paths of our making from a file error.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}
