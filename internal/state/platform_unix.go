//go:build unix

package state

import (
	"os"
	"strconv"
	"syscall"
)

// ownerOf returns the number of the user that a file belongs to.
func ownerOf(info os.FileInfo) (uid string, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return strconv.FormatUint(uint64(stat.Uid), 10), true
}

// OwnedByUs reports whether the file belongs to the user heed runs as.
func OwnedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
