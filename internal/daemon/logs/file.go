package logs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// file is a log file that is rotated, so that it uses at most twice limit on disk.
type file struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenFile opens or creates the log at path, readable by its owner only. When it has limit
// octets it is renamed to path.old, which replaces the one before.
func OpenFile(path string, limit int64) (io.Writer, error) {
	l := &file{path: path, limit: limit}
	return l, l.open()
}

func (l *file) open() error {
	if info, err := os.Stat(l.path); err == nil && !info.Mode().IsRegular() { // opening a FIFO would wait
		return fmt.Errorf("%s is not a regular file", l.path)
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends p. When the file is full, it is renamed to path.old first.
func (l *file) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > l.limit {
		if err := l.rotateLocked(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *file) rotateLocked() error {
	// The file may have been renamed by an attempt that could not open the next.
	if err := os.Rename(l.path, l.path+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	old := l.file
	if err := l.open(); err != nil {
		return err
	}
	return old.Close()
}
