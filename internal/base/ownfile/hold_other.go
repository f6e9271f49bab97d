//go:build !linux

package ownfile

import (
	"errors"
	"os"
)

// lockShared is Linux's alone: elsewhere a process owns its locks as a whole.
func lockShared(*os.File, bool) error { return errors.ErrUnsupported }
