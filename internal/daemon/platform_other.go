//go:build !unix

package daemon

// openFiles is not known here.
func openFiles() int { return 0 }

// hasTerminal reports whether this process belongs to a terminal that hangs up.
func hasTerminal() bool { return false }
