package testkit

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// namespaceMark is set in the environment of tests that run in a namespace.
const namespaceMark = "HEED_TEST_NAMESPACE"

// maxReachable is the number of hosts that Reachable can name.
const maxReachable = 200

// InNamespace has the tests of this program run in a network namespace, in which Reachable
// makes sites that programs reach without heed, by their names and usual ports. TestMain
// calls it first.
func InNamespace() {
	if os.Getenv(namespaceMark) == "" {
		args := []string{"unshare", "--net", "--mount"}
		if os.Getuid() != 0 {
			args = append(args, "--user", "--map-root-user")
		}
		path, err := exec.LookPath("unshare")
		if err == nil {
			err = syscall.Exec(path, append(args, os.Args...), append(os.Environ(), namespaceMark+"=1"))
		}
		fmt.Fprintf(os.Stderr, "the tests need a network namespace: %v; they need root, or a kernel that gives them to users\n", err)
		os.Exit(1)
	}
	var addresses, hosts strings.Builder
	for i := range maxReachable {
		fmt.Fprintf(&addresses, "address add 203.0.113.%d/32 dev lo\n", i+1)
		fmt.Fprintf(&hosts, "203.0.113.%d %s\n", i+1, reachable(i))
	}
	script := `set -e; PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; printf %s "$1" | ip -batch -; file=$(mktemp); printf '127.0.0.1 localhost\n::1 localhost\n%s' "$2" >"$file"; chmod 644 "$file"; mount --bind "$file" /etc/hosts; rm "$file"`
	if out, err := exec.Command("sh", "-c", script, "sh", addresses.String(), hosts.String()).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the network namespace of the tests: %v\n%s", err, out)
		os.Exit(1)
	}
}

// reachable returns the name of a host.
func reachable(i int) string { return fmt.Sprintf("p%d.test", i) }

// Reachable makes the site of o with the name of host i reachable at that name without heed,
// and ReachableName returns the name. The tests are InNamespace.
func (o *Origin) Reachable(i int) {
	for port, scheme := range map[string]string{"80": "http", "443": "https"} {
		l, err := net.Listen("tcp", fmt.Sprintf("203.0.113.%d:%s", i+1, port))
		if err != nil {
			o.t.Fatal(err)
		}
		o.t.Cleanup(func() { l.Close() })
		go forward(l, o.Addr(reachable(i), scheme))
	}
}

// ReachableName returns the name of host i of Reachable, below maxReachable.
func ReachableName(t testing.TB, i int) string {
	if i >= maxReachable {
		t.Fatalf("there are %d hosts", maxReachable)
	}
	return reachable(i)
}

// forward passes what arrives at l on to address.
func forward(l net.Listener, address string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer to.Close()
			go func() {
				_, _ = io.Copy(to, from) // the other direction ends both
				_ = to.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(from, to)
		}()
	}
}
