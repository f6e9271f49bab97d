//go:build !unix

package wal

// Gone is never called: the record cannot be locked there.
func (t *Log) Gone() bool { return false }
