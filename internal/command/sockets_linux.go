package command

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

type addrPort = netip.AddrPort

// socket is a line of /proc/net/tcp and its kin (proc_pid_net(5)).
type socket struct {
	local, remote addrPort
	state         string
	inode         uint64
}

// States of sockets.
const (
	stateConnected = "01"
	stateListen    = "0A"
)

// readSockets returns the sockets in a file; none when it cannot be read.
func readSockets(file string) (all []socket) {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 10 {
			continue
		}
		inode, err := strconv.ParseUint(fields[9], 10, 64)
		local, ok := hexAddr(fields[1])
		remote, okToo := hexAddr(fields[2])
		if err == nil && ok && okToo && inode != 0 {
			all = append(all, socket{local, remote, fields[3], inode})
		}
	}
	return all
}

// unixSockets returns the inodes in /proc/net/unix.
func unixSockets(file string) (all []uint64) {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 7 {
			continue
		}
		if inode, err := strconv.ParseUint(fields[6], 10, 64); err == nil {
			all = append(all, inode)
		}
	}
	return all
}

// hexAddr reads an address as the kernel prints it: words of 32 bits in the
// machine's own order, and the port.
func hexAddr(text string) (addrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(b)%4 != 0 {
		return addrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}

// listeners are the addresses that are listened on.
type listeners struct {
	all  map[addrPort]bool // by anybody
	ours map[addrPort]bool // by a process of the run, on an address of its own
	any  map[uint16]bool   // ports that somebody listens on at every address
}

func newListeners(rows []socket, held map[uint64]int) listeners {
	l := listeners{all: map[addrPort]bool{}, ours: map[addrPort]bool{}, any: map[uint16]bool{}}
	for _, s := range rows {
		if s.state != stateListen {
			continue
		}
		l.all[s.local] = true
		if s.local.Addr().IsUnspecified() {
			l.any[s.local.Port()] = true
		}
		if held[s.inode] == 0 {
			continue
		}
		l.ours[s.local] = true
		if s.local.Addr().IsUnspecified() {
			for _, loopback := range []string{"127.0.0.1", "::1"} {
				l.ours[netip.AddrPortFrom(netip.MustParseAddr(loopback), s.local.Port())] = true
			}
		}
	}
	return l
}

// accepts reports whether a connection from local was accepted there: programs
// that connect have a port nobody listens on.
func (l listeners) accepts(local addrPort) bool { return l.all[local] || l.any[local.Port()] }
