//go:build unix

package ca

import (
	"os"
	"syscall"
)

// foreignOwner returns the owner of a file, and whether it is another user than the one
// this process runs as.
func foreignOwner(info os.FileInfo) (uid int, foreign bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), int(stat.Uid) != os.Geteuid()
}
