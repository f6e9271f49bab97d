//go:build unix

package run

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// detach makes the command independent of this terminal and its signals.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// passedOn lists the signals that a run forwards to its command.
var passedOn = []os.Signal{
	unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM,
}

// fromKeyboard reports whether the terminal has sent the signal to the command too: it
// sends SIGINT and SIGQUIT to its foreground process group, which the command is in.
func fromKeyboard(s os.Signal) bool {
	if s != unix.SIGINT && s != unix.SIGQUIT {
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false // no terminal
	}
	defer tty.Close()
	front, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && front == unix.Getpgrp()
}
