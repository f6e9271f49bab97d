//go:build !linux

package store

import "os"

// fsync waits until what was written to f is on the disk.
func fsync(f *os.File) error { return f.Sync() }
