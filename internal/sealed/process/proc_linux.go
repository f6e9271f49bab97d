package process

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Path returns the path of a file of a process in /proc.
func Path(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// Program returns the path of the program that a process runs; empty when it cannot be
// read.
func Program(pid int) string {
	path, _ := os.Readlink(Path(pid, "exe"))
	return path
}

// Arguments returns the command line of a process, as it was started or as the process has
// changed it since; nil when it cannot be read.
func Arguments(pid int) []string {
	text, err := os.ReadFile(Path(pid, "cmdline"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
}

// Started returns the start time of a process, which with its id identifies it; false
// when there is no such process.
func Started(pid int) (string, bool) {
	stat, err := os.ReadFile(Path(pid, "stat"))
	if err != nil {
		return "", false
	}
	// The name is in parentheses and may contain any character; the start time is
	// the 20th field after it (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "", false
	}
	return fields[19], true
}

// ListsChildren reports whether the system lists the children of a process.
func ListsChildren() bool {
	_, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	return err == nil
}

// Children returns the ids of the children of a process.
func Children(pid int) (all []int) {
	files, _ := filepath.Glob(Path(pid, "task/*/children"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// Sockets returns the inodes of the sockets of a process.
func Sockets(pid int) (inodes []uint64) {
	dir, err := os.Open(Path(pid, "fd"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		link, _ := os.Readlink(filepath.Join(dir.Name(), name))
		text, ok := strings.CutPrefix(link, "socket:[")
		if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); ok && err == nil {
			inodes = append(inodes, inode)
		}
	}
	return inodes
}

// TCP returns the TCP sockets in the network namespace of a process.
func TCP(pid int) []Socket {
	return append(sockets(table(pid, "tcp")), sockets(table(pid, "tcp6"))...)
}

// UDP returns the UDP sockets in the network namespace of a process.
func UDP(pid int) []Socket {
	return append(sockets(table(pid, "udp")), sockets(table(pid, "udp6"))...)
}

// Unix returns the inodes of the Unix sockets in the network namespace of a process.
func Unix(pid int) (inodes []uint64) {
	for _, inode := range rowsOf(table(pid, "unix"), 6) {
		inodes = append(inodes, inode)
	}
	return inodes
}

// table returns the text of a table of sockets of the process's network namespace; empty
// when it cannot be read.
func table(pid int, name string) string {
	text, _ := os.ReadFile(Path(pid, "net/"+name))
	return string(text)
}

// sockets returns the sockets listed in a table.
func sockets(table string) (all []Socket) {
	for fields, inode := range rowsOf(table, 9) {
		local, ok := hexAddr(fields[1])
		if remote, okToo := hexAddr(fields[2]); ok && okToo {
			all = append(all, Socket{local, remote, State(fields[3]), inode})
		}
	}
	return all
}

// rowsOf iterates over the rows of a table of sockets, and the inodes, which are in the
// given column.
func rowsOf(table string, column int) iter.Seq2[[]string, uint64] {
	return func(yield func([]string, uint64) bool) {
		for line := range strings.Lines(table) {
			fields := strings.Fields(line)
			if len(fields) <= column {
				continue
			}
			if inode, err := strconv.ParseUint(fields[column], 10, 64); err == nil && !yield(fields, inode) {
				return
			}
		}
	}
}

// hexAddr parses an address in the format of the kernel: 32-bit words in native octet
// order, and the port.
func hexAddr(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}
