//go:build !unix

package run

import (
	"os"
	"os/exec"
)

// detach does nothing.
func detach(*exec.Cmd) {}

// passedOn lists the signals that a run forwards to its command.
var passedOn = []os.Signal{os.Interrupt}

// fromKeyboard returns true: an interrupt is sent to all processes of the console.
func fromKeyboard(os.Signal) bool { return true }
