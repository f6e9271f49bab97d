package audit

import (
	"fmt"
	"log/slog"
	"time"
)

// maxEnded bounds the lines that wait for Log.Flush: their writer must have room for all
// of them when it begins to refuse more, and each keeps its exchange in memory.
const maxEnded = 64

// endedLine is the last line of an exchange.
type endedLine struct {
	e      *Entry
	logged bool // the decision has been logged
	at     time.Time
}

// WriteLater makes Ended keep its lines until Flush, which costs less for many lines
// than for one at a time. wake is called when lines begin to wait, and must cause a
// Flush soon. The retry of NewLog is then called before each decision, and must be fast.
// WriteLater must be called before the first decision.
func (l *Log) WriteLater(wake func()) { l.wake = wake }

// Flush writes the lines of exchanges that have ended.
func (l *Log) Flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.writeEnded()
}

// writeEnded is Flush for a caller that holds writing.
func (l *Log) writeEnded() {
	l.mu.Lock()
	lines := l.ended
	l.ended = l.spare
	l.mu.Unlock()
	for _, line := range lines {
		l.writeLine(line)
	}
	clear(lines)
	l.spare = lines[:0]
}

// writeLine writes one line. A panic is an error of the log: the goroutine that writes
// the lines of all requests must not end the process.
func (l *Log) writeLine(line endedLine) {
	defer func() {
		if v := recover(); v != nil {
			err := fmt.Errorf("a line could not be made: %v", v)
			l.failed.Store(&err)
		}
	}()
	l.write(line.e, line.at, messages[line.logged], func(a []slog.Attr) []slog.Attr { return appendOutcome(a, line.e) })
}
