package store

import (
	"errors"
	"io/fs"
	"os"
)

// DropTail removes the files of an empty tail beside a record that was closed for
// good, so that the record is one file. What is not empty stays.
func DropTail(path string) error {
	var all error
	for _, name := range tailPaths(path) {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			err = os.Remove(name)
		}
		all = errors.Join(all, err)
	}
	return all
}
