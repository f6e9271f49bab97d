package http1

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
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

	Extension string // of the last chunk, when Read has returned io.EOF

	from    *Reader
	answer  bool
	framing Framing
	at      chunkState
	left    int64 // octets of a body with a length, or of a chunk
	excess  int64 // octets that were not needed
	err     error // that Read returns from now on; io.EOF at the end
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

// readChunks reads data of chunks into p. It waits only before the first byte.
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
	inSize    chunkState = iota // the line that begins a chunk
	inData                      // left octets
	atDataEnd                   // the line end of the data
	inTrailer                   // the trailer section
)

// frame takes the buffered octets up to data, or to the end.
func (b *Body) frame() {
	for b.err == nil && b.at != inData {
		n, fault := b.next(b.from.Buffered())
		switch b.from.r += n; {
		case fault != 0:
			b.err = newFault(fault, b.answer, "")
		case n == 0:
			return
		}
	}
}

// next takes what text begins with, which is not data, and returns how many octets it has; 0:
// more have to come.
func (b *Body) next(text []byte) (n int, fault Kind) {
	switch b.at {
	case inSize:
		return b.sizeLine(text)
	case inTrailer:
		return b.trailerSection(text)
	}
	const end = "\r\n"
	switch n = min(len(text), len(end)); {
	case string(text[:n]) != end[:n]:
		return 0, BadChunkEnd
	case n < len(end):
		return 0, 0
	}
	b.at = inSize
	return n, 0
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// sizeLine takes the line that begins a chunk. What is wrong with the size is a fault before
// the line has ended.
func (b *Body) sizeLine(text []byte) (n int, fault Kind) {
	if len(text) == 0 {
		return 0, 0
	}
	line, end := text, bytes.IndexAny(text, "\r\n")
	if end >= 0 {
		line = text[:end]
	}
	digits := 0
	for digits < len(line) && isHex(line[digits]) {
		digits++
	}
	behind := line[digits:]
	size, err := strconv.ParseUint(string(line[:digits]), 16, 63)
	switch {
	case err != nil, digits > 16, len(bytes.Trim(behind, " \t")) > 0 && behind[0] != ';':
		return 0, BadChunkSize
	case len(line) > maxChunkLine-len("\r\n"):
		return 0, ChunkTooWordy
	case end < 0, text[end] == '\r' && end+1 == len(text):
		return 0, 0
	case text[end] == '\n', text[end+1] != '\n':
		return 0, BadChunkLine
	}
	n, b.left = end+len("\r\n"), int64(size)
	b.excess = max(0, b.excess+int64(n)-chunkNeeds-2*min(b.left, maxExcess))
	switch {
	case b.excess > maxExcess:
		return 0, ChunkTooWordy
	case b.left == 0:
		b.at, b.Extension = inTrailer, string(bytes.TrimLeft(behind, "; \t"))
	default:
		b.at = inData
	}
	return n, 0
}

// trailerSection takes the trailer section with the empty line that ends it, and ends the
// message.
func (b *Body) trailerSection(text []byte) (n int, fault Kind) {
	for {
		line, _, found := bytes.Cut(text[n:], []byte("\n"))
		switch {
		case n+len(line) > maxTrailer-4:
			return 0, TrailerTooLarge
		case !found:
			return 0, 0
		case !bytes.HasSuffix(line, []byte("\r")):
			return 0, BadTrailer
		case len(line) == 1:
			return n + len("\r\n"), b.end(string(text[:n]))
		}
		n += len(line) + 1
	}
}

// end takes the fields of the trailer section, and ends the message.
func (b *Body) end(section string) Kind {
	b.err = io.EOF
	if section == "" {
		return 0
	}
	var h Head
	if fault := h.parseFields(section, false); fault != nil {
		return BadTrailer
	}
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
