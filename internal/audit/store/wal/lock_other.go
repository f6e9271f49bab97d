//go:build !unix

package wal

import (
	"errors"
	"os"
)

// Lock returns an error, since two writers would damage the record.
func Lock(*os.File) error { return errors.New("this system has no file locks that heed knows") }

// Gone is never called: Lock fails.
func (t *Log) Gone() bool { return false }
