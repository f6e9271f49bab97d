package sealed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Of struct unix_diag_req and unix_diag_msg (linux/unix_diag.h).
const (
	sockDiagByFamily = 20
	showNameVFS      = 1 | 2 // UDIAG_SHOW_NAME, UDIAG_SHOW_VFS
	diagName         = 0     // UNIX_DIAG_NAME
	diagVFS          = 1     // UNIX_DIAG_VFS
	diagHead         = 16
	listening        = 10 // the state TCP_LISTEN
)

// isInside reports whether a socket of the network namespace of the run is bound to the
// open file, which the thread tid sees.
//
// The kernel reports the low 32 bits of the inode of the file, and the device of its file
// system, which is not the st_dev of a subvolume of btrfs. The device must always be that of
// the file: names and the inodes of a file system of its own are the run's to choose. Of a
// longer inode, the name that the socket was bound to must be that of the file as well.
func (g *guard) isInside(tid, file int, st *unix.Stat_t) bool {
	dev := fileSystem(tid, file, st)
	request := []byte{unix.AF_UNIX, 0, 0, 0}
	request = binary.NativeEndian.AppendUint32(request, 1<<listening)
	request = binary.NativeEndian.AppendUint32(request, 0)
	request = binary.NativeEndian.AppendUint32(request, showNameVFS)
	request = binary.NativeEndian.AppendUint64(request, ^uint64(0)) // no cookie
	for range dumps {
		found, names := g.bound(request, dev, st.Ino)
		if found || slices.ContainsFunc(names, func(name string) bool { return isSame(tid, name, st) }) {
			return true
		}
	}
	return false
}

// dumps is how often the sockets are listed to find one: those that are closed meanwhile
// can keep another out of a list.
const dumps = 3

// bound lists the sockets of the network namespace of the run. found is true when one is
// bound to that inode; names are those of sockets that may be, at a longer inode.
func (g *guard) bound(request []byte, dev uint32, inode uint64) (found bool, names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := ask(int(g.diag.Fd()), sockDiagByFamily, unix.NLM_F_DUMP, request, func(b []byte) {
		s, ok := parseBound(b)
		switch {
		case !ok || !s.mayBeAt(dev, inode):
		case inode <= math.MaxUint32:
			found = true
		default:
			names = append(names, s.name)
		}
	})
	if err != nil {
		return false, nil
	}
	return found, names
}

// boundSocket is a Unix socket that is bound to a file.
type boundSocket struct {
	ino, dev uint32 // of the file; dev as the kernel has it, 12 and 20 bits
	name     string // path as it was given to bind(2), without the NUL
}

// parseBound returns the socket of a message of a dump; false for one that is bound to no
// file.
func parseBound(b []byte) (s boundSocket, ok bool) {
	if len(b) < diagHead {
		return s, false
	}
	attributes(b[diagHead:], func(kind uint16, v []byte) {
		switch {
		case kind == diagVFS && len(v) >= 8:
			s.ino, s.dev, ok = binary.NativeEndian.Uint32(v), binary.NativeEndian.Uint32(v[4:]), true
		case kind == diagName:
			name, _, _ := bytes.Cut(v, []byte{0})
			s.name = string(name)
		}
	})
	return s, ok
}

// mayBeAt reports whether s is at that inode of the file system of a device, as far as the
// kernel reports it.
func (s boundSocket) mayBeAt(dev uint32, inode uint64) bool {
	return s.ino == uint32(inode) && s.dev == dev
}

// fileSystem returns the device of the file system of an open file of this process, which
// the thread tid sees, as the kernel has it: that of its mount (proc(5), mountinfo), or its
// st_dev if the mount is not found, as in a chroot.
func fileSystem(tid, file int, st *unix.Stat_t) uint32 {
	info, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", file))
	mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", tid))
	_, id, _ := bytes.Cut(info, []byte("mnt_id:"))
	id, _, _ = bytes.Cut(id, []byte{'\n'})
	for line := range bytes.Lines(mounts) {
		fields := bytes.Fields(line)
		if len(fields) < 3 || !bytes.Equal(fields[0], bytes.TrimSpace(id)) {
			continue
		}
		var major, minor uint32
		if n, _ := fmt.Sscanf(string(fields[2]), "%d:%d", &major, &minor); n == 2 {
			return major<<20 | minor
		}
	}
	return unix.Major(st.Dev)<<20 | unix.Minor(st.Dev)
}

// isSame reports whether a path, as a thread sees it, is that of the file.
func isSame(tid int, path string, st *unix.Stat_t) bool {
	if path == "" {
		return false
	}
	fd, err := openAs(tid, path)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var other unix.Stat_t
	return unix.Fstat(fd, &other) == nil && other.Dev == st.Dev && other.Ino == st.Ino
}
