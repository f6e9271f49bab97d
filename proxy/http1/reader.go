package http1

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// bufferSize is how many octets of a connection are read ahead. A larger head has a
// buffer of its own, as long as it is read.
const bufferSize = 4 << 10

// bodyBufferSize is how many octets are read ahead of a body that comes faster than it is
// read: many small chunks then cost as little as one large one.
const bodyBufferSize = 32 << 10

// buffers are of *[bufferSize]byte, bodyBuffers of *[bodyBufferSize]byte.
var (
	buffers     = sync.Pool{New: func() any { return new([bufferSize]byte) }}
	bodyBuffers = sync.Pool{New: func() any { return new([bodyBufferSize]byte) }}
)

// maxEmptyLines is how many octets of line ends are skipped before a request (RFC 9112
// §2.2).
const maxEmptyLines = 4

// Limit bounds what is kept of a head.
type Limit struct {
	Head int // octets; 0: defaultHead

	// Hold is called with a number of octets before so many more octets are kept of a
	// head that is not complete. Its error ends the reading, and is returned. Nil:
	// nothing is counted.
	Hold func(octets int) error

	// Drop is called when a head is complete whose octets Hold has counted. It is nil
	// when Hold is.
	Drop func()
}

// defaultHead is Limit.Head where that is 0.
const defaultHead = 1 << 20

func (l *Limit) head() int { return cmp.Or(l.Head, defaultHead) }

// Reader reads the messages of one connection. It holds no buffer before the first read,
// nor after Release. A Reader is for one goroutine at a time.
type Reader struct {
	From  io.Reader // the connection
	Limit Limit

	buf  []byte
	r, w int   // buf[r:w] was read and not used
	held int   // octets that Limit.Hold has counted
	err  error // came with octets; else nil
}

// Buffered returns the octets that were read and not used. They are valid until the next
// call of a method.
func (r *Reader) Buffered() []byte { return r.buf[r.r:r.w] }

// Fill reads from the connection once, behind the octets that are buffered, and returns
// an error when none came: io.ErrShortBuffer when there is no room. An error of the
// connection is not remembered, so that Fill can be called again after a timeout.
func (r *Reader) Fill() error { return r.fill(false) }

// fill is Fill. Within a body the buffer is a larger one after it was full.
func (r *Reader) fill(body bool) error {
	if err := r.err; err != nil {
		r.err = nil
		return err
	}
	switch {
	case r.buf == nil:
		r.buf = buffers.Get().(*[bufferSize]byte)[:]
	case r.r == r.w:
		switch larger := body && r.w >= bufferSize; {
		case larger && len(r.buf) != bodyBufferSize:
			r.free()
			r.buf = bodyBuffers.Get().(*[bodyBufferSize]byte)[:]
		case !larger && len(r.buf) > bufferSize:
			r.free()
			r.buf = buffers.Get().(*[bufferSize]byte)[:]
		}
		r.r, r.w = 0, 0
	case r.w == len(r.buf):
		if r.r == 0 {
			return io.ErrShortBuffer
		}
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
	n, err := r.From.Read(r.buf[r.w:])
	if r.w += n; n > 0 {
		r.err = err
		return nil
	}
	return err
}

// Read implements io.Reader: it returns the buffered octets, and then those of the
// connection, whatever they are. An error that came with octets is returned by the next Read.
func (r *Reader) Read(p []byte) (int, error) {
	switch {
	case r.r < r.w:
		n := copy(p, r.buf[r.r:r.w])
		r.r += n
		return n, nil
	case r.err != nil:
		err := r.err
		r.err = nil
		return 0, err
	case len(p) == 0:
		return 0, nil
	}
	n, err := r.From.Read(p)
	if n > 0 {
		r.err, err = err, nil
	}
	return n, err
}

// Prepend puts an octet back that was read from the connection while no buffer was in use, so
// that the next Read begins with it. It must not be called while octets are buffered. A pending
// error stays, and is returned after the octet.
func (r *Reader) Prepend(c byte) {
	r.free()
	r.buf = buffers.Get().(*[bufferSize]byte)[:]
	r.buf[0], r.w = c, 1
}

// Release gives the buffer back when it is empty, and reports whether it was.
func (r *Reader) Release() bool {
	if r.r < r.w {
		return false
	}
	r.free()
	return true
}

// free gives the buffer back.
func (r *Reader) free() {
	switch len(r.buf) {
	case bufferSize:
		buffers.Put((*[bufferSize]byte)(r.buf))
	case bodyBufferSize:
		bodyBuffers.Put((*[bodyBufferSize]byte)(r.buf))
	}
	r.buf, r.r, r.w = nil, 0, 0
}

// Rest returns the octets that were read and not used, and gives the buffer back: what
// follows is for another reader of the connection. Nil: there are none.
func (r *Reader) Rest() []byte {
	rest := append([]byte(nil), r.Buffered()...)
	r.free()
	return rest
}

// HasHead reports whether the next request can be read without the connection, as most can:
// its head, with no line end before it, is buffered.
func (r *Reader) HasHead() bool {
	b := r.Buffered()
	return len(b) > 0 && b[0] > '\r' && bytes.Contains(b, emptyLine)
}

var emptyLine = []byte("\n\r\n")

// ReadRequest reads the head of a request into h, and decides its framing. A *Fault is
// returned for a head that breaks a rule, io.EOF when the connection ends before it, and
// any other error is the connection's or the one of Limit.Hold. After an error h has what
// could be read: the parts need not be valid, and the connection cannot be used for a
// further message.
func (r *Reader) ReadRequest(h *Head) error { return r.readHead(h, "", false) }

// ReadAnswer reads the head of an answer to a request with a method, as ReadRequest reads
// one of a request. It is called again after a 1xx other than 101. What follows a 101, or
// a 2xx to CONNECT, is Rest and the connection.
func (r *Reader) ReadAnswer(h *Head, method string) error { return r.readHead(h, method, true) }

func (r *Reader) readHead(h *Head, method string, answer bool) error {
	h.reset()
	var scan scanner
	end, err := r.awaitHead(&scan, answer)
	if err != nil {
		r.partial(h, answer)
		return err
	}
	return h.parse(r.take(end), method, answer)
}

// ReadOther reads the head of a request of another protocol, whose fields are those of
// HTTP: those of h, and line is the first line. The error is as for ReadRequest.
func (r *Reader) ReadOther(h *Head) (line string, err error) {
	h.reset()
	end, err := r.awaitHead(&scanner{lineSeen: true}, false)
	if err != nil {
		return "", err
	}
	line, rest, _ := nextLine(r.take(end))
	if fault := h.parseFields(rest, false); fault != nil {
		return line, fault
	}
	return line, nil
}

// take returns the octets of a head that ends at end in buf.
func (r *Reader) take(end int) string {
	text := string(r.buf[r.r:end])
	if r.r = end; r.held > 0 {
		r.Limit.Drop()
		r.held = 0
	}
	r.shrink()
	return text
}

// parse reads a complete head.
func (h *Head) parse(text, method string, answer bool) error {
	line, rest, _ := nextLine(text)
	var fault *Fault
	if answer {
		fault = h.parseStatusLine(line)
	} else {
		fault = h.parseRequestLine(line)
	}
	inFields := h.parseFields(rest, answer)
	switch {
	case fault != nil:
		return fault
	case inFields != nil:
		return inFields
	case answer:
		fault = h.frameAnswer(method)
	default:
		fault = h.frameRequest()
	}
	if fault != nil {
		return fault
	}
	return nil
}

// partial reads what came of a head that is not complete.
func (r *Reader) partial(h *Head, answer bool) {
	line, rest, found := nextLine(string(r.Buffered()))
	switch {
	case answer:
		_ = h.parseStatusLine(line)
	case found:
		_ = h.parseRequestLine(line)
	default:
		h.Method, _, _ = strings.Cut(line, " ")
	}
	_ = h.parseFields(rest, answer)
}

// awaitHead reads until a head is buffered, and returns where it ends in buf.
func (r *Reader) awaitHead(scan *scanner, answer bool) (end int, err error) {
	for begun := false; ; {
		if !answer && !begun {
			begun = r.skipEmptyLines(scan)
		}
		head := r.Buffered()
		if len(head) > 0 && (answer || begun) {
			switch n, fault := scan.next(head[:min(len(head), r.Limit.head())], answer); {
			case n > 0:
				return r.r + n, nil
			case fault != nil:
				return 0, fault
			case len(head) > r.Limit.head():
				return 0, newFault(HeadTooLarge, answer, "")
			}
			if err := r.room(); err != nil {
				return 0, err
			}
		}
		if err := r.Fill(); err != nil {
			if err == io.EOF && len(head) > 0 {
				err = newFault(HeadTruncated, answer, "")
			}
			return 0, err
		}
	}
}

// skipEmptyLines drops line ends before a request. It reports whether the request has
// begun.
func (r *Reader) skipEmptyLines(s *scanner) bool {
	for r.r < r.w && s.skipped < maxEmptyLines && (r.buf[r.r] == '\r' || r.buf[r.r] == '\n') {
		r.r++
		s.skipped++
	}
	return r.r < r.w
}

// room makes room for more octets of a head, which Limit.Hold counts before. Where there
// is enough of it only what the buffer has is counted.
func (r *Reader) room() error {
	size := len(r.buf)
	if r.w-r.r == size {
		size = max(bufferSize, min(2*size, r.Limit.head()+1))
	}
	if more := size - r.held; more > 0 && r.Limit.Hold != nil {
		if err := r.Limit.Hold(more); err != nil {
			return err
		}
		r.held = size
	}
	if size > len(r.buf) {
		next := make([]byte, size)
		n := copy(next, r.buf[r.r:r.w])
		r.free()
		r.buf, r.w = next, n
	}
	return nil
}

// shrink replaces a large buffer when what is left fits into a usual one.
func (r *Reader) shrink() {
	if len(r.buf) <= bufferSize || r.w-r.r > bufferSize {
		return
	}
	next := buffers.Get().(*[bufferSize]byte)[:]
	n := copy(next, r.buf[r.r:r.w])
	r.free()
	r.buf, r.w = next, n
}

// scanner finds the end of a head whose octets come in pieces, and the faults that make
// it useless to wait for more.
type scanner struct {
	skipped  int  // octets of line ends before the head
	searched int  // octets in which no end of the head was found, nor of the first line
	word     int  // octets that the first word of the first line has so far
	lineSeen bool // the first line is complete, and may be one
}

// next returns how many octets the head has; 0: it is not complete.
func (s *scanner) next(head []byte, answer bool) (n int, fault *Fault) {
	if !s.lineSeen {
		if fault := s.firstLine(head, answer); fault != nil {
			return 0, fault
		}
	}
	for i := max(0, s.searched-2); ; i++ {
		next := bytes.IndexByte(head[i:], '\n')
		if next < 0 {
			s.searched = len(head)
			return 0, nil
		}
		i += next
		switch rest := head[i+1:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return i + 2, nil
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return i + 3, nil
		}
	}
}

// firstLine looks at the beginning of a head, which may be another protocol.
func (s *scanner) firstLine(head []byte, answer bool) *Fault {
	end := bytes.IndexByte(head[s.searched:], '\n')
	if end >= 0 {
		end += s.searched
	}
	if answer {
		if n := min(len(head), len(protocol)); string(head[:n]) != protocol[:n] {
			return newFault(NotHTTP, true, "")
		}
		s.lineSeen = end >= 0
		return nil
	}
	for ; s.word < len(head); s.word++ {
		switch i, c := s.word, head[s.word]; {
		case httpguts.IsTokenRune(rune(c)):
			continue
		case c == '\n', c == '\r' && i+1 == end: // a line of one word
			return newFault(BadRequestLine, false, "")
		case c == '\r' && i+1 == len(head):
			return nil
		case c != ' ' || i == 0:
			return newFault(BadMethod, false, "")
		}
		break
	}
	if end < 0 {
		return nil
	}
	s.lineSeen = true
	if !bytes.Contains(head[:end], blankProtocol) {
		line, _, _ := nextLine(string(head[:end+1]))
		return (&Head{}).parseRequestLine(line)
	}
	return nil
}

var blankProtocol = []byte(" " + protocol)
