package logs

import (
	"context"
	"io"
	"log/slog"
	"sync"
)

// priority returns the priority of syslog(3) for a level.
func priority(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "<7>"
	case level < slog.LevelWarn:
		return "<6>"
	case level < slog.LevelError:
		return "<4>"
	}
	return "<3>"
}

// Prefixed returns a handler that writes each line with the priority of its level, which the
// journal takes from its beginning: "<4>" is a warning (sd-daemon(3)). format
// returns the handler that writes lines to w, each with one call of Write.
func Prefixed(w io.Writer, format func(w io.Writer) slog.Handler) slog.Handler {
	p := &prefixer{Writer: w}
	return prefixed{format(p), p}
}

// prefixed is a slog.Handler that writes to to.
type prefixed struct {
	slog.Handler
	to *prefixer
}

// Handle implements slog.Handler.
func (h prefixed) Handle(ctx context.Context, r slog.Record) error {
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	h.to.prefix = priority(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h prefixed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return prefixed{h.Handler.WithAttrs(attrs), h.to}
}

// WithGroup implements slog.Handler.
func (h prefixed) WithGroup(name string) slog.Handler {
	return prefixed{h.Handler.WithGroup(name), h.to}
}

// prefixer writes every line with a prefix.
type prefixer struct {
	io.Writer
	mu     sync.Mutex // held for a line
	prefix string     // of the line
}

// Write writes the prefix and p, a line, with one call.
func (p *prefixer) Write(line []byte) (int, error) {
	if _, err := p.Writer.Write(append(append(make([]byte, 0, len(p.prefix)+len(line)), p.prefix...), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}
