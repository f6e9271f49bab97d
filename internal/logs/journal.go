package logs

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
)

// JournalVariable is the environment variable that names the stream of systemd's journal.
const JournalVariable = "JOURNAL_STREAM"

// ToJournal reports whether w is the stream that the value of JournalVariable names by its device
// and inode (systemd.exec(5)). A stream that was redirected since is another one.
func ToJournal(value string, w io.Writer) bool {
	device, inode, ok := strings.Cut(value, ":")
	f, isFile := w.(*os.File)
	if !ok || !isFile {
		return false
	}
	dev, err1 := strconv.ParseUint(device, 10, 64)
	ino, err2 := strconv.ParseUint(inode, 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	is, known := fileID(f)
	return known && is == id{dev, ino}
}

// id identifies a file of this machine.
type id struct{ device, inode uint64 }

// priorities are those of syslog(3), for the levels of slog from the lowest.
var priorities = []struct {
	below  slog.Level
	prefix string
}{
	{slog.LevelInfo, "<7>"}, {slog.LevelWarn, "<6>"}, {slog.LevelError, "<4>"},
}

// worst is the priority of errors.
const worst = "<3>"

// Prefixed returns a handler that writes each line with the priority of its level, which the
// journal takes from its beginning: "<4>" is a warning (sd-daemon(3)). format
// returns the handler that writes lines to w, each with one call of Write.
func Prefixed(w io.Writer, format func(w io.Writer) slog.Handler) slog.Handler {
	h := &prefixed{worst: format(prefixer{w, worst})}
	for _, p := range priorities {
		h.others = append(h.others, format(prefixer{w, p.prefix}))
	}
	return h
}

// prefixed is a slog.Handler with one handler for each priority.
type prefixed struct {
	others []slog.Handler // in the order of priorities
	worst  slog.Handler
}

// of returns the handler for the level.
func (h *prefixed) of(level slog.Level) slog.Handler {
	for i, p := range priorities {
		if level < p.below {
			return h.others[i]
		}
	}
	return h.worst
}

// Enabled implements slog.Handler.
func (h *prefixed) Enabled(ctx context.Context, level slog.Level) bool {
	return h.of(level).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *prefixed) Handle(ctx context.Context, r slog.Record) error {
	return h.of(r.Level).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *prefixed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (h *prefixed) WithGroup(name string) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithGroup(name) })
}

func (h *prefixed) each(change func(slog.Handler) slog.Handler) slog.Handler {
	out := &prefixed{worst: change(h.worst)}
	for _, one := range h.others {
		out.others = append(out.others, change(one))
	}
	return out
}

// prefixer writes every line with a prefix.
type prefixer struct {
	io.Writer
	prefix string
}

// Write writes the prefix and p, a line, with one call.
func (p prefixer) Write(line []byte) (int, error) {
	if _, err := p.Writer.Write(append(append(make([]byte, 0, len(p.prefix)+len(line)), p.prefix...), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}
