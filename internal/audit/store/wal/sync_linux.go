package wal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Fsync waits until what was written to f is on the disk.
func Fsync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
