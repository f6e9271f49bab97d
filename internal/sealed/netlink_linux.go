package sealed

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// netlinkTimeout is for one answer of the kernel.
var netlinkTimeout = unix.NsecToTimeval(int64(2 * time.Second))

// ask sends a request over a netlink socket, which may be in another network namespace, and
// calls each with the body of every message of the answer. The flags are unix.NLM_F_DUMP,
// or unix.NLM_F_ACK and others for a request whose answer is an error or nothing.
func ask(fd int, kind, flags uint16, body []byte, each func([]byte)) error {
	message := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(body))
	binary.NativeEndian.PutUint32(message, uint32(unix.NLMSG_HDRLEN+len(body)))
	binary.NativeEndian.PutUint16(message[4:], kind)
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST|flags)
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

// inner returns the value of an attribute in b: that of the first kind, in it that of the second
// kind, and so on; nil when one of them is missing.
func inner(b []byte, kinds ...uint16) []byte {
	for _, wanted := range kinds {
		outer := b
		b = nil
		attributes(outer, func(kind uint16, value []byte) {
			if kind == wanted {
				b = value
			}
		})
	}
	return b
}

// attribute appends a netlink attribute.
func attribute(b []byte, kind uint16, value []byte) []byte {
	size := unix.NLA_HDRLEN + len(value)
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, align4(size)-size)...)
}

func openNetlink(protocol int) (int, error) {
	return unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
}
