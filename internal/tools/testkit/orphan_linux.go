package testkit

import (
	"os/exec"
	"syscall"
)

// NotOrphaned has the system end the child when the test process dies, so that
// a timed-out test run leaves no server behind.
func NotOrphaned(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
