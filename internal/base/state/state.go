// Package state finds, checks and locks the state directory, and names the files in
// it that several packages use.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"heed/internal/base/ownfile"
)

// Dir returns the directory that holds what heed keeps between runs (the
// CA, the control socket), making it with mode 0700 if there is none:
// $HEED_STATE, otherwise the platform's default. Commands that start a heed use it; those
// about an existing one use Find. It is an error when the directory
// belongs to another user or others may write to it.
func Dir() (string, error) {
	dir, err := statePath(os.Getenv, os.UserHomeDir, runtime.GOOS)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the state directory cannot be made: %w\nSet HEED_STATE to a directory that you may write to", err)
	}
	if err := checkState(dir); err != nil {
		return dir, err
	}
	return dir, checkWritable(dir)
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

// checkState returns an error for a directory in which another user could place a CA.
func checkState(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("the state directory cannot be used: %w", err)
	}
	if _, err := ownfile.Group(); err != nil {
		return err
	}
	return ownfile.Check(ownfile.StateDir, "the state directory", dir, info)
}

// OwnedByUs reports whether the file belongs to the user heed runs as, or to no user with a
// number, as on Windows.
func OwnedByUs(info fs.FileInfo) bool {
	uid, ok := ownfile.Owner(info)
	return !ok || uid == os.Geteuid()
}

func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("the state directory %s cannot be written to: %w\nMake it writable, or set HEED_STATE to another place", dir, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// BackgroundLog is the log of a heed that `heed run` started, in the state directory.
const BackgroundLog = "background.log"

// Foreign returns the state directory when it belongs to another user, so that this
// user's programs cannot read its files; otherwise "".
func Foreign() (string, error) {
	dir, err := statePath(os.Getenv, os.UserHomeDir, runtime.GOOS)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return dir, nil
	case err == nil && info.IsDir() && !OwnedByUs(info):
		return dir, nil
	default:
		return "", nil // ours, absent, or a fault that Dir reports
	}
}

// AuditFile is the name of the record of decisions in the state directory, for when
// audit.file is empty.
const AuditFile = "audit.db"

// ReadOrCreate returns the content of a file. When there is none, it creates one
// atomically, with mode 0600 and this content.
func ReadOrCreate(path, content string) (string, error) {
	file, err := ownfile.ReadRegular(path, maxText)
	if errors.Is(err, fs.ErrNotExist) {
		if err = ownfile.Create(path, []byte(content), 0o600); err == nil {
			file, err = ownfile.ReadRegular(path, maxText)
		}
	}
	if err != nil {
		return "", err
	}
	return string(file.Data), nil
}

// maxText bounds the files of ReadOrCreate, and the lock file, in bytes.
const maxText = 64 << 10

const lockName = "lock" // in the state directory

// Lock shows that this process is the only heed of a state directory. The system
// releases it when the process ends.
type Lock struct{ file *os.File }

// Holder is the content of the lock file: the heed that holds it.
type Holder struct {
	PID        int    `json:"pid"`
	Listen     string `json:"listen,omitempty"` // empty: only listeners of runs
	Background bool   `json:"background"`
	Socket     string `json:"socket"` // the control socket
}

// HeldError is the error of Acquire when another heed holds the lock.
type HeldError struct {
	state string
	Holder
}

// Error describes the heed that holds the lock, and what to do.
func (e *HeldError) Error() string {
	switch {
	case e.Background:
		return fmt.Sprintf("a heed that `heed run` started uses %s (pid %d)\nWait for the run to end, or set HEED_STATE to another directory", e.state, e.PID)
	case e.PID == 0:
		return fmt.Sprintf("another heed is starting in %s\nTry again in a moment", e.state)
	}
	return fmt.Sprintf("heed is running already: it listens on %s (pid %d, state directory %s)\nUse it with `eval \"$(heed env)\"`, stop it, or set HEED_STATE to another directory for a second one", e.Listen, e.PID, e.state)
}

// Acquire locks the state directory for this process. It waits up to patience for
// another heed to release it, and returns a *HeldError if it does not.
func Acquire(state string, patience time.Duration) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(state, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the state directory cannot be locked: %w\nMake it writable, or set HEED_STATE to another place", err)
	}
	if ownfile.Lock(f, patience) == nil {
		return &Lock{f}, f.Truncate(0)
	}
	f.Close()
	held := &HeldError{state: state}
	held.Holder, _ = ReadHolder(state) // unknown while it is starting
	return nil, held
}

// ReadHolder returns the heed that holds the lock of the state directory, or held it
// last. It is an error when no heed has held it.
func ReadHolder(state string) (h Holder, err error) {
	file, err := ownfile.ReadRegular(filepath.Join(state, lockName), maxText)
	if err == nil {
		err = json.Unmarshal(file.Data, &h)
	}
	return h, err
}

// Publish writes h to the lock file, for processes that cannot acquire the lock.
func (l *Lock) Publish(h Holder) error {
	text, err := json.Marshal(h)
	if err == nil {
		_, err = l.file.WriteAt(text, 0)
	}
	if err == nil {
		err = l.file.Truncate(int64(len(text)))
	}
	return err
}

// Release unlocks the state directory. The file is not removed, since then two
// processes could lock two files of the same name.
func (l *Lock) Release() { l.file.Close() }
