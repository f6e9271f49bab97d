//go:build !linux

package wal

import "os"

// Fsync waits until what was written to f is on the disk.
func Fsync(f *os.File) error { return f.Sync() }
