package sealed

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The stages of setting up a sealed run, for error messages.
const (
	stageClone   = "namespaces"
	stageLink    = "loopback"
	stageSockets = "sockets"
	stageFilter  = "packet filter"
	stageMounts  = "mounts"
	stageSeal    = "privileges"
	stageSeccomp = "seccomp"
	stageExec    = "exec"
)

// IsHelper reports whether this process was started by Launch, to call Helper.
func IsHelper() bool {
	return len(os.Args) == 2 && os.Args[0] == helperName || len(os.Args) == 1 && os.Args[0] == nothingName
}

// Helper sets up the namespaces that the process is in and becomes the command. It
// returns an exit status when it cannot.
func Helper() int {
	if os.Args[0] == nothingName {
		return 0
	}
	runtime.LockOSThread() // capabilities and filters belong to a thread; execve keeps this one
	fd, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return 2
	}
	unix.CloseOnExec(fd)
	pair, err := unixConn(fd)
	if err != nil {
		return 2
	}
	h := &helper{pair: pair, in: json.NewDecoder(pair)}
	if err := h.run(); err != io.EOF {
		h.report(err)
	}
	return 2
}

// helper is the process that becomes the command.
type helper struct {
	pair  *net.UnixConn
	in    *json.Decoder
	plan  plan
	stage string // that it is at
}

// report sends an error to heed run.
func (h *helper) report(err error) {
	r := report{Stage: h.stage, Err: err.Error()}
	errors.As(err, &r.Errno)
	_ = json.NewEncoder(h.pair).Encode(r) // heed run has ended
}

// run does the stages and executes the command. It returns only why that failed: io.EOF when
// heed run has given up.
func (h *helper) run() error {
	var (
		sockets  []int
		port     uint16 // of the transparent listener
		command  Command
		listener int
	)
	for _, s := range []struct {
		stage string
		do    func() error
	}{
		{"", func() error { return h.in.Decode(&h.plan) }},
		{stageSockets, closeSocketsOnExec},
		{stageLink, upLoopback},
		{stageSockets, func() (err error) { sockets, port, err = openSockets(h.plan.HostPorts); return err }},
		{stageFilter, func() error { return filterPackets(port) }},
		{stageFilter, func() error { return h.send(sockets) }},
		{stageFilter, func() error { return h.in.Decode(&command) }},
		{stageMounts, func() error { return mounts(&h.plan, &command) }},
		{stageSeal, func() error { return dropPrivileges(&h.plan) }},
		{stageSeccomp, func() (err error) { listener, err = installFilter(); return err }},
		{stageSeccomp, func() error { return h.send([]int{listener}) }},
		{stageExec, func() error { return syscall.Exec(command.Path, command.Args, command.Env) }},
	} {
		h.stage = s.stage
		if err := s.do(); err != nil {
			return err
		}
	}
	return nil
}

// send hands descriptors out, with an empty report, and closes them.
func (h *helper) send(fds []int) error {
	_, _, err := h.pair.WriteMsgUnix([]byte("{}"), unix.UnixRights(fds...), nil)
	for _, fd := range fds {
		unix.Close(fd)
	}
	return err
}

// closeSocketsOnExec keeps the command from inheriting what leads out of the run, such as
// sockets of the network outside: all above standard error.
func closeSocketsOnExec() error {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range list {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue // the directory itself
		}
		if st.Mode&unix.S_IFMT == unix.S_IFSOCK || isNamespace(fd) || isDirectory(&st) || isExitDevice(&st) {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// isNamespace reports whether a descriptor is that of a namespace.
func isNamespace(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// isDirectory reports whether an inherited descriptor is a directory, through which the
// mounts outside could be reached.
func isDirectory(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

// isExitDevice reports whether an inherited descriptor is a device that leads out of the
// run: one of the kernel's interfaces to programs (/dev/net/tun, /dev/vhost-net, /dev/fuse),
// or the keyboard of a terminal outside (/dev/ptmx).
func isExitDevice(st *unix.Stat_t) bool {
	const misc, terminals, ptmx = 10, 5, 2 // admin-guide/devices.rst of Linux
	major, minor := unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && (major == misc || major == terminals && minor == ptmx)
}
