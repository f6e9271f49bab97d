package sealed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// rootDrops are the capabilities that root does not keep: those over the network,
// mounts, other processes and the kernel.
var rootDrops = []int{
	unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BROADCAST, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_MODULE,
	unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_MKNOD,
	unix.CAP_CHECKPOINT_RESTORE, unix.CAP_SYSLOG, unix.CAP_SYS_TIME,
}

// dropPrivileges gives up the capabilities of the thread, and those that executing a
// program could add. Root keeps those over files and users.
func dropPrivileges(p *plan) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if p.Root {
		if err := unix.Capget(&head, &sets[0]); err != nil {
			return fmt.Errorf("capget: %w", err)
		}
		for _, c := range rootDrops {
			sets[c/32].Permitted &^= 1 << (c % 32)
		}
	}
	for i := range sets {
		sets[i].Effective, sets[i].Inheritable = sets[i].Permitted, 0
	}
	if err := unix.Capset(&head, &sets[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// Offsets in struct seccomp_data (seccomp(2)). Arguments are read as their low half.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// Results of the filter.
const (
	allowCall  = unix.SECCOMP_RET_ALLOW
	notifyCall = unix.SECCOMP_RET_USER_NOTIF
)

func refuseCall(errno int) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// arches are the architectures for which the filter is written, as seccomp(2) has them.
var arches = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
	"ppc64le": unix.AUDIT_ARCH_PPC64LE, "loong64": unix.AUDIT_ARCH_LOONGARCH64,
}

// x32 is the bit of the system calls of the x32 interface.
const x32 = 0x40000000

// refusedCalls are system calls that do not exist in a sealed run: io_uring makes calls
// that no filter sees, also on an instance that was inherited, and request_key(2) has the
// kernel run a program outside, such as one that resolves names.
var refusedCalls = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_REQUEST_KEY}

// filterProgram returns the filter: the program of system calls of another interface is
// refused, sockets are of the families whose reach the network namespace limits, Unix
// sockets are connected before they send, and each connect(2) is notified.
// In a sealed run inside another one, the filter outside notifies (notify is allowCall).
func filterProgram(arch uint32, x86 bool, notify uint32) []bpf.Instruction {
	var p []bpf.Instruction
	ret := func(v uint32) bpf.Instruction { return bpf.RetConstant{Val: v} }
	p = append(p,
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		ret(refuseCall(int(unix.ENOSYS))),
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	if x86 {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1}, ret(refuseCall(int(unix.ENOSYS))))
	}
	call := func(number uint32, body ...bpf.Instruction) {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(body))})
		p = append(p, body...)
	}
	call(unix.SYS_CONNECT, ret(notify))
	for _, number := range refusedCalls {
		call(number, ret(refuseCall(int(unix.ENOSYS))))
	}
	call(unix.SYS_IOCTL,
		bpf.LoadAbsolute{Off: offsetArgs + 8, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCLINUX, SkipTrue: 1},
		ret(allowCall),
		ret(refuseCall(int(unix.EPERM))))
	const kind = 0xf               // the type without SOCK_CLOEXEC and SOCK_NONBLOCK
	unixKind := []bpf.Instruction{ // a datagram socket sends to any path without connect
		bpf.LoadAbsolute{Off: offsetArgs + 8, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kind},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		ret(refuseCall(int(unix.ESOCKTNOSUPPORT))),
		ret(allowCall),
	}
	call(unix.SYS_SOCKET, append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArgs, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 2, SkipFalse: 1},
		ret(allowCall),
		ret(refuseCall(int(unix.EAFNOSUPPORT))),
	}, unixKind...)...)
	call(unix.SYS_SOCKETPAIR, append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArgs, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1},
		ret(refuseCall(int(unix.EAFNOSUPPORT))),
	}, unixKind...)...)
	return append(p, ret(allowCall))
}

// installFilter installs the filter for this thread, and what it executes, and returns
// the descriptor of its notifications. A process has one listener at most: inside another
// sealed run it is that of the outer one, and the descriptor is that of /dev/null.
func installFilter() (int, error) {
	fd, err := install(notifyCall, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if err == unix.EINVAL { // the second flag is of Linux 5.19
		fd, err = install(notifyCall, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	if err == unix.EBUSY {
		if _, err := install(allowCall, 0); err != nil {
			return -1, err
		}
		if err := checkOuterGuard(); err != nil {
			return -1, err
		}
		return unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	return fd, err
}

// install installs the filter with the flags.
func install(notify uint32, flags uintptr) (int, error) {
	arch, known := arches[runtime.GOARCH]
	if !known {
		return -1, fmt.Errorf("there is no filter of system calls for %s", runtime.GOARCH)
	}
	raw, err := bpf.Assemble(filterProgram(arch, runtime.GOARCH == "amd64", notify))
	if err != nil {
		return -1, err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// checkOuterGuard returns an error unless connect(2) is guarded by an outer sealed run,
// which refuses Unix sockets with a path in this network namespace.
func checkOuterGuard() error {
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	defer listener.Close()
	if _, err := net.Dial("unix", path); !errors.Is(err, unix.ECONNREFUSED) {
		return errors.New("another program listens to the system calls of this process, so that Unix sockets cannot be guarded; start heed outside of it")
	}
	return nil
}
