//go:build unix

package logs

import (
	"os"
	"syscall"
)

// fileID returns the device and inode of an open file.
func fileID(f *os.File) (is id, known bool) {
	info, err := f.Stat()
	if err != nil {
		return id{}, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id{}, false
	}
	return id{uint64(s.Dev), uint64(s.Ino)}, true
}
