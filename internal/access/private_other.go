//go:build !unix

package access

// Private accepts every file: who may read it is not told by a mode here.
func Private(string) error { return nil }
