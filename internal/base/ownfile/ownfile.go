// Package ownfile reads files whose content heed acts on, replaces them atomically, locks
// them, opens databases outside SQLite, and reports who else can change files. Of what it finds, the decisions are:
//
//   - A file that heed finds without being told, ./proxy.toml, is not used when others can
//     change it (Others), unless it changes nothing.
//   - The state directory, keys and secrets are not used when others than the table of role.go
//     permits can read or change them (Check).
//   - Of any other file that the settings, a flag or a variable name, it is reported.
//   - A file of the state directory, which belongs to this user, must be a regular one.
package ownfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// File is the content of a file.
type File struct {
	Data     []byte
	Modified time.Time
	path     string
	info     fs.FileInfo
}

// ErrLarge is the error of a file with more octets than its reader takes.
var ErrLarge = errors.New("it is too large")

// Read returns the content of a file of up to limit octets. It does not wait for the writer
// of a FIFO, and ends at limit in a device.
func Read(path string, limit int64) (*File, error) { return read(path, limit, false) }

// ReadRegular is Read for a file that heed creates: any other kind is an error.
func ReadRegular(path string, limit int64) (*File, error) { return read(path, limit, true) }

func read(path string, limit int64, regular bool) (*File, error) {
	if isDatabase(path) {
		return nil, fmt.Errorf("%s is a database that heed has open", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if regular && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	var data bytes.Buffer
	data.Grow(int(min(info.Size(), limit)) + bytes.MinRead)
	if _, err = data.ReadFrom(io.LimitReader(f, limit+1)); err == nil && int64(data.Len()) > limit {
		err = fmt.Errorf("%s has more than %d octets: %w", path, limit, ErrLarge)
	}
	return &File{data.Bytes(), info.ModTime(), path, info}, err
}

// Check returns an error when the file may not be used as u. what names it in the error.
func (f *File) Check(u Role, what string) error { return Check(u, what, f.path, f.info) }

// Others returns who can change the file beside this user, who runs heed, and root: its
// owner, everyone, or a group; empty when no one can. Under sudo, the user who called it is
// this user too.
func (f *File) Others() string { return others(f.path, f.info) }

// Others is File.Others of the file at path; empty also when there is none.
func Others(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return others(path, info)
}

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
