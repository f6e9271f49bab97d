package ca

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"heed/internal/safetext"
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
	if !info.IsDir() {
		return fmt.Errorf("the place of the CA %s is not a directory: move it away, or set HEED_STATE to a directory", dir)
	}
	if uid, other := foreignOwner(info); other {
		return fmt.Errorf("the directory of the CA %s belongs to user %d, and this is user %d: run as its owner, or set HEED_STATE to a directory of your own", dir, uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("the directory of the CA %s can be changed by others (mode %#o): run `chmod 700 %s`, or set HEED_STATE to a directory of your own", dir, mode, safetext.ShellQuote(dir))
	}
	return nil
}

// placeNew puts a file at path, whole or not at all, unless one is there
// already: then that one stays and the call succeeds.
func placeNew(path string, data []byte, perm os.FileMode) error {
	temp, err := writeTemp(path, data, perm)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return unwritable(path, err)
	}
	return nil
}

// WriteFile puts data at path with the given mode, whole or not at all: a
// reader sees the old content or the new, whatever happens in between.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	temp, err := writeTemp(path, data, perm)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return unwritable(path, err)
	}
	return nil
}

// writeTemp writes data to a new file beside path and returns its name. It is
// on the disk before it gets its real name, so that a power cut leaves no
// empty key behind.
func writeTemp(path string, data []byte, perm os.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".heed-*") // mode 0600
	if err != nil {
		return "", unwritable(path, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
	if err != nil {
		os.Remove(f.Name())
		return "", unwritable(path, err)
	}
	return f.Name(), nil
}

func unwritable(path string, err error) error {
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
