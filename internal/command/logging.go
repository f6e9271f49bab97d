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
func logHandler(c LogConfig, level slog.Leveler, w io.Writer, terminal bool) slog.Handler {
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

// level is what Level names.
func (c LogConfig) level() slog.Level {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(c.Level)) // it was checked
	return level
}

// openLog opens the log of what is no decision, and the recorder of those
// that are: on stderr, or for a background heed in a file of bounded size; and
// returns the way out of both beside them.
func (c *ServeCmd) openLog(a *App, cfg *Config, state string) (*opened, *steady, error) {
	out := a.Stderr
	if c.Background {
		f, err := openBounded(filepath.Join(state, backgroundLog), maxBackgroundLog)
		if err != nil {
			return nil, nil, fmt.Errorf("the log cannot be written: %w", err)
		}
		out = f
	}
	o, way := &opened{level: &slog.LevelVar{}}, newSteady(out)
	o.level.Set(cfg.Log.level())
	handler := logHandler(cfg.Log, o.level, way, isTerminal(out))
	o.log, o.record = slog.New(handler), audit.NewLog(handler, way.retry)
	return o, way, nil
}
