package main

import (
	"os/exec"
	"syscall"
)

// notOrphaned makes the system end the child when this process dies.
func notOrphaned(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
}
