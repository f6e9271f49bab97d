//go:build !linux

package command

import "net"

// peerAllowed leaves it to the modes of socket and directory.
func peerAllowed(net.Conn) bool { return true }
