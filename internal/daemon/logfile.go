package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"heed/internal/audit"
	"heed/internal/config"
	"heed/internal/console"
)

// maxBackgroundLog is the size in bytes at which the log of a background heed is rotated.
// One old file is kept.
const maxBackgroundLog = 8 << 20

// logFile is a log file that is rotated, so that it uses at most twice limit on disk.
type logFile struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// openLogFile opens or creates the log at path, readable by its owner only.
func openLogFile(path string, limit int64) (io.Writer, error) {
	l := &logFile{path: path, limit: limit}
	return l, l.open()
}

func (l *logFile) open() error {
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
func (l *logFile) Write(p []byte) (int, error) {
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

func (l *logFile) rotateLocked() error {
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

// logHandler returns the handler that writes log lines to w in the configured format:
// "auto" is text on a terminal and JSON elsewhere. Secrets in any text are replaced as in
// the record.
func logHandler(c config.LogConfig, level slog.Leveler, w io.Writer, terminal bool, privacy *audit.Privacy) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		text := ""
		switch a.Value.Kind() {
		case slog.KindString:
			text = a.Value.String()
		case slog.KindAny:
			text = fmt.Sprint(a.Value.Any())
		}
		if kept, hidden := privacy.Redact(text); hidden {
			a.Value = slog.StringValue(kept)
		}
		return a
	}}
	if c.Format == "json" || c.Format == "auto" && !terminal {
		return slog.NewJSONHandler(console.EscapingWriter{Writer: w}, options)
	}
	return slog.NewTextHandler(console.EscapingWriter{Writer: w}, options)
}

// eventHandler is the handler of all lines but those of decisions, which are written
// later. It keeps the order of both, and writes errors without delay, in case they are the
// last lines of this process.
type eventHandler struct {
	slog.Handler
	decisions func() // writes the lines of decisions that wait: audit.Log.Flush
	hurry     func() // AsyncWriter.Hurry
}

// Handle implements slog.Handler.
func (h eventHandler) Handle(ctx context.Context, r slog.Record) error {
	h.decisions()
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelError {
		h.hurry()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h eventHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h eventHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
