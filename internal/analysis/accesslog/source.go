package accesslog

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"heed/internal/base/coding"
)

// records reads what a file has, one line or record after the other.
type records interface {
	// next reads one into q, also its number. The reason is why it is no request; empty: it
	// is one.
	next(q *Request) (reason string, err error)
}

// aside is the reason of what is no request by its kind: comments and directives.
const aside = "\x00"

// tornLine is the reason of a line whose end is missing.
const tornLine = "the file ends or is damaged in the middle of the line"

// errTorn is wrapped by the errors of files that end early or are damaged.
var errTorn = errors.New("the file is damaged")

// source is one log.
type source struct {
	reader *Reader
	index  int
	path   string // empty: standard input
	name   string
	size   int64
	twice  bool // it can be read twice
	piped  bool // it is no regular file: a Read may block

	closing func() // closes the file; nil: it is not open
	records records
	last    time.Time // of the request before

	ordered bool      // it is streamed
	first   time.Time // the least time, when ordered
	window  int       // requests to hold back, when ordered
}

// look checks that the file exists.
func (s *source) look() error {
	info, err := os.Stat(s.path)
	switch {
	case err != nil:
		return fmt.Errorf("the log cannot be read: %w\nName an access log or a record of heed, such as access.log or crawl.db", err)
	case info.IsDir():
		return fmt.Errorf("%s is a directory\nName the files in it, such as %s/access.log*", s.path, strings.TrimSuffix(s.path, "/"))
	case info.Mode().IsRegular():
		s.size = info.Size()
		s.twice = !IsRecord(s.path)
		return nil
	}
	s.piped = true
	return nil
}

// open opens the file and finds its format.
func (s *source) open() error {
	in := s.reader.options.Stdin
	if s.path != "" {
		if !s.twice && !s.piped {
			return s.openRecord()
		}
		f, err := os.Open(s.path)
		if err != nil {
			return fmt.Errorf("the log cannot be read: %w", err)
		}
		s.closing, in = func() { _ = f.Close() }, f // it is only read
	}
	if s.piped {
		in = s.reader.untilStopped(in)
	}
	in = &countingReader{Reader: in, n: &s.reader.done}
	text, members, err := decompressed(in)
	if err == nil {
		s.records, err = s.reader.detect(text, members)
	}
	if err != nil {
		s.close()
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

func (s *source) close() {
	if s.closing != nil {
		s.closing()
	}
	s.closing, s.records = nil, nil
}

// stream returns the requests of a source that is in order, or nearly so.
func (s *source) stream() stream {
	if s.window == 0 {
		return s
	}
	return &windowed{from: s, size: s.window}
}

// errStopped is the error of a pipe that Reader.Stop ended. What was read before counts.
var errStopped = fmt.Errorf("%w: reading was stopped", errTorn)

// untilStopped returns a reader of in, whose Read may block without end, that Stop ends.
func (r *Reader) untilStopped(in io.Reader) io.Reader {
	read, write := io.Pipe()
	context.AfterFunc(r.stopped, func() { _ = write.CloseWithError(errStopped) }) // it never fails
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{write}, struct{ io.Reader }{in}, make([]byte, 256<<10))
		_ = write.CloseWithError(err) // it never fails
	}()
	return read
}

type countingReader struct {
	io.Reader
	n   *atomic.Int64
	err error // nothing is read after it
}

// Read reads and counts.
func (c *countingReader) Read(p []byte) (n int, err error) {
	if c.err == nil {
		n, c.err = c.Reader.Read(p)
		c.n.Add(int64(n))
	}
	return n, c.err
}

// The beginnings of compressed files that are recognised.
var magics = []struct{ octets, coding string }{
	{"\x1f\x8b", "gzip"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"BZh", "bzip2"},
	{"\xfd7zXZ\x00", "xz"},
	{"PK\x03\x04", "zip"},
	{"\x04\x22\x4d\x18", "lz4"},
}

// decompressed returns the text of a file, and its members when it is a gzip file.
func decompressed(in io.Reader) (*bufio.Reader, *gzipMembers, error) {
	b := bufio.NewReaderSize(in, 256<<10)
	for _, m := range magics {
		if head, _ := b.Peek(len(m.octets)); string(head) != m.octets {
			continue
		}
		switch m.coding {
		case "gzip":
			members := &gzipMembers{in: b}
			return bufio.NewReaderSize(members, 256<<10), members, nil
		case "zstd":
			text, err := coding.NewReader(m.coding, b)
			if err != nil {
				return bufio.NewReader(&tornReader{failed: err}), nil, nil
			}
			return bufio.NewReaderSize(&tornReader{in: text}, 256<<10), nil, nil
		case "bzip2":
			return bufio.NewReaderSize(&tornReader{in: bzip2.NewReader(b)}, 256<<10), nil, nil
		}
		return nil, nil, fmt.Errorf("a %s file cannot be read\nDecompress it first; - reads standard input", m.coding)
	}
	return b, nil, nil
}

// errMember is the error of a damaged member of a gzip file.
var errMember = fmt.Errorf("%w: a member of the gzip file is damaged", errTorn)

// gzipMembers reads the members of a gzip file one after the other.
type gzipMembers struct {
	in     *bufio.Reader
	member *gzip.Reader // nil: none was begun
	open   bool
	ended  error
}

// resume reads on after errMember, with the next member that can be found.
func (g *gzipMembers) resume() {
	if !errors.Is(g.ended, errMember) {
		return
	}
	for g.ended = nil; ; {
		head, err := g.in.Peek(4 << 10)
		if at := bytes.Index(head, []byte("\x1f\x8b\x08")); at >= 0 {
			_, _ = g.in.Discard(at) // it was peeked
			return
		}
		if _, _ = g.in.Discard(max(1, len(head)-2)); err != nil {
			return // at the end of the file
		}
	}
}

// Read reads decoded text. Damage is permanent until resume is called.
func (g *gzipMembers) Read(p []byte) (n int, err error) {
	for g.ended == nil {
		if !g.open {
			if err := g.next(); err == io.EOF {
				g.ended = io.EOF
				break
			} else if err != nil {
				return 0, g.lost(err)
			}
		}
		if n, err = g.member.Read(p); err == io.EOF {
			g.open, err = false, nil
		}
		if err != nil {
			return n, g.lost(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, g.ended
}

// next begins the next member; io.EOF after the last one.
func (g *gzipMembers) next() (err error) {
	if _, err = g.in.Peek(1); err != nil {
		return err
	}
	if g.member == nil {
		g.member, err = gzip.NewReader(g.in)
	} else {
		err = g.member.Reset(g.in)
	}
	if g.open = err == nil; g.open {
		g.member.Multistream(false)
	}
	return err
}

// lost ends the member for an error.
func (g *gzipMembers) lost(err error) error {
	g.open, g.ended = false, err
	if _, cannot := errors.AsType[*fs.PathError](err); !cannot && !errors.Is(err, errStopped) { // the disk, not the contents
		g.ended = fmt.Errorf("%w: %w", errMember, err)
	}
	return g.ended
}

// tornReader marks the errors of a decoder, after which what came before them counts.
type tornReader struct {
	in     io.Reader
	failed error
}

// Read reads decoded text.
func (t *tornReader) Read(p []byte) (n int, err error) {
	if t.failed == nil {
		n, t.failed = t.in.Read(p)
	}
	if t.failed == nil || t.failed == io.EOF {
		return n, t.failed
	}
	if _, cannot := errors.AsType[*fs.PathError](t.failed); cannot { // the disk, not the contents
		return n, t.failed
	}
	return n, fmt.Errorf("%w: %w", errTorn, t.failed)
}

// detect finds the format of a text from its beginning.
func (r *Reader) detect(text *bufio.Reader, members *gzipMembers) (records, error) {
	head, err := text.Peek(16 << 10)
	if err != nil && err != io.EOF && !errors.Is(err, errTorn) && err != bufio.ErrBufferFull {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return nil, errors.New("the text is in UTF-16\nConvert it first: iconv -f UTF-16 -t UTF-8")
	}
	if bytes.HasPrefix(head, []byte("WARC/")) {
		return &warc{in: text, members: members}, nil
	}
	p := r.custom
	if p == nil {
		p = r.detectLines(string(head))
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, _ = text.Discard(3) // the byte order mark, which was peeked
	}
	return &lineRecords{lines: lines{in: text}, parser: p.fresh()}, nil
}

// detectLines returns the parser of the most lines of a log's beginning.
func (r *Reader) detectLines(head string) parser {
	head = strings.TrimPrefix(head, "\ufeff")
	if at := strings.LastIndexByte(head, '\n'); at >= 0 {
		head = head[:at] // the last line may be incomplete
	}
	common := &combined{}
	candidates := []parser{common, &jsonLines{names: r.names, refused: r.options.Refused}, &w3c{}, &csvLines{names: r.names, refused: r.options.Refused}}
	counts := make([]int, len(candidates))
	isObject := strings.HasPrefix(head, "{")
	for n := 0; head != "" && n < 200; n++ {
		var text string
		text, head, _ = strings.Cut(head, "\n")
		text = strings.TrimSuffix(text, "\r")
		for i, p := range candidates {
			var q Request
			if reason := parse(p, text, &q); reason == "" || reason == aside {
				counts[i]++
				common.learn(&q) // of other formats it does not matter
			}
		}
	}
	if most := slices.Max(counts); most > 0 || !isObject {
		return candidates[slices.Index(counts, most)].fresh()
	}
	return candidates[1].fresh() // to say what the objects lack
}

// parser reads lines of one format.
type parser interface {
	// parse reads a line, which is not empty, into q. The reason is why it is no request;
	// empty: it is one.
	parse(line string, q *Request) (reason string)
	// fresh returns a parser for the beginning of another file.
	fresh() parser
}

// parse reads a line by p.
func parse(p parser, line string, q *Request) (reason string) {
	if strings.TrimSpace(line) == "" {
		return "an empty line"
	}
	return p.parse(line, q)
}

// lineRecords is a log of lines.
type lineRecords struct {
	lines  lines
	parser parser
	n      int64
}

func (l *lineRecords) next(q *Request) (reason string, err error) {
	text, err := l.lines.next()
	if err != nil {
		return "", err
	}
	l.n++
	reason = parse(l.parser, text.text, q)
	q.Line, q.cut = l.n, text.cut
	switch {
	case text.cut && reason != "":
		reason = "longer than 1 MiB"
	case text.torn:
		reason = tornLine
	}
	return reason, nil
}

// when reads one line or record of a source and returns only its time; ok is false for what
// is no request. A line with a time may still be no request.
func (s *source) when() (t time.Time, ok bool, err error) {
	if l, isLines := s.records.(*lineRecords); isLines {
		if p, fast := l.parser.(*combined); fast { // the whole line takes longer
			text, err := l.lines.next()
			if err != nil {
				return t, false, err
			}
			t, ok = p.when(text.text)
			return t, ok, nil
		}
	}
	var q Request
	reason, err := s.records.next(&q)
	return q.Time, reason == "", err
}

// next returns the next request in the order of the lines, of which the first opens the file.
// What is no request is counted.
func (s *source) next(q *Request) error {
	r := s.reader
	if s.records == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	for s.piped || r.stopped.Err() == nil { // a pipe ends itself, after what it had passed on
		*q = Request{Source: s.name, source: s.index}
		reason, err := s.records.next(q)
		if reason == tornLine && r.stopped.Err() != nil {
			err = io.EOF // the line had not been read to its end
		}
		if err != nil {
			return s.end(err)
		}
		if q.cut {
			r.counts.Cut++
		}
		if reason == aside {
			continue
		}
		r.counts.Lines++
		if reason != "" {
			r.problem(q, reason)
			continue
		}
		s.order(q)
		return nil
	}
	return s.end(io.EOF)
}

// order marks a request whose time is before that of the one before it.
func (s *source) order(q *Request) {
	if q.Time.Before(s.last) {
		q.OutOfOrder = true
		if s.last.Sub(q.Time) > clockStep {
			s.reader.counts.Steps++
		}
	}
	s.last = q.Time
}

// end closes the source. Damage is noted, and the error is io.EOF then.
func (s *source) end(err error) error {
	switch {
	case !errors.Is(err, errTorn):
	case s.reader.stopped.Err() != nil:
		err = io.EOF // whether the file is damaged was not seen
	default:
		s.reader.counts.Truncated = append(s.reader.counts.Truncated, s.name)
		err = io.EOF
	}
	if err != io.EOF {
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	s.close()
	return err
}
