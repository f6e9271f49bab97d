package state

import (
	"errors"
	"syscall"
)

// leastFree is how many octets have to be free on a disk, in any case, for heed to start there.
const leastFree = 1 << 20

// Full reports whether err, of writing a file at path, says that its disk is full; SQLite says
// of some files on a full disk only that it cannot write them.
func Full(path string, err error) bool {
	left := SpaceOf(path).Free
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || left != nil && *left < leastFree
}

// Remedy returns what to do about an error of writing to the state directory.
func Remedy(err error) string {
	what := "Make the state directory writable"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = "Make room on the disk of the state directory"
	case errors.Is(err, syscall.EROFS):
		what = "Mount the file system of the state directory for writing"
	}
	return what + ", or set HEED_STATE to another one"
}
