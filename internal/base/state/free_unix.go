//go:build linux || darwin

package state

import "golang.org/x/sys/unix"

// free returns the octets that this user can still write to the file system of dir; nil
// when they are unknown.
func free(dir string) *int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return nil
	}
	return new(int64(s.Bavail) * int64(s.Bsize))
}
