package control

import (
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"heed/internal/sealed"
)

// maxPassed is the greatest number of files that a request passes.
const maxPassed = 16

// passFiles returns c, whose first octets take copies of the files with them.
func passFiles(c net.Conn, files []*os.File) (net.Conn, error) {
	conn, ok := c.(*net.UnixConn)
	if !ok || len(files) > maxPassed {
		c.Close()
		return nil, fmt.Errorf("%d sockets cannot be passed over the control socket", len(files))
	}
	return &passingConn{UnixConn: conn, files: files}, nil
}

// passingConn passes files with its first bytes.
type passingConn struct {
	*net.UnixConn
	files []*os.File
}

// Write implements net.Conn.
func (c *passingConn) Write(b []byte) (int, error) {
	if len(c.files) == 0 || len(b) == 0 {
		return c.UnixConn.Write(b)
	}
	fds := make([]int, len(c.files))
	for i, f := range c.files {
		fds[i] = int(f.Fd())
	}
	n, _, err := c.WriteMsgUnix(b, unix.UnixRights(fds...), nil)
	c.files = nil
	if err != nil || n == len(b) {
		return n, err
	}
	more, err := c.UnixConn.Write(b[n:])
	return n + more, err
}

// ReceivingConn is a connection on the control socket that takes the files that its
// client passes.
type ReceivingConn struct {
	*net.UnixConn

	mu    sync.Mutex
	files []*os.File
}

// NewReceivingConn returns c as a ReceivingConn, or as it is.
func NewReceivingConn(c net.Conn) net.Conn {
	if conn, ok := c.(*net.UnixConn); ok {
		return &ReceivingConn{UnixConn: conn}
	}
	return c
}

// Read implements net.Conn.
func (c *ReceivingConn) Read(b []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxPassed))
	n, oobSize, _, _, err := c.ReadMsgUnix(b, oob)
	if err == nil && n == 0 && len(b) > 0 {
		return c.UnixConn.Read(b) // returns the end of the stream as such
	}
	if oobSize > 0 {
		c.receive(oob[:oobSize])
	}
	return n, err
}

// receive keeps the files in control messages.
func (c *ReceivingConn) receive(oob []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range sealed.Rights(oob) {
		if len(c.files) < maxPassed {
			c.files = append(c.files, f)
		} else {
			f.Close()
		}
	}
}

// Files returns the files that were received, which belong to the caller then.
func (c *ReceivingConn) Files() []*os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	files := c.files
	c.files = nil
	return files
}

// Close closes the connection, and the files that were not taken.
func (c *ReceivingConn) Close() error {
	for _, f := range c.Files() {
		f.Close()
	}
	return c.UnixConn.Close()
}
