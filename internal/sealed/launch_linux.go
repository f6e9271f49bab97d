package sealed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run is a sealed run: the helper, and then the command that it becomes.
type Run struct {
	// Process is the helper and then the command.
	Process *os.Process
	// Files are the sockets that heed serves: see NewNetwork. Close closes them.
	Files []*os.File

	cmd   *exec.Cmd
	pair  *net.UnixConn
	nft   *os.File // a netfilter socket of the network inside, diag one for its sockets
	diag  *os.File
	guard *guard
	ports []net.Listener // of Options.HostPorts
}

// The sockets that the helper hands out, in their order. One for each Options.HostPorts
// follows.
const (
	fileRedirect = 0 // TCP, transparent
	fileProxy    = 1 // TCP, at the address of the proxy variables
	fileDNSTCP   = 2
	fileDNS4     = 3
	fileDNS6     = 4 // as fileDNS4 where the kernel has no IPv6
	toHeed       = 5 // the number of those that heed serves
	fileNFT      = 5
	fileDiag     = 6
	fixedFiles   = 7
)

// helperName is the name (argv[0]) of the helper. It is followed by the descriptor of its
// end of the socket pair.
const helperName = "heed: sealed run"

// nothingName is the name of the command of Probe.
const nothingName = "heed: nothing"

// plan is the first message to the helper.
type plan struct {
	Hide      string
	HostPorts []uint16
	Root      bool // of the machine or of a user namespace: several ids are mapped
}

// report is a message of the helper. Errno is 0 when Stage succeeded.
type report struct {
	Stage string
	Errno syscall.Errno
	Err   string
}

// Launch starts the helper, which seals itself but for what follows in Exec. The error
// names the setting of the machine that forbids it.
func Launch(o Options) (*Run, error) {
	if err := checkStandard(o.Stdin, o.Stdout, o.Stderr); err != nil {
		return nil, err
	}
	r, err := launch(o)
	if denied := (*deniedError)(nil); os.Geteuid() == 0 && errors.As(err, &denied) && denied.stage == stageClone && denied.errno == unix.EPERM {
		var inChroot *Run
		if inOwnRoot(func() (err error) { inChroot, err = launch(o); return err }) == nil {
			return inChroot, nil
		}
	}
	return r, err
}

// checkStandard refuses sockets and directories as standard input, output or error: a
// socket belongs to the network outside, and a connected one can be connected elsewhere;
// through a directory, the files are reached that the mounts of the run hide; and devices
// that lead out (isExitDevice).
func checkStandard(files ...*os.File) error {
	for i, f := range files {
		if f == nil {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err == nil && (isDirectory(&st) || isNamespace(int(f.Fd())) || isExitDevice(&st)) {
			return fmt.Errorf("descriptor %d is a directory, a namespace or a device that leads out of the sealed run\nPass a file, a pipe or /dev/null: heed run --sealed -- CMD </dev/null", i)
		}
		domain, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			continue // no socket
		}
		kind, _ := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_TYPE)
		_, unconnected := unix.Getpeername(int(f.Fd()))
		if domain == unix.AF_UNIX && kind == unix.SOCK_STREAM && unconnected == nil {
			continue // it cannot be connected elsewhere
		}
		return fmt.Errorf("descriptor %d is a socket, which belongs to the network outside of the sealed run\nPass it through a pipe: ... | heed run --sealed -- CMD | cat", i)
	}
	return nil
}

func launch(o Options) (*Run, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a sealed run cannot be started: %w", err)
	}
	pair, err := unixConn(fds[0])
	if err != nil {
		unix.Close(fds[1])
		return nil, err
	}
	// No other process is started while the descriptor is inherited.
	syscall.ForkLock.Lock()
	inherited, err := unix.FcntlInt(uintptr(fds[1]), unix.F_DUPFD, 200) // apart from those of the command
	unix.Close(fds[1])
	syscall.ForkLock.Unlock()
	if err != nil {
		pair.Close()
		return nil, err
	}
	r := &Run{pair: pair}
	r.cmd = exec.Command("/proc/self/exe")
	r.cmd.Args = []string{helperName, strconv.Itoa(inherited)}
	r.cmd.SysProcAttr = namespaces()
	stdio(r.cmd, o)
	err = r.cmd.Start()
	unix.Close(inherited)
	if err != nil {
		pair.Close()
		return nil, explain(stageClone, err)
	}
	r.Process = r.cmd.Process
	p := plan{Hide: o.Hide, HostPorts: o.HostPorts, Root: os.Geteuid() == 0}
	if err := r.receive(p, o); err != nil {
		r.abort()
		return nil, err
	}
	return r, nil
}

// stdio sets the standard files. A nil *os.File must not become a non-nil interface.
func stdio(cmd *exec.Cmd, o Options) {
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	if o.Stdout != nil {
		cmd.Stdout = o.Stdout
	}
	if o.Stderr != nil {
		cmd.Stderr = o.Stderr
	}
}

// namespaces returns the attributes of the helper. An ordinary user keeps one id; root
// keeps all that there are.
func namespaces() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	uid, gid := os.Geteuid(), os.Getegid()
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN}
	if uid == 0 {
		a.UidMappings, a.GidMappings = idMap("/proc/self/uid_map", a.UidMappings), idMap("/proc/self/gid_map", a.GidMappings)
		groups, err := os.ReadFile("/proc/self/setgroups")
		a.GidMappingsEnableSetgroups = err == nil && string(bytes.TrimSpace(groups)) == "allow"
	}
	return a
}

// idMap returns the identity over all ids of a map; instead when it cannot be read.
func idMap(file string, instead []syscall.SysProcIDMap) (all []syscall.SysProcIDMap) {
	text, err := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		var first, outside, size int
		if n, _ := fmt.Sscan(line, &first, &outside, &size); n == 3 {
			all = append(all, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
		}
	}
	if err != nil || len(all) == 0 {
		return instead
	}
	return all
}

// receive sends the plan and takes the sockets of the helper.
func (r *Run) receive(p plan, o Options) error {
	if err := json.NewEncoder(r.pair).Encode(p); err != nil {
		return fmt.Errorf("the helper of the sealed run has ended: %w", err)
	}
	files, err := receiveFiles(r.pair, fixedFiles+len(p.HostPorts))
	if err != nil {
		return err
	}
	r.Files = files[:toHeed]
	r.nft, r.diag = files[fileNFT], files[fileDiag]
	for i, port := range p.HostPorts {
		l, err := net.FileListener(files[fixedFiles+i])
		files[fixedFiles+i].Close()
		if err != nil {
			return err
		}
		r.ports = append(r.ports, l)
		go serveHostPort(l, port)
	}
	r.guard = newGuard(r.diag, o.Sockets)
	return nil
}

// HandedOver closes the copies of Files, which another process has now: when it ends,
// nothing leads out of the network any more.
func (r *Run) HandedOver() {
	for _, f := range r.Files {
		f.Close()
	}
}

// Exec makes the helper become the command. It returns when the command has been
// executed; an *ExecError when it cannot be.
func (r *Run) Exec(c Command) (err error) {
	defer func() {
		if err != nil {
			r.abort()
		}
	}()
	if err := json.NewEncoder(r.pair).Encode(c); err != nil {
		return fmt.Errorf("the helper of the sealed run has ended: %w", err)
	}
	files, err := receiveFiles(r.pair, 1)
	if err != nil {
		return err
	}
	go r.guard.serve(files[0])
	text, err := io.ReadAll(r.pair) // until it is closed by execve
	if err == nil && len(text) > 0 {
		err = parseReport(text).err()
	}
	return err
}

// Wait waits for the end of the command.
func (r *Run) Wait() (syscall.WaitStatus, error) {
	err := r.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return r.cmd.ProcessState.Sys().(syscall.WaitStatus), nil
}

// Blocked returns what was refused so far, most first.
func (r *Run) Blocked() []Blocked {
	packets, _ := readBlocked(r.nft) // without it, only the sockets are counted
	return mergeBlocked(packets, r.guard.refusals())
}

// abort ends a helper that has not become the command.
func (r *Run) abort() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	r.Close()
}

// Close closes the sockets of the run. Processes that have outlived the command reach
// nothing any more once heed has closed its copies.
func (r *Run) Close() {
	r.pair.Close()
	for _, f := range append(r.Files, r.nft, r.diag) {
		if f != nil {
			f.Close()
		}
	}
	for _, p := range r.ports {
		p.Close()
	}
	if r.guard != nil {
		r.guard.close()
	}
}

// unixConn returns the connection of a descriptor, which it takes over.
func unixConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "pair")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// receiveFiles reads one report and n files. The error is that of the report.
func receiveFiles(c *net.UnixConn, n int) ([]*os.File, error) {
	text, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*n))
	size, oobSize, _, _, err := c.ReadMsgUnix(text, oob)
	if err != nil {
		return nil, fmt.Errorf("the helper of the sealed run has ended: %w", err)
	}
	files := Rights(oob[:oobSize])
	if len(files) != n {
		for _, f := range files {
			f.Close()
		}
		return nil, parseReport(text[:size]).err()
	}
	return files, nil
}

// Rights returns the files in control messages that a net.UnixConn has received, which sets
// close-on-exec.
func Rights(oob []byte) (files []*os.File) {
	messages, _ := unix.ParseSocketControlMessage(oob) // what cannot be parsed has none
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files
}

func parseReport(text []byte) *report {
	r := &report{}
	if json.Unmarshal(text, r) != nil {
		r.Err = "the helper of the sealed run has ended unexpectedly"
	}
	return r
}

// err returns the error of a report.
func (r *report) err() error {
	switch {
	case r.Stage == stageExec:
		return &ExecError{r.Errno}
	case r.Errno != 0:
		return explain(r.Stage, r.Errno)
	case r.Err != "":
		return fmt.Errorf("a sealed run cannot be set up (%s): %s", r.Stage, r.Err)
	}
	return errors.New("the helper of the sealed run has ended unexpectedly")
}
