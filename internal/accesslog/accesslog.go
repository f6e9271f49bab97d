// Package accesslog reads the access logs of web servers in the order of time.
//
// It reads the common and the combined format of Apache and nginx, also with the name of
// the virtual host first, from files, gzip files and standard input. Lines that are no
// requests are counted with the reason. Several files are merged by time; lines that are
// out of order, as those of slow answers are, are put in order within a window.
package accesslog

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// Request is a line of an access log.
type Request struct {
	Time      time.Time // with the zone of the line
	Client    string    // address, or the name that the server looked up
	Host      string    // virtual host; empty: the log has none
	Method    string    // empty: the line has no request
	Target    string    // as sent, escapes of the log undone
	Status    int       // 0: not logged
	Bytes     int64     // octets of the answer; 0: not logged
	Referrer  string    // empty: none, or not logged
	UserAgent string    // empty: none, or not logged
	Source    string    // name of the file
	Line      int64     // number of the line in it, from 1
	// OutOfOrder is set when the time of the line is before that of the line before it.
	OutOfOrder bool
}

const (
	maxLine     = 1 << 20
	window      = 1 << 16  // requests of a file that are put in order
	maxHeld     = 64 << 20 // octets of their lines
	maxExamples = 5
	clockStep   = time.Hour
)

// Problem is a number of lines that could not be read, for one reason.
type Problem struct {
	Reason string
	Count  int64
	Lines  []string // the first of them, as FILE:LINE
}

// Counts is what was read so far.
type Counts struct {
	Lines      int64
	Unparsed   int64
	Cut        int64 // lines longer than 1 MiB, read up to that
	OutOfOrder int64
	Steps      int64 // lines more than an hour before the line before
	Problems   []Problem
	Truncated  []string // compressed files that end early
}

// Reader reads requests. It is not safe for concurrent use but for Progress.
type Reader struct {
	sources []*source
	counts  Counts
	done    atomic.Int64
	all     int64
}

// Open opens log files; the name - is standard input.
func Open(files []string, stdin io.Reader) (*Reader, error) {
	r := &Reader{}
	for _, name := range files {
		s := &source{reader: r, name: name}
		in := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				r.Close()
				return nil, fmt.Errorf("the log cannot be read: %w", err)
			}
			if info, err := f.Stat(); err == nil {
				r.all += info.Size()
			}
			s.file, in = f, f
		} else {
			s.name = "standard input"
		}
		if err := s.begin(in); err != nil {
			r.Close()
			return nil, err
		}
		r.sources = append(r.sources, s)
	}
	return r, nil
}

// Close closes the files.
func (r *Reader) Close() {
	for _, s := range r.sources {
		if s.file != nil {
			_ = s.file.Close() // it was only read
		}
	}
}

// Progress returns how many octets of the files have been read, and how many there are.
func (r *Reader) Progress() (done, all int64) { return r.done.Load(), r.all }

// Counts returns what was read so far.
func (r *Reader) Counts() Counts { return r.counts }

// Next returns the next request in the order of time; equal times keep the order of the
// files and of their lines. The error after the last one is io.EOF.
func (r *Reader) Next() (Request, error) {
	var first *source
	for _, s := range r.sources {
		if err := s.fill(); err != nil {
			return Request{}, err
		}
		if q := s.head(); q != nil && (first == nil || q.Time.Before(first.head().Time)) {
			first = s
		}
	}
	if first == nil {
		return Request{}, io.EOF
	}
	return first.pop(), nil
}

// problem counts a line that could not be read.
func (r *Reader) problem(s *source, reason string) {
	r.counts.Unparsed++
	at := slices.IndexFunc(r.counts.Problems, func(p Problem) bool { return p.Reason == reason })
	if at < 0 {
		at = len(r.counts.Problems)
		r.counts.Problems = append(r.counts.Problems, Problem{Reason: reason})
	}
	p := &r.counts.Problems[at]
	if p.Count++; len(p.Lines) < maxExamples {
		p.Lines = append(p.Lines, fmt.Sprintf("%s:%d", s.name, s.line))
	}
}

// source is one log.
type source struct {
	reader *Reader
	name   string
	file   *os.File
	lines  *bufio.Reader
	long   []byte
	line   int64
	last   time.Time // of the line before
	ended  bool
	clock  clock

	ordered []*held // by time
	from    int     // those before are returned
	octets  int     // of the lines of the others
}

// held is a request with the octets of its line, which its texts are parts of.
type held struct {
	Request
	octets int
}

// begin recognises gzip by its first octets.
func (s *source) begin(in io.Reader) error {
	b := bufio.NewReaderSize(&countingReader{in, &s.reader.done}, 256<<10)
	if magic, _ := b.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		b = bufio.NewReaderSize(z, 256<<10)
	}
	s.lines = b
	return nil
}

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

// Read reads and counts.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// fill reads until the window is full or the log ends.
func (s *source) fill() error {
	for !s.ended && len(s.ordered)-s.from < window && s.octets < maxHeld {
		text, err := s.next()
		if err != nil {
			s.ended = true
			return s.end(err)
		}
		s.line++
		s.reader.counts.Lines++
		q := &held{Request{Source: s.name, Line: s.line}, len(text)}
		if reason := s.clock.parse(string(text), &q.Request); reason != "" {
			s.reader.problem(s, reason)
			continue
		}
		s.insert(q)
	}
	return nil
}

// end ends the log with the error of its last read. One that is damaged, or was cut off,
// has been read up to there.
func (s *source) end(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == io.EOF:
		return nil
	case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, gzip.ErrChecksum) && !errors.Is(err, gzip.ErrHeader) && !errors.As(err, &corrupt):
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.reader.counts.Truncated = append(s.reader.counts.Truncated, s.name)
	if len(s.long) > 0 {
		s.line++
		s.reader.counts.Lines++
		s.reader.problem(s, "a line that the compressed file ends in")
	}
	return nil
}

// next returns the next line, cut after maxLine octets.
func (s *source) next() ([]byte, error) {
	text, err := s.lines.ReadSlice('\n')
	if err == nil {
		return text[:len(text)-1], nil
	}
	s.long = append(s.long[:0], text...)
	cut := false
	for err == bufio.ErrBufferFull {
		text, err = s.lines.ReadSlice('\n')
		text = trimNewline(text)
		room := maxLine - len(s.long)
		cut = cut || len(text) > room
		s.long = append(s.long, text[:min(room, len(text))]...)
	}
	if cut {
		s.reader.counts.Cut++
	}
	if err != nil && (err != io.EOF || len(s.long) == 0) {
		return nil, err
	}
	return trimNewline(s.long), nil
}

func trimNewline(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		return b[:n-1]
	}
	return b
}

// insert adds a request behind those of its time and before.
func (s *source) insert(q *held) {
	s.octets += q.octets
	if q.Time.Before(s.last) {
		q.OutOfOrder = true
		s.reader.counts.OutOfOrder++
		if s.last.Sub(q.Time) > clockStep {
			s.reader.counts.Steps++
		}
	}
	s.last = q.Time
	if n := len(s.ordered); n == s.from || !q.Time.Before(s.ordered[n-1].Time) {
		s.ordered = append(s.ordered, q)
		return
	}
	at, _ := slices.BinarySearchFunc(s.ordered[s.from:], q.Time, func(r *held, t time.Time) int {
		if r.Time.After(t) {
			return 1
		}
		return -1
	})
	s.ordered = slices.Insert(s.ordered, s.from+at, q)
}

// head returns the first request; nil when there are none left.
func (s *source) head() *held {
	if s.from == len(s.ordered) {
		return nil
	}
	return s.ordered[s.from]
}

func (s *source) pop() Request {
	q := s.ordered[s.from]
	s.ordered[s.from] = nil
	s.octets -= q.octets
	if s.from++; s.from >= window {
		s.ordered, s.from = s.ordered[:copy(s.ordered, s.ordered[s.from:])], 0
	}
	return q.Request
}
