package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"heed/internal/audit"
)

// openRunLog opens the file of --log.
func openRunLog(name string, stderr io.Writer) (*runLog, error) {
	if name == "-" {
		return &runLog{newSteady(stderr), leaveOpen{}}, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the log cannot be written: %w\nName another file with --log", err)
	}
	return &runLog{newSteady(f), f}, nil
}

// runLog is the log of a run: a file that may be written to slowly, or a pipe
// that nobody reads for a while.
type runLog struct {
	*steady
	file io.Closer
}

// Close closes the file; what is not written yet is lost.
func (l *runLog) Close() error { return l.file.Close() }

// wait returns when all is written, when it could not be for a while, or at a
// signal. It calls tell once when nobody reads.
func (l *runLog) wait(signals <-chan os.Signal, tell func()) error {
	begun, told := time.Now(), false
	for {
		err := l.drain(retryEvery)
		long := time.Since(begun) > endPatience
		switch {
		case err == nil, len(signals) > 0, long && !errors.Is(err, errPending):
			return err
		case long && !told:
			told = true
			tell()
		}
	}
}

// leaveOpen is a file that belongs to somebody else.
type leaveOpen struct{}

// Close does nothing.
func (leaveOpen) Close() error { return nil }

// streamReader takes what heed sends while the run lasts.
type streamReader struct {
	summary chan *audit.Summary // one value: nil when heed went away first
}

// readStream begins to read: log lines go to log, which may be nil, and notices to
// stderr if they are wanted.
func readStream(m *membership, log, stderr io.Writer, notices bool) *streamReader {
	s := &streamReader{summary: make(chan *audit.Summary, 1)}
	go s.read(m, log, stderr, notices)
	return s
}

func (s *streamReader) read(m *membership, log, stderr io.Writer, notices bool) {
	complete := true
	for {
		line, err := m.next()
		switch {
		case err != nil:
			s.summary <- nil
			return
		case line.Summary != nil:
			if line.Dropped > 0 {
				fmt.Fprintf(stderr, "heed: the log is not complete: %s could not be sent, since the log was not written fast enough\n", plural(line.Dropped, "line"))
			}
			s.summary <- line.Summary
			return
		case line.Notice != "" && notices:
			fmt.Fprintln(stderr, "heed:", printable(line.Notice))
		case line.Log != nil && log != nil && complete:
			if _, err := fmt.Fprintf(log, "%s\n", line.Log); err != nil {
				complete = false
				fmt.Fprintf(stderr, "heed: the log is not complete: %v\n", err)
			}
		}
	}
}

// finish ends the run at the heed it joined and returns its summary; nil when
// that heed has gone.
func (s *streamReader) finish(m *membership) *audit.Summary {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	_ = m.end(ctx) // when it fails, the stream has ended or will not
	select {
	case summary := <-s.summary:
		return summary
	case <-ctx.Done():
		return nil
	}
}
