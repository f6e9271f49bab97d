package command

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
)

// maxBackgroundLog is how large the log of a background heed grows before it
// becomes the old one, which takes the place of the one before.
const maxBackgroundLog = 8 << 20

// bounded is a log file that never takes more than twice its limit on disk.
type bounded struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// openBounded opens or makes the log at path, readable by its owner only.
func openBounded(path string, limit int64) (io.Writer, error) {
	b := &bounded{path: path, limit: limit}
	return b, b.open()
}

func (b *bounded) open() error {
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	b.file, b.size = f, info.Size()
	return nil
}

// Write appends p. When the file is full, it is renamed to path.old first.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size > 0 && b.size+int64(len(p)) > b.limit {
		if err := b.turnLocked(); err != nil {
			return 0, err
		}
	}
	n, err := b.file.Write(p)
	b.size += int64(n)
	return n, err
}

func (b *bounded) turnLocked() error {
	// The file may have been renamed by an attempt that could not open the next.
	if err := os.Rename(b.path, b.path+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old := b.file
	if err := b.open(); err != nil {
		return err
	}
	return old.Close()
}
