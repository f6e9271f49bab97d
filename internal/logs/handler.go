package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"heed/internal/safetext"
)

// Handler returns the handler that writes log lines to w: as JSON, or as text for people.
// redact returns a text without its secrets, and whether it had any.
func Handler(w io.Writer, json bool, level slog.Leveler, redact func(string) (string, bool)) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		text := ""
		switch a.Value.Kind() {
		case slog.KindString:
			text = a.Value.String()
		case slog.KindAny:
			text = fmt.Sprint(a.Value.Any())
		}
		if kept, hidden := redact(text); hidden {
			a.Value = slog.StringValue(kept)
		}
		return a
	}}
	if json {
		return slog.NewJSONHandler(safetext.EscapingWriter{Writer: w}, options)
	}
	return slog.NewTextHandler(safetext.EscapingWriter{Writer: w}, options)
}

// Events is the handler of all lines but those of decisions, which are written
// later. It keeps the order of both, and writes errors without delay, in case they are the
// last lines of this process.
type Events struct {
	slog.Handler
	Decisions func() // writes the lines of decisions that wait: audit.Log.Flush
	Hurry     func() // Writer.Hurry
}

// Handle implements slog.Handler.
func (h Events) Handle(ctx context.Context, r slog.Record) error {
	h.Decisions()
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelError {
		h.Hurry()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h Events) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h Events) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
