//go:build unix

package wal

import "golang.org/x/sys/unix"

// Gone reports whether the file that is written was removed or cut.
func (t *Log) Gone() bool {
	var s unix.Stat_t
	err := unix.Fstat(int(t.Files[t.Active].Fd()), &s)
	return err != nil || s.Nlink == 0 || s.Size < t.Size[t.Active]
}
