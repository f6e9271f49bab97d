package http1

import (
	"io"
	"net/http"
)

// Bounds of a chunked body.
const (
	maxChunkLine = 4 << 10  // octets of a line with a chunk's size
	maxTrailer   = 4 << 10  // octets of a trailer section
	maxExcess    = 16 << 10 // octets beyond the data and what framing it needs
	chunkNeeds   = 16       // octets that framing a chunk may take
)

// Body reads the body that follows a head. Read returns io.EOF at the exact end of the
// message, and leaves what follows in the Reader; with a *Fault for a body that is cut
// off, or whose chunks break a rule. Any other error is the connection's.
type Body struct {
	// Trailer is where the fields of the trailer section are put when Read returns io.EOF,
	// without those that frame a message. Nil: a map is made for them.
	Trailer http.Header

	from    *Reader
	answer  bool
	framing Framing
	at      chunkState
	left    int64  // octets of a body with a length, or of a chunk
	digits  int    // of the size that is being read
	line    int    // octets of the line with the size
	excess  int64  // octets that were not needed
	section []byte // trailer section, as far as it came
	err     error  // that Read returns from now on; io.EOF at the end
}

// Reset makes b the body that follows h on r, which has just read h.
func (b *Body) Reset(r *Reader, h *Head) {
	*b = Body{from: r, answer: h.Status != 0, framing: h.Framing}
	if h.Framing == Sized {
		b.left = h.Length
	}
	if h.Framing == NoBody || h.Framing == Sized && h.Length == 0 {
		b.err = io.EOF
	}
}

// Ended reports whether the message has been read to its end, so that the next one can
// follow on the connection.
func (b *Body) Ended() bool { return b.err == io.EOF && b.framing != UntilClose }

// Close implements io.Closer. It does nothing: the connection's owner decides what becomes
// of octets that were not read.
func (b *Body) Close() error { return nil }

// Read implements io.Reader. It returns io.EOF with the last octets where the end is known
// with them.
func (b *Body) Read(p []byte) (n int, err error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	case b.framing == Chunked:
		return b.readChunks(p)
	}
	if b.framing == Sized {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err = b.readData(p)
	switch {
	case b.framing == UntilClose:
		if err == io.EOF {
			b.err = io.EOF
		}
		return n, err
	case err == io.EOF:
		return n, b.fail(BodyTruncated)
	}
	if b.left -= int64(n); b.left == 0 && err == nil {
		b.err = io.EOF
		return n, io.EOF
	}
	return n, err
}

// fail makes the fault the end of b.
func (b *Body) fail(kind Kind) error {
	b.err = newFault(kind, b.answer, "")
	return b.err
}

// readData reads octets into p, at most as many as belong to the body. A large p takes
// them from the connection directly.
func (b *Body) readData(p []byte) (int, error) {
	r := b.from
	if r.r == r.w && len(p) < max(bufferSize, len(r.buf)) {
		if err := r.fill(true); err != nil {
			return 0, err
		}
	}
	return r.Read(p)
}

// readChunks reads data of chunks into p. It waits only before the first octet.
func (b *Body) readChunks(p []byte) (n int, err error) {
	for {
		if b.frame(); b.err != nil {
			return n, b.err
		}
		if b.at != inData {
			if n > 0 {
				return n, nil
			}
			if err = b.fill(); err != nil {
				return 0, err
			}
			continue
		}
		if n == len(p) || n > 0 && b.from.r == b.from.w {
			return n, nil
		}
		end := n + int(min(int64(len(p)-n), b.left))
		m, err := b.readData(p[n:end])
		if err == io.EOF {
			err = b.fail(BodyTruncated)
		}
		if n, b.left = n+m, b.left-int64(m); b.left == 0 {
			b.at = atDataEnd
		}
		if err != nil {
			return n, err
		}
	}
}

// fill reads from the connection, which must not end.
func (b *Body) fill() error {
	err := b.from.fill(true)
	if err == io.EOF {
		return b.fail(BodyTruncated)
	}
	return err
}

// chunkState is what comes next of a chunked body (RFC 9112 §7.1).
type chunkState uint8

const (
	inSize        chunkState = iota // the digits of a size
	inPadding                       // blanks behind them
	inExtension                     // extensions, up to the line's end
	atSizeEnd                       // the line feed of that line
	inData                          // left octets
	atDataEnd                       // the line end of the data
	atDataFeed                      // the line feed of it
	inTrailer                       // the beginning of a line of the trailer section
	inTrailerLine                   // the rest of it
	atTrailerFeed                   // the line feed of such a line
	atLastFeed                      // the line feed of the empty line
)

// frame takes the buffered octets up to data, or to the end.
func (b *Body) frame() {
	for r := b.from; b.err == nil && b.at != inData && r.r < r.w; {
		c := r.buf[r.r]
		r.r++
		if fault := b.next(c); fault != 0 {
			b.err = newFault(fault, b.answer, "")
		}
	}
}

// next takes an octet that is not data.
func (b *Body) next(c byte) Kind {
	switch b.at {
	case inSize, inPadding, inExtension:
		return b.sizeLine(c)
	case atSizeEnd:
		if c != '\n' {
			return BadChunkLine
		}
		return b.begin()
	case atDataEnd:
		return b.expect(c, '\r', atDataFeed, BadChunkEnd)
	case atDataFeed:
		b.digits, b.line = 0, 0
		return b.expect(c, '\n', inSize, BadChunkEnd)
	}
	return b.trailerOctet(c)
}

// expect takes an octet that has to be want.
func (b *Body) expect(c, want byte, then chunkState, fault Kind) Kind {
	if c != want {
		return fault
	}
	b.at = then
	return 0
}

// sizeLine takes an octet of the line that begins a chunk.
func (b *Body) sizeLine(c byte) Kind {
	if b.line++; b.line > maxChunkLine-2 && c != '\r' {
		return ChunkTooWordy
	}
	digit, isDigit := hexDigit(c)
	switch {
	case b.at == inSize && isDigit:
		if b.digits++; b.digits > 16 || b.left >= 1<<59 {
			return BadChunkSize
		}
		b.left = b.left<<4 | digit
	case b.digits == 0:
		return BadChunkSize
	case c == '\r':
		b.at = atSizeEnd
	case c == '\n':
		return BadChunkLine
	case b.at == inExtension:
	case c == ';' && b.at == inSize:
		b.at = inExtension
	case isBlank(c):
		b.at = inPadding
	default:
		return BadChunkSize
	}
	return 0
}

func hexDigit(c byte) (digit int64, ok bool) {
	switch {
	case c >= '0' && c <= '9':
		return int64(c - '0'), true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int64(c|0x20-'a') + 10, true
	}
	return 0, false
}

// begin takes the end of the line that begins a chunk.
func (b *Body) begin() Kind {
	b.excess = max(0, b.excess+int64(b.line)+1-chunkNeeds-2*min(b.left, maxExcess))
	switch {
	case b.excess > maxExcess:
		return ChunkTooWordy
	case b.left == 0:
		b.at = inTrailer
	default:
		b.at = inData
	}
	return 0
}

// trailerOctet takes an octet of the trailer section.
func (b *Body) trailerOctet(c byte) Kind {
	switch b.at {
	case atLastFeed:
		if c != '\n' {
			return BadTrailer
		}
		return b.end()
	case atTrailerFeed:
		b.section = append(b.section, c)
		return b.expect(c, '\n', inTrailer, BadTrailer)
	}
	switch {
	case c == '\n':
		return BadTrailer
	case len(b.section) >= maxTrailer-4:
		return TrailerTooLarge
	case c == '\r' && b.at == inTrailer:
		b.at = atLastFeed
		return 0
	case c == '\r':
		b.at = atTrailerFeed
	default:
		b.at = inTrailerLine
	}
	b.section = append(b.section, c)
	return 0
}

// end takes the fields of the trailer section, and ends the message.
func (b *Body) end() Kind {
	b.err = io.EOF
	if len(b.section) == 0 {
		return 0
	}
	var h Head
	if fault := h.parseFields(string(b.section), false); fault != nil {
		return BadTrailer
	}
	b.section = nil
	if b.Trailer == nil {
		b.Trailer = make(http.Header, len(h.Fields))
	}
	came := make(http.Header, len(h.Fields))
	for _, f := range h.Fields {
		if !isOwn(f.Key) && f.Key != host {
			came[f.Key] = append(came[f.Key], f.Value)
		}
	}
	for key, values := range came {
		b.Trailer[key] = values
	}
	return 0
}
