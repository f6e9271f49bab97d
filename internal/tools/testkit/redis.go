package testkit

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Redis is a real redis-server, or a Sentinel, in a folder of its own.
type Redis struct {
	Addr string // "127.0.0.1:PORT"

	t      testing.TB
	dir    string
	args   []string
	cmd    *exec.Cmd
	exited chan struct{}
	stdout *output
}

// NewRedis starts a redis-server that serves until the test ends; args are
// further settings, as on its command line ("--cluster-enabled", "yes"). It
// saves nothing to disk unless they say so.
func NewRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	r := &Redis{t: t, dir: t.TempDir(), args: args}
	t.Cleanup(r.Kill)
	for range 5 { // between our look and its start, others may take the port
		r.Addr = FreeAddr(t)
		if r.start() {
			return r
		}
	}
	t.Fatalf("redis-server did not start:\n%s", r.stdout.text())
	return nil
}

// NewSentinel starts a Sentinel that watches master under the name "heeds" and
// takes another server after half a second without it.
func NewSentinel(t testing.TB, master *Redis) *Redis {
	t.Helper()
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("sentinel monitor heeds %s %s 1\nsentinel down-after-milliseconds heeds 500\nsentinel failover-timeout heeds 3000\n", host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return NewRedis(t, config, "--sentinel")
}

// NewRedisCluster starts a Cluster of three masters and returns them. Each serves its keys
// when another does not.
func NewRedisCluster(t testing.TB) []*Redis {
	t.Helper()
	var nodes []*Redis
	create := []string{"--cluster", "create"}
	for range 3 {
		n := newClusterNode(t)
		nodes = append(nodes, n)
		create = append(create, n.Addr)
	}
	nodes[0].CLI(append(create, "--cluster-yes")...)
	for _, n := range nodes {
		n.Await("the Cluster is whole", func() bool { return strings.Contains(n.CLI("cluster", "info"), "cluster_state:ok") })
	}
	return nodes
}

// newClusterNode starts a node. A replica tries to take over for as long as it takes, and not
// only for the half minute after it has lost its master.
func newClusterNode(t testing.TB) *Redis {
	t.Helper()
	bus := FreeAddr(t)
	return NewRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no",
		"--cluster-replica-validity-factor", "0",
		"--cluster-port", bus[strings.LastIndexByte(bus, ':')+1:])
}

// AddReplica starts a replica of a master of a Cluster.
func (r *Redis) AddReplica() *Redis {
	r.t.Helper()
	replica := newClusterNode(r.t)
	r.CLI("--cluster", "add-node", replica.Addr, r.Addr, "--cluster-slave", "--cluster-master-id", r.CLI("cluster", "myid"))
	replica.Await("the replica follows", func() bool {
		return strings.Contains(replica.CLI("info", "replication"), "master_link_status:up")
	})
	return replica
}

// Has reports whether a key belongs to this node of a Cluster, which must answer.
func (r *Redis) Has(key string) bool {
	_, err := r.cli("exists", key)
	return err == nil
}

// start runs the server and reports whether it serves.
func (r *Redis) start() bool {
	r.t.Helper()
	_, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		r.t.Fatal(err)
	}
	args := r.args
	if len(args) == 0 || strings.HasPrefix(args[0], "--") {
		args = append([]string{"--save", "", "--appendonly", "no"}, args...)
	}
	args = append(args, "--port", port, "--bind", "127.0.0.1", "--dir", r.dir)
	r.cmd, r.exited, r.stdout = exec.Command(Program(r.t, "redis-server"), args...), make(chan struct{}), newOutput()
	r.cmd.Stdout, r.cmd.Stderr = r.stdout, r.stdout
	NotOrphaned(r.cmd)
	if err := r.cmd.Start(); err != nil {
		r.t.Fatalf("starting redis-server: %v", err)
	}
	go func(cmd *exec.Cmd, exited chan struct{}) {
		defer close(exited)
		cmd.Wait()
	}(r.cmd, r.exited)
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		select {
		case <-r.exited:
			return false
		case <-time.After(10 * time.Millisecond):
		}
		// Until it ends, one that found its port taken is mistaken for the other server.
		if out, err := r.cli("info", "server"); err == nil && strings.Contains(out, fmt.Sprintf("process_id:%d\r\n", r.cmd.Process.Pid)) {
			return true
		}
	}
	return false
}

// Kill ends the server as a fault of the machine would. It may have ended
// before.
func (r *Redis) Kill() {
	if r.cmd != nil {
		r.cmd.Process.Kill()
		<-r.exited
	}
}

// Hang has the server answer nothing until Resume.
func (r *Redis) Hang() { r.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends that.
func (r *Redis) Resume() { r.cmd.Process.Signal(syscall.SIGCONT) }

// Restart starts a killed server again, at the same address.
func (r *Redis) Restart() {
	r.t.Helper()
	if !r.start() {
		r.t.Fatalf("redis-server did not start again:\n%s", r.stdout.text())
	}
}

// CLI runs redis-cli with the server and returns what it prints; an error of
// the server fails the test.
func (r *Redis) CLI(args ...string) string {
	r.t.Helper()
	out, err := r.cli(args...)
	if err != nil {
		r.t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (r *Redis) cli(args ...string) (string, error) {
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return "", err
	}
	out, err := exec.Command(Program(r.t, "redis-cli"), append([]string{"-e", "-h", host, "-p", port}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Count is a number that the server answers with.
func (r *Redis) Count(args ...string) int {
	r.t.Helper()
	n, err := strconv.Atoi(r.CLI(args...))
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// Await waits until done.
func (r *Redis) Await(what string, done func() bool) {
	r.t.Helper()
	Until(r.t, what, done)
}
