//go:build unix

package daemon

import (
	"os"

	"golang.org/x/sys/unix"

	"heed/internal/config"
)

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

// openFiles returns how many files and connections this process may have open; 0 when
// unknown.
func openFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, config.MaxCount))
}
