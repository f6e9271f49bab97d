//go:build unix

package access

import (
	"fmt"
	"os"
)

// private returns an error when others than the file's owner and group may read it.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the users cannot be read: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("%s can be read by everyone on this machine; take that away with: chmod o= %s", path, path)
	}
	return nil
}
