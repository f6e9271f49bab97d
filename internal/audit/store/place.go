package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// placeOf returns where the record at path really is: by whatever links it is
// named, its tail lies beside it. There need not be one yet.
func placeOf(path string) (string, error) {
	at, err := filepath.EvalSymlinks(path)
	if err == nil {
		if info, err := os.Stat(at); err == nil && !info.Mode().IsRegular() {
			return "", errForeign
		}
		return at, nil
	}
	if _, err := os.Lstat(path); err == nil {
		return "", errors.New("it is a link that leads nowhere: remove it, or name another file in [audit] file")
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no directory %s: make it, or name another file in [audit] file", filepath.Dir(path))
	}
	return filepath.Join(dir, filepath.Base(path)), err
}

// claimFile makes the file, for its owner alone, when there is none, and looks
// whether it can be a record. It is this process's alone until it is closed, which
// must be after SQLite has closed it: then SQLite's own locks go too.
func claimFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the record cannot be opened: %w\nMake it writable, or name another file in [audit] file", err)
	}
	err = lock(f)
	head := make([]byte, len(magic))
	if n, _ := f.ReadAt(head, 0); err != nil {
		err = errHeld
	} else if n > 0 && string(head[:n]) != magic[:n] {
		err = errForeign
	}
	if err != nil {
		f.Close()
		return nil, explain(path, err)
	}
	return f, nil
}
