package command

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// maxSocketPath is the longest path a Unix socket may have: 104 bytes with the
// final zero on BSD and macOS, 108 on Linux.
const maxSocketPath = 103

// controlPath returns where the control socket of the state directory goes:
// inside it, or, when that path is too long for a socket, under a short name
// in a directory of this user's own, which it makes with mode 0700.
func controlPath(state string) (string, error) {
	path := filepath.Join(state, "control.sock")
	if len(path) <= maxSocketPath {
		return path, nil
	}
	sum := sha256.Sum256([]byte(state))
	name := filepath.Join("heed-"+strconv.Itoa(os.Geteuid()), hex.EncodeToString(sum[:10])+".sock")
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		path := filepath.Join(base, name)
		if filepath.IsAbs(base) && len(path) <= maxSocketPath {
			return path, ownDir(filepath.Dir(path))
		}
	}
	return "", fmt.Errorf("the path %s is too long for a socket\nSet HEED_STATE to a shorter one", path)
}

// findControl returns the control socket of the heed that runs in the state
// directory: the one it wrote down, since it may have chosen by another
// environment than ours.
func findControl(state string) (string, error) {
	h, err := readHolder(state)
	if err != nil || h.Socket == "" {
		return "", errNotRunning
	}
	return h.Socket, nil
}

// ownDir makes dir with mode 0700, or makes sure that it is a directory of this
// user that nobody else may enter: in a place open to all, somebody else may
// have put a link or a directory of their own there first.
func ownDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("no place for the control socket: %w\nSet HEED_STATE to a shorter path", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("no place for the control socket: %w\nSet HEED_STATE to a shorter path", err)
	}
	if !info.IsDir() || !ownedByUs(info) || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a directory of your own that others cannot enter (mode %04o)\nRemove it, or set HEED_STATE to a shorter path",
			dir, info.Mode().Perm())
	}
	return nil
}
