package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Write creates or replaces a file atomically. When it returns nil, the content is on the
// disk: a file system may write a new name before the data of its file, which after a power
// failure would be an empty file.
func Write(path string, data []byte, mode fs.FileMode) error {
	return publish(path, data, mode, os.Rename)
}

// Create creates a file as Write does, unless there is one: that one stays, and the error is
// nil.
func Create(path string, data []byte, mode fs.FileMode) error {
	return publish(path, data, mode, func(temp, path string) error {
		err := os.Link(temp, path)
		if errors.Is(err, fs.ErrExist) {
			err = nil // another process was first
		}
		return errors.Join(err, os.Remove(temp))
	})
}

// Lock locks the file exclusively. It tries for the time that is given, at least once.
func Lock(f *os.File, within time.Duration) error {
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		if err := tryLock(f); err == nil || !time.Now().Before(end) {
			return err
		}
	}
}

// publish writes data to a new file beside path and gives it that name. On an error it removes
// the file.
func publish(path string, data []byte, mode fs.FileMode, as func(temp, path string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".heed-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = as(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // err is the cause
		return err
	}
	return syncDir(dir)
}

// syncDir waits until the names in a directory are on the disk. On Windows, where a
// directory cannot be synced, it does nothing.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
