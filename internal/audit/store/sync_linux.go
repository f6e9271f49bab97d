package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// fsync waits until what was written to f is on the disk.
func fsync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
