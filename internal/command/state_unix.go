//go:build unix

package command

import (
	"os"
	"syscall"
)

// ownedByUs reports whether the file belongs to the user heed runs as.
func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
