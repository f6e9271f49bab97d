//go:build !unix

package state

import (
	"errors"
	"os"
)

// errLock is the error on systems where files cannot be locked as on Unix.
var errLock = errors.New("file locks are not supported on this system")

func tryLock(*os.File) error { return errLock }

// WaitLock fails: it works only on Unix.
func WaitLock(*os.File) error { return errLock }

// ownerOf returns false: files have no numeric owner on these systems.
func ownerOf(os.FileInfo) (uid string, ok bool) { return "", false }

// OwnedByUs returns true: files have no numeric owner on these systems, and the
// default state directory belongs to the user.
func OwnedByUs(os.FileInfo) bool { return true }
