package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// patience is how long the start or the end of a process may take, and any answer: a
// goproxy as shipped signs a certificate with RSA for each connection.
const patience = 60 * time.Second

// process is a running program.
type process struct {
	cmd    *exec.Cmd
	output string // the file with its stdout and stderr
	ended  chan struct{}
}

// start starts a program whose output goes to a file. It is stopped with SIGTERM by
// stop, or when the context of cmd ends.
func start(cmd *exec.Cmd, output string) (*process, error) {
	file, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	notOrphaned(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, output: output, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		cmd.Wait()
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop ends the process, with SIGKILL if it ignores SIGTERM.
func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// accepting waits until the process accepts connections at addr.
func (p *process) accepting(addr string) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("%s ended instead of listening", p.cmd.Path)
		case <-late:
			return fmt.Errorf("%s does not listen on %s", p.cmd.Path, addr)
		}
	}
}

// said returns the end of what the process printed.
func (p *process) said() string {
	text, _ := os.ReadFile(p.output) // an unreadable output is an empty one
	return string(text[max(0, len(text)-2048):])
}

// freeAddr returns an address that the case's clients reach, whose port is free now.
func freeAddr(w workload) (string, error) {
	host := "127.0.0.1"
	if w.remote {
		host = netHost
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// program returns the path of a program. Debian keeps servers out of the PATH of
// ordinary users.
func program(name string) string {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "/usr/sbin/" + name
	}
	return path
}
