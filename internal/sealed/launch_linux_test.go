package sealed

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// As standard files, a sealed run has what leads nowhere else.
func TestStandardFilesDoNotLeadOutOfTheRun(t *testing.T) {
	open := func(path string) *os.File {
		f := must.Get(os.Open(path))(t)
		t.Cleanup(func() { f.Close() })
		return f
	}
	pair := func(domain, kind int) *os.File {
		fds := must.Get(unix.Socketpair(domain, kind, 0))(t)
		f := os.NewFile(uintptr(fds[0]), "")
		t.Cleanup(func() { f.Close(); unix.Close(fds[1]) })
		return f
	}
	socket := func(domain, kind int) *os.File {
		fd := must.Get(unix.Socket(domain, kind, 0))(t)
		f := os.NewFile(uintptr(fd), "")
		t.Cleanup(func() { f.Close() })
		return f
	}
	pipe, end := must.Two(os.Pipe())(t)
	defer pipe.Close()
	defer end.Close()
	for what, c := range map[string]struct {
		file *os.File
		word string // of the error; empty: there is none
	}{
		"none": {nil, ""}, "/dev/null": {open(os.DevNull), ""}, "a pipe": {pipe, ""}, "a file": {open("/proc/self/status"), ""},
		"a connected Unix socket": {pair(unix.AF_UNIX, unix.SOCK_STREAM), ""},
		"a directory":             {open(t.TempDir()), "directory"}, "/": {open("/"), "directory"}, "a namespace": {open("/proc/self/ns/net"), "namespace"},
		"the keyboard of a terminal": {open("/dev/ptmx"), "device"},
		"TCP":                        {socket(unix.AF_INET, unix.SOCK_STREAM), "socket"}, "UDP": {socket(unix.AF_INET6, unix.SOCK_DGRAM), "socket"},
		"an unconnected Unix socket": {socket(unix.AF_UNIX, unix.SOCK_STREAM), "socket"}, "datagrams": {pair(unix.AF_UNIX, unix.SOCK_DGRAM), "socket"},
	} {
		for i := range 3 {
			var files [3]*os.File
			files[i] = c.file
			err := checkStandard(files[:]...)
			must.True(t, (err == nil) == (c.word == "") && (err == nil || strings.Contains(err.Error(), c.word)),
				"%s as descriptor %d: %v", what, i, err)
		}
	}
}

// The filter of system calls, run on calls: number, architecture, arguments.
func TestFilterOfSystemCalls(t *testing.T) {
	const arch = unix.AUDIT_ARCH_X86_64
	vm := must.Get(bpf.NewVM(filterProgram(arch, true, notifyCall)))(t)
	run := func(arch, number uint32, args ...uint32) uint32 {
		b := binary.BigEndian.AppendUint32(nil, number) // the machine of package bpf reads big-endian words
		b = binary.BigEndian.AppendUint32(b, arch)
		b = append(b, make([]byte, 8+6*8)...)
		for i, a := range args {
			binary.BigEndian.PutUint32(b[offsetArgs+8*i:], a)
		}
		v := must.Get(vm.Run(b))(t)
		return uint32(v)
	}
	noSys, noFamily, noType, noPerm := refuseCall(int(unix.ENOSYS)), refuseCall(int(unix.EAFNOSUPPORT)), refuseCall(int(unix.ESOCKTNOSUPPORT)), refuseCall(int(unix.EPERM))
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	for _, c := range []struct {
		what string
		got  uint32
		want uint32
	}{
		{"read", run(arch, unix.SYS_READ), allowCall},
		{"connect", run(arch, unix.SYS_CONNECT), notifyCall},
		{"connect of i386", run(unix.AUDIT_ARCH_I386, unix.SYS_CONNECT), noSys},
		{"connect of x32", run(arch, unix.SYS_CONNECT|x32), noSys},
		{"io_uring_setup", run(arch, unix.SYS_IO_URING_SETUP), noSys},
		{"io_uring_enter", run(arch, unix.SYS_IO_URING_ENTER), noSys},
		{"request_key", run(arch, unix.SYS_REQUEST_KEY), noSys},
		{"TIOCSTI", run(arch, unix.SYS_IOCTL, 0, unix.TIOCSTI), noPerm},
		{"TIOCLINUX", run(arch, unix.SYS_IOCTL, 0, unix.TIOCLINUX), noPerm},
		{"TIOCGWINSZ", run(arch, unix.SYS_IOCTL, 0, unix.TIOCGWINSZ), allowCall},
		{"TCP", run(arch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|flags), allowCall},
		{"UDP over IPv6", run(arch, unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM), allowCall},
		{"netlink", run(arch, unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW), allowCall},
		{"vsock", run(arch, unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM), noFamily},
		{"packet", run(arch, unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW), noFamily},
		{"AF_ALG", run(arch, unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET), noFamily},
		{"Unix stream", run(arch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM|flags), allowCall},
		{"Unix seqpacket", run(arch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_SEQPACKET), allowCall},
		{"Unix datagram", run(arch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM|flags), noType},
		{"Unix raw, which is a datagram", run(arch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_RAW), noType},
		{"pair", run(arch, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM|flags), allowCall},
		{"datagram pair", run(arch, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM), noType},
		{"TIPC pair", run(arch, unix.SYS_SOCKETPAIR, unix.AF_TIPC, unix.SOCK_STREAM), noFamily},
	} {
		must.Equal(t, c.got, c.want, c.what)
	}
}

// What forbids a sealed run is named with the setting that would permit it.
func TestRefusalsNameTheSetting(t *testing.T) {
	for stage, c := range map[string]struct {
		errno unix.Errno
		want  string
	}{
		stageClone: {unix.ENOSPC, "max_user_namespaces"}, stageFilter: {unix.ENOENT, "modprobe -a nf_tables"}, stageSeccomp: {unix.EINVAL, "Linux 5.6"},
		stageLink: {unix.EPERM, "namespaces"}, stageSockets: {unix.EMFILE, "heed help sealed"},
	} {
		err := explain(stage, os.NewSyscallError("call", c.errno))
		if !strings.Contains(err.Error(), "this machine cannot seal a run: "+stage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", stage, err)
		}
	}
	for text, want := range map[string]string{
		"": "ended unexpectedly", "{": "ended unexpectedly", `{"Stage":"exec","Errno":2}`: "no such file", `{"Stage":"mounts","Err":"x"}`: "(mounts): x", "null": "ended unexpectedly",
	} {
		must.Fail(t, parseReport([]byte(text)).err(), want, "%q", text)
	}
}
