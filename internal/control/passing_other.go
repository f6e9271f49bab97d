//go:build !linux

package control

import (
	"errors"
	"net"
	"os"
)

// passFiles returns an error: there are no sealed runs.
func passFiles(c net.Conn, _ []*os.File) (net.Conn, error) {
	c.Close()
	return nil, errors.ErrUnsupported
}

// ReceivingConn receives no files.
type ReceivingConn struct{ net.Conn }

// NewReceivingConn returns c.
func NewReceivingConn(c net.Conn) net.Conn { return c }

// Files returns nothing.
func (*ReceivingConn) Files() []*os.File { return nil }
