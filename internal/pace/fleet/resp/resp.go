// Package resp limits what a Redis server may send, before a client library reads it:
// libraries allocate memory for as many octets and elements as a reply announces.
//
// Limit follows the framing of version 2 of the protocol (RESP2) and closes the connection at
// the first reply that is malformed or beyond a limit. It does not interpret replies.
package resp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Limits of a reply. The largest replies that heed needs are the list of commands (20,000
// elements, 0.3 MiB) and an entry with a snapshot (1 MiB).
const (
	maxLine     = 64 << 10 // octets of a status, an error or a number
	maxBulk     = 4 << 20  // octets of a bulk string
	maxReply    = 8 << 20  // octets of a reply with all its elements
	maxElements = 128 << 10
	maxDepth    = 16 // arrays in arrays
	maxHeader   = 20 // octets of the length of a bulk string or an array
)

// ErrReply is the error of a connection on which the server sent a malformed reply, or one
// beyond a limit.
var ErrReply = errors.New("the store's reply is not one of a Redis server")

// Limit returns c with limited replies.
func Limit(c net.Conn) net.Conn {
	limited := &conn{Conn: c}
	if sys, ok := c.(syscall.Conn); ok { // the library uses it to find out whether an idle connection was closed
		return &sysConn{limited, sys}
	}
	return limited
}

// conn is a connection to a Redis server.
type conn struct {
	net.Conn
	replies walker // used by Read alone
	failed  atomic.Pointer[error]
}

// sysConn is a conn whose file descriptor can be examined.
type sysConn struct {
	*conn
	sys syscall.Conn
}

// SyscallConn implements syscall.Conn.
func (c *sysConn) SyscallConn() (syscall.RawConn, error) { return c.sys.SyscallConn() }

// Read implements net.Conn. When the deadline passes within a reply, the connection ends: its
// rest would be read as the beginning of another reply.
func (c *conn) Read(p []byte) (int, error) {
	if failed := c.failed.Load(); failed != nil {
		return 0, *failed
	}
	n, err := c.Conn.Read(p)
	if bad := c.replies.walk(p[:n]); bad != nil {
		return 0, c.fail(bad)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.replies.atStart() {
		return 0, c.fail(fmt.Errorf("%w: it stopped in the middle", ErrReply))
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if failed := c.failed.Load(); failed != nil {
		return 0, *failed
	}
	return c.Conn.Write(p)
}

func (c *conn) fail(err error) error {
	c.failed.Store(&err)
	c.Conn.Close()
	return err
}

// walker parses the framing of replies. The zero value is before the first one.
type walker struct {
	line     []byte // what has arrived of a line; empty: between lines
	bulk     int    // octets left of a bulk string and its CRLF
	open     []int  // elements left of each array that is open, the innermost last
	octets   int    // of the reply
	elements int    // announced in the reply
}

// atStart reports whether the last reply is complete.
func (w *walker) atStart() bool { return len(w.line) == 0 && w.bulk == 0 && len(w.open) == 0 }

// walk reads p, which continues the replies. After an error the connection is unusable.
func (w *walker) walk(p []byte) error {
	for len(p) > 0 {
		n, err := w.step(p)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrReply, err)
		}
		if w.octets += n; w.octets > maxReply {
			return fmt.Errorf("%w: it is longer than %d octets", ErrReply, maxReply)
		}
		p = p[n:]
		if w.atStart() {
			w.octets, w.elements = 0, 0
		}
	}
	return nil
}

// step reads the beginning of p, which is not empty, and returns its length.
func (w *walker) step(p []byte) (int, error) {
	switch {
	case w.bulk > 0:
		return w.stepBulk(p)
	case len(w.line) == 0 && bytes.IndexByte([]byte("+-:$*"), p[0]) < 0:
		return 0, fmt.Errorf("it begins with the octet %q", p[0])
	}
	return w.stepLine(p)
}

func (w *walker) stepBulk(p []byte) (int, error) {
	n := min(len(p), w.bulk)
	for i := max(0, w.bulk-len("\r\n")); i < n; i++ { // its last two octets
		if want := "\n\r"[w.bulk-i-1]; p[i] != want {
			return 0, errors.New("a string is longer than it announced")
		}
	}
	if w.bulk -= n; w.bulk == 0 {
		w.elementEnds()
	}
	return n, nil
}

func (w *walker) stepLine(p []byte) (int, error) {
	end := bytes.IndexByte(p, '\n') + 1
	if end > 0 {
		p = p[:end]
	}
	w.line = append(w.line, p...)
	text, whole := bytes.CutSuffix(w.line[1:], []byte("\r\n"))
	if !whole {
		text = bytes.TrimSuffix(text, []byte("\r"))
	}
	switch kind := w.line[0]; {
	case bytes.IndexByte(text, '\r') >= 0, end > 0 && !whole:
		return 0, errors.New("a line does not end in CRLF")
	case len(text) >= maxLine, (kind == '$' || kind == '*') && len(text) > maxHeader:
		return 0, errors.New("a line is too long")
	case whole:
		w.line = w.line[:0]
		return len(p), w.lineEnds(kind, text)
	}
	return len(p), nil
}

// lineEnds handles a complete line.
func (w *walker) lineEnds(kind byte, text []byte) error {
	switch {
	case kind == ':' && len(text) == 0:
		return errors.New("a number is empty")
	case kind != '$' && kind != '*', string(text) == "-1": // nil
		w.elementEnds()
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 63)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a length", text)
	case kind == '$' && n > maxBulk:
		return fmt.Errorf("it announces a string of %d octets, over %d", n, maxBulk)
	case kind == '$':
		w.bulk = int(n) + len("\r\n")
	case n > maxElements || w.elements+int(n) > maxElements:
		return fmt.Errorf("it announces %d elements, over %d in all", n, maxElements)
	case n == 0:
		w.elementEnds()
	case len(w.open) == maxDepth:
		return fmt.Errorf("its arrays are nested more than %d deep", maxDepth)
	default:
		w.elements += int(n)
		w.open = append(w.open, int(n))
	}
	return nil
}

// elementEnds counts a complete element, and the arrays that it completes.
func (w *walker) elementEnds() {
	for len(w.open) > 0 {
		last := &w.open[len(w.open)-1]
		if *last--; *last > 0 {
			return
		}
		w.open = w.open[:len(w.open)-1]
	}
}
