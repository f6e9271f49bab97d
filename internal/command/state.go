package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// StateDir returns the directory that holds what heed keeps between runs (the
// CA, the control socket), making it with mode 0700 if there is none:
// $HEED_STATE, else the platform's place. It refuses a directory that belongs
// to somebody else or that others may write to.
func StateDir() (string, error) {
	dir, err := statePath(os.Getenv, os.UserHomeDir, runtime.GOOS)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the state directory cannot be made: %w\nSet HEED_STATE to a directory that you may write to", err)
	}
	return dir, checkState(dir)
}

func statePath(getenv func(string) string, home func() (string, error), goos string) (string, error) {
	if dir := getenv("HEED_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // the XDG specification has relative ones ignored
		return filepath.Join(dir, "heed"), nil
	}
	h, err := home()
	if err != nil {
		return "", errors.New("there is no home directory to keep state in\nSet HEED_STATE to a directory that you may write to")
	}
	switch goos {
	case "darwin":
		return filepath.Join(h, "Library", "Application Support", "heed"), nil
	case "windows":
		if dir := getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "heed"), nil
		}
	}
	return filepath.Join(h, ".local", "state", "heed"), nil
}

// checkState refuses directories in which somebody else could put a CA of
// their own.
func checkState(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("the state directory cannot be used: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the state directory %s is not a directory\nRemove it, or set HEED_STATE to another place", dir)
	}
	if !ownedByUs(info) {
		return fmt.Errorf("the state directory %s belongs to another user\nRun heed as that user, or set HEED_STATE to a directory of your own", dir)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("the state directory %s may be written to by others (mode %04o)\nRun: chmod 700 %s", dir, mode, shellQuote(dir))
	}
	return checkWritable(dir)
}

func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("the state directory %s cannot be written to: %w\nMake it writable, or set HEED_STATE to another place", dir, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
