// Package sealed runs a command in its own user, mount and network namespace, whose only
// exit is heed (Linux).
//
// In the order in which to read it: Launch (launch_linux.go) starts this program once more
// as the helper, in new namespaces. The helper (helper_linux.go) sets up the network
// (network_linux.go: loopback, routes, sockets, packet filter) and the mounts
// (mount_linux.go), hands its sockets out, gives up its capabilities, installs a seccomp
// filter (seccomp_linux.go) and becomes the command. A socket belongs to the network
// namespace that it was created in: heed, outside, accepts the connections of the command
// without a process in between. A Network (network.go) is heed's end of it: redirected
// connections, and the resolver (Names, dns.go) that gives each name an address of its
// own. The Guard (guard_linux.go) decides on connect(2), since Unix sockets with a path
// ignore network namespaces; inside_linux.go finds those that were made inside. Probe
// (probe_linux.go) finds out whether a machine can seal.
//
// On other systems Launch and Probe return ErrUnsupported.
//
// Outside package: github.com/google/nftables for the packet filter.
package sealed

import (
	"errors"
	"os"
)

// ErrUnsupported is the error on systems other than Linux.
var ErrUnsupported = errors.New("sealed runs need Linux: this system has no network namespaces\nRun the command in a container or a virtual machine whose only exit is heed (heed help containers)")

// Options are the parameters of a sealed run.
type Options struct {
	// Hide is a directory that the command sees empty: heed's state directory. Empty:
	// nothing is hidden.
	Hide string
	// HostPorts are TCP ports at which the command reaches the services on the loopback
	// address of this machine.
	HostPorts []uint16
	// Sockets are absolute paths of Unix sockets outside that the command may connect to.
	Sockets []string

	Stdin, Stdout, Stderr *os.File // nil: /dev/null
}

// Command is what a sealed run executes.
type Command struct {
	Path string   // of the program
	Args []string // with the name
	Env  []string
	// Keep are files and directories below Options.Hide that the command sees, read-only.
	Keep []string
	// Roots is a file of certificates that the command sees at each of RootFiles that exists:
	// what the TLS libraries of the system read without being told. Empty: none.
	Roots     string
	RootFiles []string
}

// Blocked counts what was refused to the command.
type Blocked struct {
	What  string `json:"what"` // "udp/443", "unix /run/docker.sock"
	Count uint64 `json:"count"`
}

// ExecError is the error of a command that cannot be executed.
type ExecError struct{ Err error }

// Error implements error.
func (e *ExecError) Error() string { return e.Err.Error() }

// Unwrap returns the error of execve(2).
func (e *ExecError) Unwrap() error { return e.Err }
