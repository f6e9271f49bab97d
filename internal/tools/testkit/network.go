package testkit

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Network is the network of a test: sites at addresses of 127/8, a resolver, and a
// dialler that refuses and records all addresses outside loopback.
type Network struct {
	t testing.TB

	mu      sync.Mutex
	names   map[string]string
	outside []string
}

// ErrOutside is the error of Network's dialler for an address outside loopback.
var ErrOutside = errors.New("refused by the test")

// NewNetwork returns a network whose resolver has names: host names that end in
// .test, each with its addresses, with spaces between several. It may be nil.
func NewNetwork(t testing.TB, names map[string]string) *Network {
	return &Network{t: t, names: names}
}

// NetworkClasses returns classify, but 127.1.0.0/16 is of class public and
// 127.2.0.0/16 of class private.
func NetworkClasses[Class any](public, private Class, classify func(netip.Addr) Class) func(netip.Addr) Class {
	return func(a netip.Addr) Class {
		switch {
		case netip.MustParsePrefix("127.1.0.0/16").Contains(a):
			return public
		case netip.MustParsePrefix("127.2.0.0/16").Contains(a):
			return private
		}
		return classify(a)
	}
}

// Rename gives name other addresses.
func (n *Network) Rename(name, addresses string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = addresses
}

// Outside returns the addresses outside loopback that were dialled.
func (n *Network) Outside() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.outside)
}

// Dialer returns a dialler that resolves the network's names.
func (n *Network) Dialer() net.Dialer {
	return net.Dialer{
		Resolver: n.resolver(),
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			if ap := netip.MustParseAddrPort(address); !ap.Addr().Unmap().IsLoopback() {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.outside = append(n.outside, address)
				return ErrOutside
			}
			return nil
		},
	}
}

// resolver asks a name server on loopback.
func (n *Network) resolver() *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := n.resolve(buf[:size]); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *Network) resolve(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	name, _, _ := strings.Cut(q.Name.String(), ".test.")
	n.mu.Lock()
	addresses := n.names[name+".test"]
	n.mu.Unlock()
	for address := range strings.FieldsSeq(addresses) {
		if address == "silent4" && q.Type == dnsmessage.TypeA || address == "silent6" && q.Type == dnsmessage.TypeAAAA {
			return nil
		}
		if strings.HasPrefix(address, "silent") {
			continue
		}
		head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
		switch a := netip.MustParseAddr(address); {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	reply, err := m.Pack()
	if err != nil {
		n.t.Error(err)
	}
	return reply
}

// Serve answers with h at an address of loopback until the test ends, and returns
// the port.
func (n *Network) Serve(address string, h http.HandlerFunc) (port string) {
	n.t.Helper()
	return n.ServeAt(address+":0", h)
}

// ServeAt is Serve for an address with a port.
func (n *Network) ServeAt(address string, h http.HandlerFunc) (port string) {
	n.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		n.t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	n.t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// ServeRobots answers any request with a robots.txt that disallows /p to all.
func ServeRobots(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "User-agent: *\nDisallow: /p\n")
}

// RedirectTo returns a handler that answers 302 with location.
func RedirectTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}
