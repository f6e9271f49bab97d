package process

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// server is a program that listens and never accepts, or accepts and holds what it
// accepted. It prints its port and its process id.
const server = `
import os, socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind((os.environ.get("AT", "127.0.0.1"), int(sys.argv[1]))); s.listen()
print(s.getsockname()[1], os.getpid(), flush=True)
held = []
while True:
    if sys.argv[2] == "accept": held.append(s.accept())
    else: sys.stdin.read(1)
`

// serve starts a server through a shell command in which $SERVER is the server, and
// returns its port and the process id of the shell.
func serve(t *testing.T, shell string, port int, what string) (at netip.AddrPort, root, pid int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", shell)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SERVER=exec /usr/bin/env python3 -c '%s' %d %s", server, port, what))
	testkit.NotOrphaned(cmd)
	stdin, _ := cmd.StdinPipe()
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.OK(t, err)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	n, _ := fmt.Sscan(line, &port, &pid)
	must.Need(t, err == nil && n == 2, "the server printed %q, %v", line, err)
	t.Cleanup(func() {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
		stdin.Close()
		_ = cmd.Wait()
	})
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), cmd.Process.Pid, pid
}

// child runs the server as a child of the shell.
const child = `sh -c "$SERVER"; :`

// A service is found under each name of its address as long as it listens, and only by
// the run that it belongs to.
func TestAServiceBelongsToItsRunWhileItListens(t *testing.T) {
	at, root, pid := serve(t, child, 0, "accept")
	_, other, _ := serve(t, child, 0, "accept")
	g := NewGroup(root)
	port := fmt.Sprint(":", at.Port())
	for _, host := range []string{"127.0.0.1", "localhost", "LOCALHOST.", "driver.localhost"} {
		got, ok := g.Service(host + port)
		must.True(t, ok && got == at, "at %s: %v, %v", host, got, ok)
	}
	for _, host := range []string{"site.test", "192.0.2.1", "0.0.0.0", "127.0.0.2", "[::1]", "localhost.test", ""} {
		_, ok := g.Service(host + port)
		must.True(t, !ok, "%q is taken for the service", host)
	}
	_, ok := NewGroup(other).Service("localhost" + port)
	must.True(t, !ok, "it is a service of another run as well")
	_, ok = NewGroup(pid).Service("localhost" + port)
	must.True(t, !ok, "the process from which a run is counted is taken for a part of it")
	_, ok = (*Group)(nil).Service("localhost" + port)
	must.True(t, !ok, "a run without processes has a service")
	conn := must.Get(g.Dial(t.Context(), "tcp", "localhost"+port))(t)
	conn.Close()
	p, _ := os.FindProcess(pid)
	must.OK(t, p.Kill())
	testkit.Until(t, "the service has ended", func() bool { _, ok := g.Service("localhost" + port); return !ok })
	_, err := g.Dial(t.Context(), "tcp", "localhost"+port)
	must.True(t, err == ErrForeign, "after its end: %v", err)
}

// A service that listens on all IPv4 addresses is reached over IPv4, also under the name
// localhost.
func TestAServiceOnAllIPv4AddressesIsReachedOverIPv4(t *testing.T) {
	at, root, _ := serve(t, "AT=0.0.0.0 "+child, 0, "accept")
	g := NewGroup(root)
	conn := must.Get(g.Dial(t.Context(), "tcp", fmt.Sprint("localhost:", at.Port())))(t)
	conn.Close()
	_, ok := g.Service(fmt.Sprint("[::1]:", at.Port()))
	must.True(t, !ok, "it is found at an address on which it does not listen")
}

// A port that another program has taken between the look and the connection is noticed,
// whether that program has accepted the connection or not.
func TestAPortThatWasTakenOverIsNoticed(t *testing.T) {
	_, root, _ := serve(t, child, 0, "accept")
	for _, what := range []string{"accept", "wait"} {
		taken, _, taker := serve(t, child, 0, what)
		conn := must.Get(net.Dial("tcp", taken.String()))(t)
		defer conn.Close()
		if what == "accept" {
			testkit.Until(t, "the connection is accepted", func() bool {
				return slices.ContainsFunc(TCP(taker), func(s Socket) bool { return s.Remote.String() == conn.LocalAddr().String() && s.Inode != 0 })
			})
		}
		must.True(t, !NewGroup(root).accepts(conn.LocalAddr(), taken),
			"the run is sent to a foreign program that does %s", what)
	}
}

// Where another program listens at the same port, it is not known which one accepts.
func TestASharedPortBelongsToNoService(t *testing.T) {
	at, root, _ := serve(t, child, 0, "wait")
	g := NewGroup(root)
	_, ok := g.Service(at.String())
	must.Need(t, ok, "it is not found while it listens alone")
	serve(t, child, int(at.Port()), "wait")
	_, ok = g.Service(at.String())
	must.True(t, !ok, "it is found although another program listens there, too")
}

// A server whose parent has ended is a part of the run that adopted it.
func TestAServerWithoutAParentIsAdopted(t *testing.T) {
	must.OK(t, AdoptOrphans())
	at, shell, _ := serve(t, `sh -c "$SERVER" <&0 & :`, 0, "accept")
	testkit.Until(t, "the shell has ended", func() bool { return Program(shell) == "" })
	_, ok := NewGroup(os.Getpid()).Service(at.String())
	must.True(t, ok, "it has left the run")
}

// What this program itself listens on is no service of a run that it started: it is heed.
func TestTheProgramItselfIsNoService(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	for _, root := range []int{os.Getpid(), os.Getppid()} {
		_, ok := NewGroup(root).Service(l.Addr().String())
		must.True(t, !ok, "it is taken for a service of the run")
	}
}

func FuzzSockets(f *testing.F) {
	f.Add(table(os.Getpid(), "tcp"))
	f.Add("  0: 0100007F:1F90 00000000:0000 0A 0 0 0 0 0 12345\n")
	f.Add(strings.Repeat(":", 99) + " x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range sockets(text) {
			must.True(t, !s.Local.Addr().Is4In6() && !s.Remote.Addr().Is4In6(), "%v is a mapped address", s)
		}
	})
}
