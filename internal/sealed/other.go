//go:build !linux

package sealed

import (
	"os"
	"syscall"
)

// IsHelper returns false: there are no sealed runs.
func IsHelper() bool { return false }

// Helper is never called.
func Helper() int { return 2 }

// Run is never made.
type Run struct {
	Process *os.Process
	Files   []*os.File
}

// Launch returns ErrUnsupported.
func Launch(Options) (*Run, error) { return nil, ErrUnsupported }

// HandedOver does nothing.
func (*Run) HandedOver() {}

// Exec returns ErrUnsupported.
func (*Run) Exec(Command) error { return ErrUnsupported }

// Wait returns ErrUnsupported.
func (*Run) Wait() (syscall.WaitStatus, error) {
	var none syscall.WaitStatus
	return none, ErrUnsupported
}

// Blocked returns nothing.
func (*Run) Blocked() []Blocked { return nil }

// Close does nothing.
func (*Run) Close() {}

// Probe returns ErrUnsupported.
func Probe() error { return ErrUnsupported }

// NewNetwork returns ErrUnsupported.
func NewNetwork([]*os.File) (*Network, error) { return nil, ErrUnsupported }

// InSeal returns false.
func InSeal(int, []*Network) bool { return false }
