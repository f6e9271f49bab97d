package command

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"heed/internal/audit"
)

// logHandler writes log lines to w as the settings say: by themselves as text
// on a terminal and as JSON elsewhere.
func logHandler(c LogConfig, w io.Writer, terminal bool) slog.Handler {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // the settings were checked: not reached
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" || c.Format == "auto" && !terminal {
		return slog.NewJSONHandler(visible{w}, options)
	}
	return slog.NewTextHandler(visible{w}, options)
}

// isTerminal reports whether a person is likely to read what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device, too, under whatever name
	return err != nil || !os.SameFile(info, null)
}

// openLog returns the log of what is no decision, and the recorder of those
// that are: on stderr, or for a background heed in a file of bounded size; and
// the way out of both.
func (c *ServeCmd) openLog(a *App, cfg *Config, state string) (*slog.Logger, *audit.Log, *steady, error) {
	out := a.Stderr
	if c.Background {
		f, err := openBounded(filepath.Join(state, backgroundLog), maxBackgroundLog)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("the log cannot be written: %w", err)
		}
		out = f
	}
	way := newSteady(out)
	handler := logHandler(cfg.Log, way, isTerminal(out))
	return slog.New(handler), audit.NewLog(handler, way.retry), way, nil
}
