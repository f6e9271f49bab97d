package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const lockName = "lock" // in the state directory

// stateLock is the proof that this process is the one heed of a state
// directory. The system gives it back when the process ends, however it ends.
type stateLock struct{ file *os.File }

// holder is what the lock file says of the heed that holds it.
type holder struct {
	PID        int    `json:"pid"`
	Listen     string `json:"listen,omitempty"` // empty: no listener but those of runs
	Background bool   `json:"background"`
	Socket     string `json:"socket"` // the control socket
}

// errHeld is the error of lockState when another heed is there.
type errHeld struct {
	state string
	holder
}

// Error says who is there and what to do.
func (e *errHeld) Error() string {
	switch {
	case e.Background:
		return fmt.Sprintf("a heed that `heed run` started is at work in %s (pid %d)\nWait for the run to end, or give this one a state directory of its own with HEED_STATE", e.state, e.PID)
	case e.PID == 0:
		return fmt.Sprintf("another heed is starting in %s\nTry again in a moment", e.state)
	}
	return fmt.Sprintf("heed is running already: it listens on %s (pid %d, state directory %s)\nUse it with `eval \"$(heed env)\"`, stop it, or set HEED_STATE to another directory for a second one", e.Listen, e.PID, e.state)
}

// lockState makes this process the heed of the state directory. A heed that is
// there already has until patience is over to go.
func lockState(state string, patience time.Duration) (*stateLock, error) {
	f, err := os.OpenFile(filepath.Join(state, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the state directory cannot be locked: %w\nMake it writable, or set HEED_STATE to another place", err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if err = tryLock(f); err == nil {
			return &stateLock{f}, f.Truncate(0)
		}
		if !time.Now().Before(end) {
			break
		}
	}
	f.Close()
	held := &errHeld{state: state}
	held.holder, _ = readHolder(state) // it may have only begun
	return nil, held
}

// readHolder returns who holds the lock of the state directory, or held it
// last. It is an error when nobody has yet.
func readHolder(state string) (h holder, err error) {
	text, err := os.ReadFile(filepath.Join(state, lockName))
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	return h, err
}

// tell writes who holds the lock, for those who do not get it.
func (l *stateLock) tell(h holder) error {
	text, err := json.Marshal(h)
	if err == nil {
		_, err = l.file.WriteAt(text, 0)
	}
	if err == nil {
		err = l.file.Truncate(int64(len(text)))
	}
	return err
}

// release gives the state directory to whoever comes next. The file stays: to
// remove it would let two processes lock two files of the same name.
func (l *stateLock) release() { l.file.Close() }
