package sealed

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// netlinkTimeout is for one answer of the kernel.
var netlinkTimeout = unix.NsecToTimeval(int64(2 * time.Second))

// dump sends a request over a netlink socket, which may be in another network namespace,
// and calls each with the body of every message of the answer.
func dump(f *os.File, kind uint16, body []byte, each func([]byte)) error {
	fd := int(f.Fd())
	message := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(body))
	binary.NativeEndian.PutUint32(message, uint32(unix.NLMSG_HDRLEN+len(body)))
	binary.NativeEndian.PutUint16(message[4:], kind)
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	message = append(message, body...)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &netlinkTimeout)
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		size, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return err
		}
		done, err := messages(buf[:size], each)
		if done || err != nil {
			return err
		}
	}
}

var errNetlink = errors.New("an answer of the kernel cannot be parsed")

// messages calls each with the body of every netlink message in b. done is true when the
// last message of a dump is among them.
func messages(b []byte, each func([]byte)) (done bool, err error) {
	for len(b) >= unix.NLMSG_HDRLEN {
		size, kind := int(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint16(b[4:])
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return false, errNetlink
		}
		body := b[unix.NLMSG_HDRLEN:size]
		switch {
		case kind == unix.NLMSG_DONE:
			return true, nil
		case kind == unix.NLMSG_ERROR && len(body) >= 4:
			if errno := -int32(binary.NativeEndian.Uint32(body)); errno != 0 {
				return true, unix.Errno(errno)
			}
			return true, nil
		default:
			each(body)
		}
		b = b[min(align4(size), len(b)):]
	}
	return false, nil
}

func align4(n int) int { return (n + 3) &^ 3 }

// typeMask removes the flags from the type of a netlink attribute.
const typeMask = 0x3fff

// attributes calls each with every netlink attribute in b.
func attributes(b []byte, each func(kind uint16, value []byte)) {
	for len(b) >= unix.NLA_HDRLEN {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < unix.NLA_HDRLEN || size > len(b) {
			return
		}
		each(kind&typeMask, b[unix.NLA_HDRLEN:size])
		b = b[min(align4(size), len(b)):]
	}
}

// attribute appends a netlink attribute with a text.
func attribute(b []byte, kind uint16, text string) []byte {
	size := unix.NLA_HDRLEN + len(text) + 1
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, text...)
	return append(b, make([]byte, align4(size)-size+1)...)
}

// readBlocked returns the packets that the filter has refused, over a netfilter socket of
// the namespace.
func readBlocked(nft *os.File) ([]Blocked, error) {
	body := []byte{byte(nftables.TableFamilyINet), unix.NFNETLINK_V0, 0, 0}
	body = attribute(body, unix.NFTA_SET_ELEM_LIST_TABLE, tableName)
	body = attribute(body, unix.NFTA_SET_ELEM_LIST_SET, blockedName)
	var all []Blocked
	err := dump(nft, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETSETELEM, body, func(b []byte) {
		all = append(all, parseBlocked(b)...)
	})
	return all, err
}

// parseBlocked returns the elements in a message of the set.
func parseBlocked(b []byte) (all []Blocked) {
	if len(b) < 4 {
		return nil
	}
	attributes(b[4:], func(kind uint16, list []byte) {
		if kind != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			return
		}
		attributes(list, func(_ uint16, element []byte) {
			var key []byte
			var count uint64
			attributes(element, func(kind uint16, value []byte) {
				switch kind {
				case unix.NFTA_SET_ELEM_KEY:
					attributes(value, func(_ uint16, v []byte) { key = v })
				case unix.NFTA_SET_ELEM_EXPR:
					count = parseCounter(value)
				}
			})
			if len(key) >= 6 {
				all = append(all, Blocked{fmt.Sprintf("%s/%d", protocolName(key[0]), binary.BigEndian.Uint16(key[4:])), count})
			}
		})
	})
	return all
}

// parseCounter returns the packets of a counter expression.
func parseCounter(b []byte) (packets uint64) {
	attributes(b, func(kind uint16, data []byte) {
		if kind != unix.NFTA_EXPR_DATA {
			return
		}
		attributes(data, func(kind uint16, v []byte) {
			if kind == unix.NFTA_COUNTER_PACKETS && len(v) == 8 {
				packets = binary.BigEndian.Uint64(v)
			}
		})
	})
	return packets
}

func protocolName(p byte) string {
	switch p {
	case unix.IPPROTO_UDP:
		return "udp"
	case unix.IPPROTO_SCTP:
		return "sctp"
	case unix.IPPROTO_DCCP:
		return "dccp"
	case unix.IPPROTO_UDPLITE:
		return "udplite"
	}
	return fmt.Sprintf("protocol %d", p)
}

// mergeBlocked returns packets and sockets in one list, most first.
func mergeBlocked(packets []Blocked, sockets map[string]uint64) []Blocked {
	for path, n := range sockets {
		packets = append(packets, Blocked{"unix " + path, n})
	}
	slices.SortFunc(packets, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What))
	})
	return packets
}
