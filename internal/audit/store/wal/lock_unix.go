//go:build unix

package wal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks f exclusively, or returns an error without waiting.
func Lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Gone reports whether the file that is written was removed or cut.
func (t *Log) Gone() bool {
	var s unix.Stat_t
	err := unix.Fstat(int(t.Files[t.Active].Fd()), &s)
	return err != nil || s.Nlink == 0 || s.Size < t.Size[t.Active]
}
