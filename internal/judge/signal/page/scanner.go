package page

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"

	"heed/internal/base/coding"
	"heed/internal/base/memo"
)

// Scanner reads the head of one page from the octets of its body as they are sent. It is
// not safe for concurrent use. Finish must be called, or its memory is not freed.
type Scanner struct {
	head   Head
	ended  bool
	resume func() (struct{}, bool) // continues reading until it needs more octets, or is done
	stop   func()
	feed   feed
}

// NewScanner returns a Scanner for the body of an answer that is Readable, with that
// header. wanted are the names of the META elements that are kept, in lower case; nil
// keeps all.
func NewScanner(h http.Header, wanted []string) *Scanner {
	s := &Scanner{}
	r := &reader{head: &s.head, wanted: wanted, line: 1, sniff: sniffed(h)}
	s.resume, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		s.feed.wait = func() bool { return yield(struct{}{}) }
		s.head.Why = cmp.Or(read(r, &s.feed, coding.Name(h.Values("Content-Encoding")), h.Get("Content-Type")), s.head.Why)
	})
	return s
}

// Write gives the Scanner the next octets of the body, which it does not keep. It never
// fails, and does nothing once Done.
func (s *Scanner) Write(sent []byte) (int, error) {
	if !s.ended && len(sent) > 0 {
		s.feed.sent = sent
		s.step()
		s.feed.sent = nil
	}
	return len(sent), nil
}

// Done reports whether the head is known: no further octets are needed.
func (s *Scanner) Done() bool { return s.ended }

// Finish ends reading and returns the head. whole reports that the body has ended as it
// should; otherwise a head that is not Done is Unfinished.
func (s *Scanner) Finish(whole bool) Head {
	if !s.ended && whole {
		s.feed.ended = true
		s.step()
	}
	if !s.ended {
		s.ended = true
		s.feed.left = true
		s.stop()
		s.head.Why = Unfinished
	}
	return s.head
}

// step continues reading until it needs more bytes.
func (s *Scanner) step() {
	if _, waiting := s.resume(); !waiting {
		s.ended = true
		s.stop()
	}
}

// feed is the body as a Reader: Read returns what Write was given, and waits for the
// next Write when nothing is left.
type feed struct {
	sent  []byte
	total int
	ended bool        // the body is complete
	left  bool        // the Scanner was finished before
	wait  func() bool // returns after the next Write; false when there is none
}

var (
	errLeft = errors.New("the page is not waited for")
	errSent = errors.New("the coding is longer than its content")

	errNoPage = errors.New("the answer does not begin as a page does")
)

// Read returns octets of the last Write, and waits for the next one when none are left.
func (f *feed) Read(p []byte) (int, error) {
	for len(f.sent) == 0 {
		switch {
		case f.left:
			return 0, errLeft
		case f.ended:
			return 0, io.EOF
		case f.total > maxSent:
			return 0, errSent
		case !f.wait():
			f.left = true
		}
	}
	n := copy(p, f.sent)
	f.sent = f.sent[n:]
	f.total += n
	return n, nil
}

// read reads a body to the end of its head and returns why that could not be done.
func read(r *reader, f *feed, name, contentType string) (why Why) {
	defer func() {
		if recover() != nil { // of a decoder or the tokenizer: they read what a site chose
			why = Fault
		}
	}()
	content, err := coding.NewReader(name, f)
	switch {
	case err == io.EOF && f.total == 0:
		return NoBody
	case err != nil:
		return Coding
	}
	limited := &io.LimitedReader{R: content, N: MaxBytes}
	err = r.readAs(limited, contentType)
	coding.Free(content)
	r.head.Read = MaxBytes - int(limited.N)
	switch {
	case err == nil:
		return Whole
	case err == io.EOF && limited.N <= 0:
		return TooLong
	case f.ended && f.total == 0:
		return NoBody
	case err == io.EOF && r.tags == 0:
		return NoMarkup
	case err == io.EOF:
		return Whole // the page has ended, and its head with it
	case errors.Is(err, errNoPage):
		return Untyped
	case errors.Is(err, errMany):
		return TooLong
	case errors.Is(err, errEntities):
		return Entities
	}
	return Coding
}

// prescan is how many octets may be needed to find the character encoding.
const prescan = 1024

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

// readAs finds the character encoding and reads the head. It waits for no more octets
// than the head has.
func (r *reader) readAs(content io.Reader, contentType string) error {
	in := readers.Get().(*bufio.Reader)
	in.Reset(content)
	defer func() {
		in.Reset(nil)
		readers.Put(in)
	}()
	if r.sniff && !mayBegin(in) {
		return errNoPage
	}
	start := peekHead(in)
	if r.sniff && !beginnings().Match(bytes.ToLower(start)) {
		return errNoPage
	}
	kind := strings.ToLower(contentType)
	if r.xml = strings.Contains(kind, "xhtml") || r.sniff && strings.Contains(kind, "xml"); r.xml {
		contentType = withEncoding(contentType, start)
	}
	e, name, _ := charset.DetermineEncoding(start, contentType)
	r.head.Charset = name
	if e != encoding.Nop && name != "windows-1252" && name != "utf-8" {
		return r.elements(e.NewDecoder().Reader(in))
	}
	if bytes.HasPrefix(start, []byte("\xEF\xBB\xBF")) {
		_, _ = in.Discard(3)
	}
	r.latin = name == "windows-1252"
	return r.elements(in)
}

// mayBegin reports whether the first octets of an answer may be those of a page. It waits for no
// more than the first ones.
func mayBegin(in *bufio.Reader) bool {
	_, _ = in.Peek(1)
	start, _ := in.Peek(in.Buffered())
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\xEF\xBB\xBF")), " \t\r\n\f")
	return len(start) == 0 || start[0] == '<'
}

// declaration is an XML declaration with an encoding (XML 1.0 §4.3.3).
var declaration = memo.Expression(`^<\?xml\s[^>]*encoding\s*=\s*["']([A-Za-z0-9._-]+)["']`)

// withEncoding returns a Content-Type with the encoding that XHTML declares, unless it has
// one itself.
func withEncoding(contentType string, start []byte) string {
	declared := declaration().FindSubmatch(start)
	if declared == nil || strings.Contains(strings.ToLower(contentType), "charset") {
		return contentType
	}
	return contentType + "; charset=" + string(declared[1])
}

// peekHead returns the first octets: prescan of them, or fewer when they contain the end
// of the head.
func peekHead(in *bufio.Reader) []byte {
	for n := 1; ; n = in.Buffered() + 1 {
		start, err := in.Peek(min(n, prescan))
		if err == nil {
			start, _ = in.Peek(min(in.Buffered(), prescan))
		}
		if err != nil || len(start) >= prescan || headEnds(start) {
			return start
		}
	}
}

// headEnds reports whether octets contain what is likely the end of a head.
func headEnds(start []byte) bool {
	start = bytes.ToLower(start)
	return bytes.Contains(start, []byte("</head")) || bytes.Contains(start, []byte("<body"))
}
