package logs

import (
	"context"
	"io"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"
)

// lines writes lines whose texts are printable ASCII without quotation marks and backslashes,
// which those of most decisions are, with the octets that its Handler would write, in less time.
// All other lines are the Handler's.
type lines struct {
	slog.Handler
	json   bool
	redact func(string) (string, bool)
	out    io.Writer // safe for concurrent use: the Handler writes to it as well

	mu   sync.Mutex
	line []byte // memory
}

// maxKept bounds the memory that lines keeps, in bytes.
const maxKept = 64 << 10

// Handle implements slog.Handler.
func (l *lines) Handle(ctx context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, ok := l.appendRecord(l.line[:0], &r)
	if cap(line) <= maxKept {
		l.line = line
	}
	if !ok {
		return l.Handler.Handle(ctx, r)
	}
	_, err := l.out.Write(line)
	return err
}

// appendRecord appends the line of r; ok is false when it is the Handler's.
func (l *lines) appendRecord(b []byte, r *slog.Record) (_ []byte, ok bool) {
	if l.json {
		b = append(b, `{"time":"`...)
		b = append(r.Time.AppendFormat(b, time.RFC3339Nano), `",`...)
	} else {
		b = append(b, "time="...)
		b = append(r.Time.AppendFormat(b, "2006-01-02T15:04:05.000Z07:00"), ' ')
	}
	b, known := l.appendAttr(b, slog.String(slog.LevelKey, r.Level.String()))
	b, ok = l.appendAttr(b, slog.String(slog.MessageKey, r.Message))
	r.Attrs(func(a slog.Attr) bool {
		if ok {
			b, ok = l.appendAttr(b, a)
		}
		return ok
	})
	if b = b[:len(b)-1]; l.json {
		b = append(b, '}')
	}
	return append(b, '\n'), known && ok
}

// appendAttr appends a and what separates it from the next.
func (l *lines) appendAttr(b []byte, a slog.Attr) (_ []byte, ok bool) {
	v := a.Value
	if v.Kind() == slog.KindGroup && a.Key == "" {
		for _, a := range v.Group() {
			if b, ok = l.appendAttr(b, a); !ok {
				return b, false
			}
		}
		return b, true
	}
	if b, ok = l.appendText(b, a.Key, nil); !ok {
		return b, false
	}
	separator, format := byte(' '), byte('g')
	if l.json {
		b, separator, format = append(b, ':'), ',', 'f'
	} else {
		b = append(b, '=')
	}
	switch v.Kind() {
	case slog.KindString:
		b, ok = l.appendText(b, v.String(), l.redact)
	case slog.KindInt64:
		b = strconv.AppendInt(b, v.Int64(), 10)
	case slog.KindUint64:
		b = strconv.AppendUint(b, v.Uint64(), 10)
	case slog.KindBool:
		b = strconv.AppendBool(b, v.Bool())
	case slog.KindFloat64:
		f := v.Float64()
		ok = f == 0 || math.Abs(f) >= 1e-6 && math.Abs(f) < 1e21 // where JSON has no exponent
		b = strconv.AppendFloat(b, f, format, -1, 64)
	default:
		return b, false
	}
	return append(b, separator), ok
}

// appendText appends a text, in quotation marks where it needs some; ok is false when it has
// to be escaped. A nil redact changes nothing.
func (l *lines) appendText(b []byte, text string, redact func(string) (string, bool)) (_ []byte, ok bool) {
	var all uint8
	for i := range len(text) {
		all |= kinds[text[i]]
	}
	switch {
	case all&redactable != 0 && redact != nil:
		text, _ = redact(text)
		return l.appendText(b, text, nil)
	case all&escaped != 0:
		return b, false
	case !l.json && text != "" && all&quoted == 0:
		return append(b, text...), true
	}
	return append(append(append(b, '"'), text...), '"'), true
}

// What an octet means for its text, as bits.
const (
	escaped    = 1 << iota // it is escaped
	quoted                 // the text is in quotation marks
	redactable             // it may have a secret, and has none without such an octet
)

// kinds are the bits of all octets.
var kinds = func() (of [256]uint8) {
	for c := range of {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			of[c] = escaped
		}
	}
	of[' '], of['='], of['@'], of['%'], of['?'] = quoted, quoted|redactable, redactable, redactable, redactable
	return of
}()
