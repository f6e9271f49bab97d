//go:build !unix

package wal

// Gone is never called: a record cannot be locked, and not written.
func (t *Log) Gone() bool { return false }
