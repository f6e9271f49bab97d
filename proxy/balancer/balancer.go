// Package balancer reads the header that a load balancer for TCP sends before what its client
// sends, from which heed learns the client's address: the PROXY protocol of HAProxy, versions 1
// and 2 (https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt).
//
// It takes exactly the octets of the header from the connection, within a bound and however
// they are split, and gives them to github.com/pires/go-proxyproto. That library knows both
// forms, every family of addresses and the extensions, and is kept in step with the document;
// its own reading of a connection is not used, since it refuses a header in two segments and
// keeps what follows in a buffer.
package balancer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	proxyproto "github.com/pires/go-proxyproto"
)

const (
	maxLine = 107 // of version 1, with its line end (§2.1)
	fixed   = 16  // octets of a header of version 2 before the addresses (§2.2)
	// maxRest bounds the addresses and extensions (TLV) of version 2; a client's certificate,
	// the longest extension, has one or two KiB.
	maxRest = 4 << 10
)

// ErrNone is the error of Read when something else came in place of a header.
var ErrNone = errors.New("no PROXY protocol header came from the load balancer; turn it on there (HAProxy: send-proxy-v2), or remove its address from proxy_protocol")

// Conn is the connection of a load balancer's client.
type Conn struct {
	net.Conn // of the load balancer, after the header

	client, site *net.TCPAddr // nil: those of Conn
	local        bool
}

// Unread returns c as the load balancer's own connection, of which no header could be read.
func Unread(c net.Conn) *Conn { return &Conn{Conn: c} }

// Read reads the header from c, and no octet after it. It returns io.EOF when the connection
// ended before its first octet, the error of c when it failed in the header, and otherwise an
// error that says what is wrong with the header. It waits as long as c does.
func Read(c net.Conn) (*Conn, error) {
	text, err := frame(c)
	if err != nil {
		return nil, err
	}
	h, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return nil, fmt.Errorf("the PROXY protocol header of the load balancer cannot be read: %w", err)
	}
	if _, err := h.TLVs(); err != nil {
		return nil, fmt.Errorf("the PROXY protocol header of the load balancer has broken extensions: %w", err)
	}
	if h.Version == 2 && h.Command.IsLocal() {
		return &Conn{Conn: c, local: true}, nil
	}
	client, site, ok := h.TCPAddrs()
	if !ok {
		return nil, errors.New("the PROXY protocol header of the load balancer names no TCP address of a client (UNKNOWN, UNIX or UDP): heed judges by it, so that the load balancer must know it")
	}
	b := &Conn{Conn: c, client: unmapped(client), site: unmapped(site)}
	if a := b.client.AddrPort().Addr(); a.IsUnspecified() || a.IsMulticast() {
		return nil, fmt.Errorf("the PROXY protocol header of the load balancer names %s as its client, which is no address of one", a)
	}
	return b, nil
}

// frame returns the octets of the header.
func frame(c io.Reader) ([]byte, error) {
	text := make([]byte, len(proxyproto.SIGV2), fixed+maxRest)
	for n := 0; n < len(text); { // either header is longer, what is none need not be
		more, err := c.Read(text[n:])
		n += more
		isLine := bytes.HasPrefix(text[:n], lineStart[:min(n, len(lineStart))])
		switch {
		case n > 0 && !isLine && !bytes.HasPrefix(proxyproto.SIGV2, text[:n]):
			return nil, ErrNone
		case isLine && n == len(text):
			return line(c, text)
		case err != nil && n == 0:
			return nil, err
		case err != nil && n < len(text):
			return nil, cut(err)
		}
	}
	text = text[:fixed]
	if _, err := io.ReadFull(c, text[len(proxyproto.SIGV2):]); err != nil {
		return nil, cut(err)
	}
	rest := int(binary.BigEndian.Uint16(text[fixed-2:]))
	if rest > maxRest {
		return nil, fmt.Errorf("the PROXY protocol header of the load balancer has %d octets of addresses and extensions, and heed takes %d: leave out some of them there", rest, maxRest)
	}
	text = text[:fixed+rest]
	if _, err := io.ReadFull(c, text[fixed:]); err != nil {
		return nil, cut(err)
	}
	return text, nil
}

// lineStart begins a header of version 1.
var lineStart = append(bytes.Clone(proxyproto.SIGV1), ' ')

// line reads the rest of a header of version 1 that begins with text.
func line(c io.Reader, text []byte) ([]byte, error) {
	for len(text) < maxLine {
		text = text[:len(text)+1]
		if _, err := io.ReadFull(c, text[len(text)-1:]); err != nil {
			return nil, cut(err)
		}
		if text[len(text)-1] == '\n' {
			return text, nil
		}
	}
	return nil, fmt.Errorf("the PROXY protocol header of the load balancer has no end within %d octets", maxLine)
}

// cut returns the error of a header that ended in the middle.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the PROXY protocol header of the load balancer ended in the middle")
	}
	return err
}

func unmapped(a *net.TCPAddr) *net.TCPAddr {
	at := a.AddrPort()
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()))
}

// Local reports whether the load balancer connected for itself, as its health checks do, so
// that there is no client.
func (c *Conn) Local() bool { return c.local }

// RemoteAddr returns the address of the client; of the load balancer, where that is none.
func (c *Conn) RemoteAddr() net.Addr {
	if c.client == nil {
		return c.Conn.RemoteAddr()
	}
	return c.client
}

// Destination returns the address that the client connected to, according to the load
// balancer; the zero AddrPort where it connected for itself.
func (c *Conn) Destination() netip.AddrPort {
	if c.site == nil {
		return netip.AddrPort{}
	}
	return c.site.AddrPort()
}

// CloseWrite passes a half-close on.
func (c *Conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// SetLinger passes the setting on.
func (c *Conn) SetLinger(seconds int) error {
	if w, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return w.SetLinger(seconds)
	}
	return nil
}
