package sealed

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"

	"golang.org/x/sys/unix"
)

// message returns a netlink message.
func message(kind uint16, body []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, make([]byte, unix.NLMSG_HDRLEN-6)...)
	b = append(b, body...)
	return append(b, make([]byte, align4(len(b))-len(b))...)
}

// nested returns a netlink attribute.
func nested(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.NLA_HDRLEN+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, align4(len(b))-len(b))...)
}

// element returns the attribute of an element of the set of refused packets.
func element(protocol byte, port uint16, packets uint64) []byte {
	key := append([]byte{protocol, 0, 0, 0}, byte(port>>8), byte(port), 0, 0)
	counter := nested(unix.NFTA_EXPR_DATA|unix.NLA_F_NESTED, nested(unix.NFTA_COUNTER_PACKETS, binary.BigEndian.AppendUint64(nil, packets)))
	return nested(1|unix.NLA_F_NESTED, append(
		nested(unix.NFTA_SET_ELEM_KEY|unix.NLA_F_NESTED, nested(1, key)),
		nested(unix.NFTA_SET_ELEM_EXPR|unix.NLA_F_NESTED, counter)...))
}

func TestRefusedPacketsAreReadFromAnswersOfTheKernel(t *testing.T) {
	list := append(element(unix.IPPROTO_UDP, 443, 12), element(unix.IPPROTO_SCTP, 80, 1)...)
	list = append(list, element(99, 0, 3)...)
	body := append([]byte{1, 0, 0, 0}, nested(unix.NFTA_SET_ELEM_LIST_ELEMENTS|unix.NLA_F_NESTED, list)...)
	var all []Blocked
	done, err := messages(append(message(7, body), message(unix.NLMSG_DONE, nil)...), func(b []byte) { all = append(all, parseBlocked(b)...) })
	all = mergeBlocked(all, map[string]uint64{"/run/docker.sock": 12})
	if got := fmt.Sprint(all); !done || err != nil || got != "[{udp/443 12} {unix /run/docker.sock 12} {protocol 99/0 3} {sctp/80 1}]" {
		t.Errorf("%v, %v, %s", done, err, got)
	}
	refused := binary.NativeEndian.AppendUint32(nil, ^uint32(unix.EPERM)+1)
	done, err = messages(message(unix.NLMSG_ERROR, refused), nil)
	must.True(t, done && err == unix.EPERM, "an error: %v, %v", done, err)
	_, err = messages(message(7, body)[:20], nil)
	must.True(t, err == errNetlink, "half a message: %v", err)
}

// Netlink messages are the kernel's, and are read as if they were not.
func FuzzNetlink(f *testing.F) {
	body := append([]byte{1, 0, 0, 0}, nested(unix.NFTA_SET_ELEM_LIST_ELEMENTS|unix.NLA_F_NESTED, element(17, 443, 2))...)
	f.Add(append(message(7, body), message(unix.NLMSG_DONE, nil)...))
	f.Add(message(unix.NLMSG_ERROR, []byte{0, 0}))
	f.Add(message(20, append(make([]byte, diagHead), nested(diagVFS, []byte("12345678"))...)))
	f.Fuzz(func(t *testing.T, text []byte) {
		bodies := 0
		_, _ = messages(text, func(b []byte) {
			bodies++
			parseBlocked(b)
			s, ok := parseBound(b)
			must.True(t, !ok || !strings.Contains(s.name, "\x00"), "%q", s.name)
		})
		must.True(t, bodies*unix.NLMSG_HDRLEN <= len(text), "%d messages in %d octets", bodies, len(text))
	})
}

// The inode alone does not make a file that of a socket: a run can mount a file system of its
// own and choose inodes and names there.
func TestASocketInsideIsNotTakenForAnotherFile(t *testing.T) {
	s := boundSocket{ino: 7, dev: 8<<20 | 1}
	for what, c := range map[string]struct {
		dev   uint32
		inode uint64
		want  bool
	}{
		"the file":                             {8<<20 | 1, 7, true},
		"another inode with the same low half": {8<<20 | 1, 7 + 1<<32, true}, // its name decides
		"another device":                       {8<<20 | 2, 7, false},
		"another device, the same low half":    {8<<20 | 2, 7 + 1<<32, false},
		"another inode":                        {8<<20 | 1, 8, false},
	} {
		must.Equal(t, s.mayBeAt(c.dev, c.inode), c.want, what)
	}
	file := must.Get(os.Open(t.TempDir()))(t)
	defer file.Close()
	other := &unix.Stat_t{Dev: unix.Mkdev(9, 9)}
	dev := fileSystem(os.Getpid(), int(file.Fd()), other)
	must.True(t, dev != 9<<20|9, "the mount of a directory is not found")
	must.Equal(t, fileSystem(os.Getpid(), 1<<20, other), 9<<20|9, "a file that is not open is on")
	body := append(make([]byte, diagHead), nested(diagName, []byte("/tmp/s\x00"))...)
	body = append(body, nested(diagVFS, binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, 7), s.dev))...)
	got, ok := parseBound(body)
	must.True(t, ok && got == (boundSocket{7, s.dev, "/tmp/s"}), "%+v, %v", got, ok)
	for _, b := range [][]byte{nil, make([]byte, diagHead), append(make([]byte, diagHead), nested(diagName, []byte("\x00abstract"))...)} {
		got, ok := parseBound(b)
		must.True(t, !ok, "%x: %+v", b, got)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a", "b"} {
		must.OK(t, os.WriteFile(name, nil, 0o600))
	}
	must.OK(t, os.Symlink("a", "link"))
	var st unix.Stat_t
	must.OK(t, unix.Stat("a", &st))
	for name, want := range map[string]bool{"a": true, filepath.Join(dir, "a"): true, "link": true, "b": false, "none": false, "": false} {
		must.Equal(t, isSame(os.Getpid(), name, &st), want, "%q", name)
	}
}

// The guard counts the sockets that it refuses, and a bounded number of them separately.
func TestRefusedSocketsAreCounted(t *testing.T) {
	g := &guard{refused: map[string]uint64{}}
	for i := range maxRefused + 5 {
		g.count(fmt.Sprint(i))
	}
	g.count("0")
	got := g.refusals()
	must.True(t, len(got) == maxRefused+1 && got["0"] == 2 && got["(others)"] == 5,
		"%d paths, %d, %d", len(got), got["0"], got["(others)"])
}

func TestOnlyPermittedPathsAreReached(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s.sock")
	l := must.Get(net.Listen("unix", socket))(t)
	defer l.Close()
	link := filepath.Join(dir, "link.sock")
	must.OK(t, os.Symlink(socket, link))
	for allowed, want := range map[string]bool{socket: true, link: true, dir: false, "": false, filepath.Join(dir, "other"): false} {
		var st unix.Stat_t
		must.OK(t, unix.Stat(link, &st))
		g := &guard{allowed: []string{allowed}}
		must.Equal(t, g.isAllowed(&st), want, "%q", allowed)
	}
}

// A notification whose address cannot be read, or is too long, connects nothing.
func TestConnectChecksWhatItIsGiven(t *testing.T) {
	g := &guard{refused: map[string]uint64{}}
	n := &notification{pid: uint32(os.Getpid())}
	for size, want := range map[uint64]error{^uint64(0): unix.EINVAL, maxAddress + 1: unix.EINVAL, 16: unix.EFAULT} {
		n.args = [6]uint64{0, 1, size}
		must.Equal(t, g.connect(0, n), want, "%d octets", size)
	}
	n.args = [6]uint64{uint64(1 << 20), 0, 0}
	err := g.connect(0, n)
	must.True(t, err == unix.EBADF, "no descriptor: %v", err)
	_, err = statusNumber(os.Getpid(), "Nothing", 0)
	must.True(t, err == unix.ESRCH, "%v", err)
	uid, gid, err := idsOf(os.Getpid())
	must.True(t, err == nil && int(uid) == os.Geteuid() && int(gid) == os.Getegid(), "%d %d %v", uid, gid, err)
}
