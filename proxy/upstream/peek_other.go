//go:build !unix

package upstream

import "syscall"

// pending reports false: what has come is found when it is read.
func pending(syscall.RawConn) bool { return false }
