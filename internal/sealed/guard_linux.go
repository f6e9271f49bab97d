package sealed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guard makes the calls of connect(2) of a sealed run in place of its processes: what a
// filter of system calls decides on could change before the kernel reads it. Unix sockets
// with a path are connected only when they are bound in the network namespace of the run
// or permitted.
type guard struct {
	diag    *os.File
	allowed []string
	euid    uint32
	space   uint64 // inode of the network namespace of the run; 0: not known, and no path is connected

	mu      sync.Mutex // guards refused, and the use of diag
	refused map[string]uint64

	calls chan struct{} // holds one for each call that is being made

	notify *os.File // its descriptor is used as long as the guard is
	closed atomic.Bool
}

// maxRefused is the greatest number of paths that are counted separately.
const maxRefused = 100

// maxCalls is the greatest number of calls at a time: each needs a thread of this process,
// however many processes of the run wait for a connection.
const maxCalls = 128

// The sizes of struct seccomp_notif and seccomp_notif_resp (seccomp_unotify(2)).
type (
	notification struct {
		id    uint64
		pid   uint32
		flags uint32
		nr    int32
		arch  uint32
		ip    uint64
		args  [6]uint64
	}
	notificationReply struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

func newGuard(diag *os.File, allowed []string) *guard {
	space, _ := spaceOf(diag) // without it, sockets are refused
	return &guard{space: space, diag: diag, allowed: allowed, euid: uint32(os.Geteuid()), refused: map[string]uint64{}, calls: make(chan struct{}, maxCalls)}
}

// serve answers the notifications until no process of the run is left, or close.
func (g *guard) serve(f *os.File) {
	g.notify = f
	defer g.close()
	for fd := f.Fd(); !g.closed.Load(); {
		// A wait that close can end: the file is not closed while it is read.
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, 1000); err != nil && err != unix.EINTR {
			return
		}
		switch {
		case g.closed.Load(), ready[0].Revents&unix.POLLHUP != 0 && ready[0].Revents&unix.POLLIN == 0:
			return
		case ready[0].Revents&unix.POLLIN == 0:
			continue
		}
		n := &notification{}
		switch errno := control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)); errno {
		case 0:
			go g.answer(fd, n)
		case unix.EINTR, unix.ENOENT: // the process was ended
		default:
			return
		}
	}
}

func control(fd uintptr, request uint, p unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uintptr(request), uintptr(p))
	return errno
}

// close ends the answers: connect fails in processes that are left.
func (g *guard) close() { g.closed.Store(true) }

// refusals returns the paths of the sockets that were refused, with their counts.
func (g *guard) refusals() map[string]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.refused)
}

// answer makes the call of a notification.
func (g *guard) answer(fd uintptr, n *notification) {
	g.calls <- struct{}{}
	defer func() { <-g.calls }()
	reply := &notificationReply{id: n.id}
	if err := g.connect(fd, n); err != nil {
		var errno unix.Errno
		if !errors.As(err, &errno) {
			errno = unix.EACCES
		}
		reply.errno = -int32(errno)
	}
	_ = control(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(reply)) // the process was ended
}

// maxAddress is the size of the largest address of a socket (struct sockaddr_storage).
const maxAddress = 128

// connect makes one connect(2) of the thread in n.
func (g *guard) connect(notify uintptr, n *notification) error {
	size := int(int32(n.args[2]))
	if size < 0 || size > maxAddress {
		return unix.EINVAL
	}
	address := make([]byte, size)
	if err := readMemory(int(n.pid), uintptr(n.args[1]), address); err != nil {
		return unix.EFAULT
	}
	socket, err := takeDescriptor(int(n.pid), int(int32(n.args[0])))
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	// What was read is of the process that waits, if it still does.
	if !isWaiting(notify, n) {
		return unix.EINTR
	}
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err // ENOTSOCK
	}
	const path = 2 // its offset in struct sockaddr_un
	if domain != unix.AF_UNIX || len(address) <= path || binary.NativeEndian.Uint16(address) != unix.AF_UNIX || address[path] == 0 {
		// The network namespace limits all others.
		return g.complete(notify, n, socket, func() error { return rawConnect(socket, address) })
	}
	text, _, _ := bytes.Cut(address[path:], []byte{0})
	return g.connectPath(notify, n, socket, string(text))
}

// isWaiting reports whether the thread in n still waits for an answer.
func isWaiting(notify uintptr, n *notification) bool {
	return control(notify, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) == 0
}

// connectPath connects a Unix socket to the one at path, as the thread in n sees it.
func (g *guard) connectPath(notify uintptr, n *notification, socket int, path string) error {
	target, err := openAs(int(n.pid), path)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	var st unix.Stat_t
	if err := unix.Fstat(target, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ECONNREFUSED
	}
	if space, err := spaceOfSocket(socket); err != nil || space != g.space {
		g.count(path) // of a network inside, whose sockets cannot be listed
		return unix.ECONNREFUSED
	}
	real := fmt.Sprintf("/proc/self/fd/%d", target)
	if !g.isInside(int(n.pid), target, &st) && !g.isAllowed(&st) {
		g.count(path)
		return unix.ECONNREFUSED // with EACCES, programs give up instead of starting a service
	}
	at := append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), real...)
	uid, gid, err := idsOf(int(n.pid))
	if err != nil {
		return err
	}
	call := func() error { return rawConnect(socket, append(at, 0)) }
	if uid != g.euid {
		call = func() error { return connectAs(uid, gid, socket, append(at, 0)) }
	}
	return g.complete(notify, n, socket, call)
}

// isAllowed reports whether a file is a socket outside that is permitted: that which is now
// at its path outside, whatever the run has mounted there.
func (g *guard) isAllowed(st *unix.Stat_t) bool {
	return slices.ContainsFunc(g.allowed, func(path string) bool {
		var permitted unix.Stat_t
		return unix.Stat(path, &permitted) == nil && permitted.Dev == st.Dev && permitted.Ino == st.Ino
	})
}

func (g *guard) count(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.refused[path]; !known && len(g.refused) >= maxRefused {
		path = "(others)"
	}
	g.refused[path]++
}

// readMemory reads from the memory of a process.
func readMemory(pid int, at uintptr, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at, Len: len(b)}}, 0)
	if err == nil && n != len(b) {
		err = unix.EFAULT
	}
	return err
}

// takeDescriptor returns a copy of a descriptor of a thread.
func takeDescriptor(tid, fd int) (int, error) {
	p, err := unix.PidfdOpen(tid, unix.PIDFD_THREAD)
	if err == unix.EINVAL { // before Linux 6.9
		var leader int
		if leader, err = statusNumber(tid, "Tgid", 0); err == nil {
			p, err = unix.PidfdOpen(leader, 0)
		}
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(p)
	return unix.PidfdGetfd(p, fd, 0)
}

// statusNumber returns a number of a line of /proc/PID/status.
func statusNumber(pid int, name string, column int) (int, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			if f := strings.Fields(rest); len(f) > column {
				return strconv.Atoi(f[column])
			}
		}
	}
	return 0, unix.ESRCH
}

// idsOf returns the effective user and group of a thread.
func idsOf(tid int) (uid, gid uint32, err error) {
	u, err := statusNumber(tid, "Uid", 1)
	if err != nil {
		return 0, 0, err
	}
	g, err := statusNumber(tid, "Gid", 1)
	return uint32(u), uint32(g), err
}

// openAs opens a path, as a thread sees it, without following it into the file.
func openAs(tid int, path string) (int, error) {
	from, how := "/cwd", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if filepath.IsAbs(path) {
		from, how.Resolve = "/root", unix.RESOLVE_IN_ROOT
	}
	dir, err := unix.Open("/proc/"+strconv.Itoa(tid)+from, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	return unix.Openat2(dir, path, how)
}
