//go:build unix

package access

import (
	"fmt"
	"os"
)

// Private returns an error when others than the owner and the group of a file
// that holds secrets may read it.
func Private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the file cannot be read: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("%s can be read by everyone on this machine; take that away with: chmod o= %s", path, path)
	}
	return nil
}
