//go:build !linux

package daemon

import "net"

// peer knows no process, and leaves it to the modes of socket and directory who may connect.
func peer(net.Conn) (pid int, allowed bool) { return 0, true }
