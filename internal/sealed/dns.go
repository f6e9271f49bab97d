package sealed

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// nameTTL is how long resolvers may keep an answer, in seconds.
const nameTTL = 1

// answer returns the response to a query; nil for what is not one.
func (n *Names) answer(query []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil || head.Response {
		return nil
	}
	reply := dnsmessage.Header{ID: head.ID, Response: true, OpCode: head.OpCode, RecursionDesired: head.RecursionDesired, RecursionAvailable: true}
	q, err := p.Question()
	if err != nil || head.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeFormatError
		if err == nil {
			reply.RCode = dnsmessage.RCodeNotImplemented
		}
		return build(reply, nil, nil)
	}
	bodies, code := n.resolve(q)
	reply.RCode = code
	return build(reply, &q, bodies)
}

// resolve returns the records of a question. A name has an A and an AAAA record, and
// nothing else.
func (n *Names) resolve(q dnsmessage.Question) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
	name := canonical(q.Name.String())
	isAddress := q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeAAAA
	switch {
	case q.Class != dnsmessage.ClassINET:
		return nil, dnsmessage.RCodeRefused
	case name == "" || !isAddress:
		return nil, dnsmessage.RCodeSuccess
	case strings.HasSuffix("."+name, ".invalid"), !isHostName(name): // RFC 6761 §6.4
		return nil, dnsmessage.RCodeNameError
	}
	v4, v6 := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	if !strings.HasSuffix("."+name, ".localhost") { // RFC 6761 §6.3
		var ok bool
		if v4, v6, ok = n.Addresses(name); !ok {
			return nil, dnsmessage.RCodeServerFailure
		}
	}
	if q.Type == dnsmessage.TypeA {
		return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: v4.As4()}}, dnsmessage.RCodeSuccess
	}
	return []dnsmessage.ResourceBody{&dnsmessage.AAAAResource{AAAA: v6.As16()}}, dnsmessage.RCodeSuccess
}

// isHostName reports whether a name may be one of a host: letters, digits, hyphens and
// underscores, which some have.
func isHostName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// build returns a message; q is nil when the question could not be read.
func build(head dnsmessage.Header, q *dnsmessage.Question, bodies []dnsmessage.ResourceBody) []byte {
	m := dnsmessage.Message{Header: head}
	if q != nil {
		m.Questions = []dnsmessage.Question{*q}
		for _, b := range bodies {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: nameTTL}, Body: b})
		}
	}
	text, err := m.Pack()
	if err != nil {
		return nil
	}
	return text
}

// maxQuery is the greatest length of a query over UDP, in bytes.
const maxQuery = 4096

// serveDNS answers the queries on a UDP socket until it is closed, each from the address that
// it was sent to: the control message of a query (IP_PKTINFO, IPV6_PKTINFO) is also that of its
// answer. With another source, clients time out.
func (n *Names) serveDNS(c net.PacketConn) {
	p, ok := c.(*net.UDPConn)
	if !ok {
		return
	}
	query, control := make([]byte, maxQuery), make([]byte, 128)
	for {
		size, head, _, from, err := p.ReadMsgUDP(query, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if text := n.answer(query[:size]); text != nil {
			_, _, _ = p.WriteMsgUDP(text, control[:head], from)
		}
	}
}

// Limits of queries over TCP.
const (
	maxTCPClients = 64
	tcpIdle       = 10 * time.Second
)

// serveDNSTCP answers the queries on the connections of l until it is closed.
func (n *Names) serveDNSTCP(l net.Listener) {
	free := make(chan struct{}, maxTCPClients)
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // such as for descriptors
			continue
		}
		free <- struct{}{}
		go func() {
			defer func() { c.Close(); <-free }()
			n.serveDNSConn(c)
		}()
	}
}

// serveDNSConn answers the queries of one connection (RFC 7766).
func (n *Names) serveDNSConn(c net.Conn) {
	for {
		_ = c.SetDeadline(time.Now().Add(tcpIdle)) // sockets support deadlines
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		text := n.answer(query)
		if text == nil {
			return
		}
		binary.BigEndian.PutUint16(size[:], uint16(len(text)))
		if _, err := c.Write(append(size[:], text...)); err != nil {
			return
		}
	}
}
