package ownfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// The octets of a database that each reader of it locks
// (https://sqlite.org/fileformat2.html, 1.3, the lock-octet page; SHARED_FIRST and SHARED_SIZE).
const (
	sharedFirst = 0x40000002
	sharedSize  = 510
)

// lockShared adds or removes the lock of a reader. It belongs to the open file, not to the
// process (fcntl(2), open file description locks): SQLite in this process finds it too, and
// closing another descriptor does not remove it.
func lockShared(f *os.File, on bool) error {
	lock := unix.Flock_t{Type: unix.F_UNLCK, Start: sharedFirst, Len: sharedSize}
	if on {
		lock.Type = unix.F_RDLCK
	}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
}
