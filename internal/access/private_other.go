//go:build !unix

package access

// private accepts every file: who may read it is not told by a mode here.
func private(string) error { return nil }
