//go:build !unix

package command

import (
	"errors"
	"os"
	"os/exec"
)

// errLock is the answer where files cannot be locked as on Unix.
var errLock = errors.New("this system has no file locks that heed knows")

func tryLock(*os.File) error { return errLock }

func waitLock(*os.File) error { return errLock }

// detach leaves the command as it is.
func detach(*exec.Cmd) {}

// passedOn are the signals that a run sends on to its command.
var passedOn = []os.Signal{os.Interrupt}

// fromKeyboard is true: here, an interrupt reaches the whole console.
func fromKeyboard(os.Signal) bool { return true }

// signalStatus is the exit status of a process that was told to end at once.
func signalStatus(os.Signal) int { return exitNo }

// exitStatus is the command's own.
func exitStatus(state *os.ProcessState) int { return state.ExitCode() }

// openFiles is not known here.
func openFiles() int { return 0 }

// hasTerminal reports whether this process belongs to a terminal that hangs up.
func hasTerminal() bool { return false }
