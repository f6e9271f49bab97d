//go:build !unix

package store

import (
	"errors"
	"os"
)

// lock returns an error, since two writers would damage the record.
func lock(*os.File) error { return errors.New("this system has no file locks that heed knows") }
