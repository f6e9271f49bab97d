package sealed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// upLoopback sets the loopback interface up, makes every address local, and gives it one
// of each family (rtnetlink(7)).
func upLoopback() error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	fd, err := openNetlink(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	index := binary.NativeEndian.AppendUint32(nil, uint32(lo.Index))
	up := slices.Concat([]byte{unix.AF_UNSPEC, 0, 0, 0}, index, binary.NativeEndian.AppendUint32(nil, unix.IFF_UP), binary.NativeEndian.AppendUint32(nil, unix.IFF_UP))
	if err := ask(fd, unix.RTM_NEWLINK, unix.NLM_F_ACK, up, nil); err != nil {
		return err
	}
	// There are resolvers that take a machine without an address that is not loopback for one
	// without a network (aria2): the addresses are the first of the networks of names, which
	// no name has.
	for _, f := range []struct {
		family    byte
		all       string
		from, own netip.Addr
	}{
		{unix.AF_INET, "0.0.0.0/0", netip.MustParseAddr("127.0.0.1"), names4.Addr()},
		{unix.AF_INET6, "::/0", netip.IPv6Loopback(), names6.Addr()},
	} {
		bits := byte(f.own.BitLen())
		route := []byte{f.family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
		route = attribute(attribute(route, unix.RTA_PREFSRC, f.from.AsSlice()), unix.RTA_OIF, index)
		address := append([]byte{f.family, bits, unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE}, index...)
		address = attribute(attribute(address, unix.IFA_LOCAL, f.own.AsSlice()), unix.IFA_ADDRESS, f.own.AsSlice())
		for _, add := range []struct {
			kind uint16
			body []byte
			what string
		}{{unix.RTM_NEWROUTE, route, "route " + f.all}, {unix.RTM_NEWADDR, address, "address " + f.own.String()}} {
			err := ask(fd, add.kind, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL, add.body, nil)
			if err != nil && (f.family == unix.AF_INET || !noIPv6(err)) {
				return fmt.Errorf("%s: %w", add.what, err)
			}
		}
	}
	return nil
}

// noIPv6 reports whether an error means that the kernel has no IPv6, or that it is
// disabled.
func noIPv6(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENODEV)
}

// openSockets creates the sockets of a sealed run, in the order in which the helper hands them
// out, and returns the port of the transparent listener.
func openSockets(hostPorts []uint16) (fds []int, port uint16, err error) {
	redirect, err := listenAll(0, option{unix.SOL_IP, unix.IP_TRANSPARENT, 1})
	if err != nil {
		return nil, 0, fmt.Errorf("transparent listener: %w", err)
	}
	at, err := unix.Getsockname(redirect)
	if err != nil {
		return nil, 0, err
	}
	switch at := at.(type) {
	case *unix.SockaddrInet6:
		port = uint16(at.Port)
	case *unix.SockaddrInet4:
		port = uint16(at.Port)
	}
	opened := []func() (int, error){
		func() (int, error) { return listenLoopback(0) },
		func() (int, error) { return listenAll(53) },
		openDNS4,
		openDNS6,
		func() (int, error) { return openNetlink(unix.NETLINK_NETFILTER) },
		func() (int, error) { return openNetlink(unix.NETLINK_SOCK_DIAG) },
	}
	for _, port := range hostPorts {
		opened = append(opened, func() (int, error) { return listenLoopback(port) })
	}
	fds = append(fds, redirect)
	for _, open := range opened {
		fd, err := open()
		if err != nil {
			return nil, 0, err
		}
		fds = append(fds, fd)
	}
	return fds, port, nil
}

// backlog is how many connections wait to be accepted.
const backlog = 4096

// option is an option of a socket, and its value.
type option struct{ level, name, value int }

// bound returns a socket of a kind that is bound to at. A stream's listens.
func bound(kind int, at unix.Sockaddr, options ...option) (int, error) {
	family := unix.AF_INET
	if _, is := at.(*unix.SockaddrInet6); is {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fd, err
	}
	for _, o := range options {
		err = errors.Join(err, unix.SetsockoptInt(fd, o.level, o.name, o.value))
	}
	if err = errors.Join(err, os.NewSyscallError("bind", unix.Bind(fd, at))); err == nil && kind == unix.SOCK_STREAM {
		err = os.NewSyscallError("listen", unix.Listen(fd, backlog))
	}
	return fd, err
}

// listenAll listens at a port of all addresses of both families.
func listenAll(port int, options ...option) (int, error) {
	both := append(options, option{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0})
	fd, err := bound(unix.SOCK_STREAM, &unix.SockaddrInet6{Port: port}, both...)
	if err != nil && noIPv6(err) {
		return bound(unix.SOCK_STREAM, &unix.SockaddrInet4{Port: port}, options...)
	}
	return fd, err
}

// listenLoopback listens at a port of 127.0.0.1.
func listenLoopback(port uint16) (int, error) {
	return bound(unix.SOCK_STREAM, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
}

// openDNS4 opens the socket for queries over IPv4.
func openDNS4() (int, error) {
	return bound(unix.SOCK_DGRAM, &unix.SockaddrInet4{Port: 53}, option{unix.SOL_IP, unix.IP_PKTINFO, 1})
}

// openDNS6 opens the socket for queries over IPv6, or where the kernel has none one that
// receives nothing. Without IPV6_FREEBIND the kernel refuses answers from an address that
// exists through the route alone.
func openDNS6() (int, error) {
	fd, err := bound(unix.SOCK_DGRAM, &unix.SockaddrInet6{Port: 53}, option{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1},
		option{unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1}, option{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1})
	if err != nil && noIPv6(err) {
		return bound(unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	return fd, err
}

// The table and the set of refused packets.
const (
	tableName   = "heed"
	blockedName = "blocked"
	maxBlocked  = 1024 // elements of the set
)

// filterPackets installs the packet filter: TCP to addresses other than loopback goes to
// the transparent listener at port; of the rest only DNS and ICMP leave a process.
func filterPackets(port uint16) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: tableName})
	accept := nftables.ChainPolicyAccept
	pre := c.AddChain(&nftables.Chain{
		Name: "pre", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting,
		Priority: nftables.ChainPriorityMangle, Policy: &accept,
	})
	out := c.AddChain(&nftables.Chain{
		Name: "out", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput,
		Priority: nftables.ChainPriorityFilter, Policy: &accept,
	})
	blocked := &nftables.Set{
		Table: table, Name: blockedName, Dynamic: true, Size: maxBlocked, Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeInetProto, nftables.TypeInetService),
	}
	if err := c.AddSet(blocked, nil); err != nil {
		return err
	}
	add := func(chain *nftables.Chain, exprs ...[]expr.Any) {
		r := &nftables.Rule{Table: table, Chain: chain}
		for _, e := range exprs {
			r.Exprs = append(r.Exprs, e...)
		}
		c.AddRule(r)
	}
	ok := []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	for _, chain := range []*nftables.Chain{pre, out} {
		add(chain, to(unix.NFPROTO_IPV4, 16, 127), ok)
		add(chain, to(unix.NFPROTO_IPV6, 24, net.IPv6loopback...), ok)
	}
	add(pre, protocol(unix.IPPROTO_TCP), portIs(2, 53), ok)
	add(pre, protocol(unix.IPPROTO_TCP), []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.TProxy{Family: 0, TableFamily: byte(nftables.TableFamilyINet), RegPort: 1},
	})
	for _, p := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6} {
		add(out, protocol(p), ok)
	}
	add(out, protocol(unix.IPPROTO_UDP), portIs(2, 53), ok)
	add(out, protocol(unix.IPPROTO_UDP), portIs(0, 53), ok) // heed's answers
	add(out, countIn(blocked))
	add(out, []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}})
	return c.Flush()
}

// to selects the packets of a family to the addresses that begin with start. offset is that of
// the destination in their header.
func to(family byte, offset uint32, start ...byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{family}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(start))},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: start},
	}
}

func protocol(p byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{p}},
	}
}

// portIs matches the port at an offset of the transport header: 0 the source, 2 the
// destination.
func portIs(offset uint32, port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

// countIn counts the packet in a set, by protocol and destination port.
func countIn(s *nftables.Set) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Payload{DestRegister: 9, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Dynset{SrcRegKey: 1, SetName: s.Name, SetID: s.ID, Operation: unix.NFT_DYNSET_OP_UPDATE, Exprs: []expr.Any{&expr.Counter{}}},
	}
}
