package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// The addresses of a network, of the range that RFC 2544 reserves for benchmarks.
const (
	netRange  = "198.18.7.0/30"
	netHost   = "198.18.7.1" // where the contenders listen
	netClient = "198.18.7.2"
)

// network is a network namespace with a load generator in it: for the contenders its
// clients are not on the same host. It needs root, and the program ip (iproute2).
type network struct {
	name      string
	generator *generator
}

// startNetwork makes the namespace, joins it to this one by a pair of virtual
// interfaces, and starts the load generator binary in it.
func startNetwork(ctx context.Context, binary string) (n *network, err error) {
	n = &network{name: "heed-bench-" + strconv.Itoa(os.Getpid())}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("clients of another host need root and the package iproute2; leave them out of --cases: %w", err), n.stop())
		}
	}()
	here := "hb" + strconv.Itoa(os.Getpid()) // at most 15 octets
	for _, step := range []string{
		"netns add " + n.name,
		"link add " + here + " type veth peer name eth0 netns " + n.name,
		"addr add " + netHost + "/30 dev " + here,
		"link set " + here + " up",
		"-n " + n.name + " addr add " + netClient + "/30 dev eth0",
		"-n " + n.name + " link set eth0 up",
		"-n " + n.name + " link set lo up",
	} {
		if err := ip(step); err != nil {
			return n, err
		}
	}
	n.generator, err = startGenerator(exec.CommandContext(ctx, program("ip"), "netns", "exec", n.name, binary))
	return n, err
}

// stop ends the load generator and removes the namespace, with its interfaces.
func (n *network) stop() (err error) {
	if n.generator != nil {
		err = n.generator.stop()
	}
	return errors.Join(err, ip("netns del "+n.name))
}

// ip runs the program ip.
func ip(arguments string) error {
	if out, err := exec.Command(program("ip"), strings.Fields(arguments)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w\n%s", arguments, err, out)
	}
	return nil
}
