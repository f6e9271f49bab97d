package sealed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// NewNetwork returns the network whose sockets are Run.Files, which it closes.
func NewNetwork(files []*os.File) (n *Network, err error) {
	defer func() {
		for _, f := range files {
			f.Close()
		}
		if err != nil && n != nil {
			n.Close()
			n = nil
		}
	}()
	if len(files) != toHeed {
		return nil, fmt.Errorf("a sealed run has %d sockets, not %d", toHeed, len(files))
	}
	n = &Network{}
	if n.space, err = spaceOf(files[fileRedirect]); err != nil {
		return n, err
	}
	for i, l := range map[int]*net.Listener{fileRedirect: &n.Redirected, fileProxy: &n.Proxy, fileDNSTCP: &n.dnsTCP} {
		var failed error
		*l, failed = net.FileListener(files[i])
		err = errors.Join(err, failed)
	}
	for i, c := range map[int]*net.PacketConn{fileDNS4: &n.dns4, fileDNS6: &n.dns6} {
		var failed error
		*c, failed = net.FilePacketConn(files[i])
		err = errors.Join(err, failed)
	}
	if err != nil {
		return n, err
	}
	if at, ok := n.dns6.LocalAddr().(*net.UDPAddr); ok && at.IP.To4() != nil { // the kernel has no IPv6
		n.dns6.Close()
		n.dns6 = nil
	}
	return n, nil
}

// spaceOf returns the inode of the network namespace of a socket.
func spaceOf(f *os.File) (uint64, error) { return spaceOfSocket(int(f.Fd())) }

func spaceOfSocket(socket int) (uint64, error) {
	fd, err := unix.IoctlRetInt(socket, unix.SIOCGSKNS)
	if errors.Is(err, unix.EPERM) {
		return 0, errors.New("the running heed is in another user namespace than this command, and cannot seal its network\nWait until that heed has ended, or set HEED_STATE to another directory")
	}
	if err != nil {
		return 0, fmt.Errorf("the network namespace of a sealed run cannot be read: %w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return st.Ino, err
}

// InSeal reports whether a process is part of a sealed run: it is in the network of one
// of running, or in a user namespace below that of this process.
func InSeal(pid int, running []*Network) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/ns/"
	var own, other, space unix.Stat_t
	if unix.Stat("/proc/self/ns/user", &own) != nil {
		return len(running) > 0
	}
	if err := unix.Stat(dir+"user", &other); err != nil || unix.Stat(dir+"net", &space) != nil {
		// A process of a sealed run can be examined by its user; root's cannot be.
		return len(running) > 0 && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM)
	}
	for _, n := range running {
		if n.space == space.Ino {
			return true
		}
	}
	return own.Ino != other.Ino
}
