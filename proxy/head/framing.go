package head

import (
	"bytes"
	"strconv"

	"golang.org/x/net/http/httpguts"
)

func isToken(b []byte) bool {
	for _, c := range b {
		if !httpguts.IsTokenRune(rune(c)) {
			return false
		}
	}
	return true
}

// headEnd returns where the head that b begins with ends; -1 when it does not. The
// first octets of b were searched before.
func headEnd(b []byte, searched int) int {
	for i := max(0, searched-2); ; i++ {
		next := bytes.IndexByte(b[i:], '\n')
		if next < 0 {
			return -1
		}
		i += next
		switch rest := b[i+1:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return i + 2
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return i + 3
		}
	}
}

// targetOf returns where the target of a head is that may hold a "%"; 0 and 0 for none.
func targetOf(head []byte) (from, to int) {
	end := bytes.IndexByte(head, '\n')
	if end < 0 || bytes.IndexByte(head[:end], '%') < 0 || bytes.HasPrefix(head, connectMethod) {
		return 0, 0
	}
	from = bytes.IndexByte(head[:end], ' ') + 1
	if length := bytes.IndexByte(head[from:end], ' '); from > 0 && length > 0 {
		return from, from + length
	}
	return 0, 0
}

// framing returns what follows a head, and the length of a body. Where net/http could
// read the fields in another way than here, that is unchanged.
func framing(head []byte) (next state, length int64) {
	line, rest, _ := bytes.Cut(head, lineEnd)
	line = bytes.TrimSuffix(line, carriageReturn)
	modern := bytes.HasSuffix(line, http11)
	if !modern && !bytes.HasSuffix(line, http10) {
		return unchanged, 0
	}
	length = -1
	chunked := false
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, lineEnd)
		if len(line) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(line, colon)
		name = bytes.TrimRight(name, " \t")
		switch {
		case len(name) == len(contentLength) && bytes.EqualFold(name, contentLength):
			n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 62)
			if err != nil || length >= 0 && length != int64(n) || isFolded(rest) {
				return unchanged, 0
			}
			length = int64(n)
		case len(name) == len(transferEncoding) && bytes.EqualFold(name, transferEncoding):
			if chunked || !modern || !bytes.EqualFold(bytes.TrimSpace(value), chunkedCoding) || isFolded(rest) {
				return unchanged, 0
			}
			chunked = true
		}
	}
	switch {
	case chunked && length >= 0:
		return unchanged, 0
	case chunked:
		return inChunks, 0
	case length > 0:
		return inBody, length
	}
	return between, 0
}

// isFolded reports whether a line continues the one before.
func isFolded(line []byte) bool { return len(line) > 0 && (line[0] == ' ' || line[0] == '\t') }

var (
	connectMethod    = []byte("CONNECT ")
	lineEnd          = []byte("\n")
	carriageReturn   = []byte("\r")
	colon            = []byte(":")
	http10           = []byte(" HTTP/1.0")
	http11           = []byte(" HTTP/1.1")
	contentLength    = []byte("content-length")
	transferEncoding = []byte("transfer-encoding")
	chunkedCoding    = []byte("chunked")
)

// readBody passes on octets of a body, or of anything, as they are.
func (r *Reader) readBody(p []byte) (int, error) {
	if r.state == inBody {
		p = p[:min(int64(len(p)), r.left)]
	}
	n, err := r.fill(p)
	switch r.state {
	case inBody:
		if r.left -= int64(n); r.left == 0 {
			r.state = between
		}
	case inChunks:
		end := r.chunks.pass(p[:n])
		if r.chunks.at == broken {
			r.state = unchanged
		} else if r.chunks.at == ended {
			r.unread(p[end:n])
			r.state, n = between, end
		}
	case unchanged:
		if hold := r.limit.Hold(n); n > 0 && hold != nil {
			return 0, hold
		}
	}
	return n, err
}

// chunks follows a chunked body (RFC 9112 §7.1). The zero value is at its beginning.
type chunks struct {
	at     chunkState
	digits int   // of the size that is being read
	left   int64 // of the data of a chunk
}

type chunkState uint8

const (
	inSize      chunkState = iota // the digits of a size
	inExtension                   // what follows them, up to the line's end
	atSizeEnd                     // the line feed of that line
	inData
	atDataEnd     // the line end of the data
	atDataFeed    // the line feed of it
	inTrailer     // the beginning of a line of the trailer section
	inTrailerLine // the rest of it
	atTrailerFeed // the line feed of such a line
	atLastFeed    // the line feed of the empty line
	ended
	broken // what came is no chunked body, or one that could be read in several ways
)

// pass takes note of octets on their way, up to the end of the body, and returns how
// many belong to it.
func (c *chunks) pass(p []byte) int {
	for i := 0; i < len(p); i++ {
		if c.at == inData {
			n := min(c.left, int64(len(p)-i))
			i += int(n) - 1
			if c.left -= n; c.left == 0 {
				c.at = atDataEnd
			}
			continue
		}
		if c.at = c.next(p[i]); c.at == ended || c.at == broken {
			return i + 1
		}
	}
	return len(p)
}

// expect returns the state after an octet that has to be want.
func expect(octet, want byte, then chunkState) chunkState {
	if octet != want {
		return broken
	}
	return then
}

// next returns the state after an octet that is not data.
func (c *chunks) next(octet byte) chunkState {
	switch c.at {
	case inSize:
		return c.size(octet)
	case inExtension:
		return c.lineOctet(octet, inExtension, atSizeEnd)
	case atSizeEnd:
		then := inData
		if c.left == 0 {
			then = inTrailer
		}
		c.digits = 0
		return expect(octet, '\n', then)
	case atDataEnd:
		return expect(octet, '\r', atDataFeed)
	case atDataFeed:
		return expect(octet, '\n', inSize)
	case inTrailer:
		return c.lineOctet(octet, inTrailerLine, atLastFeed)
	case inTrailerLine:
		return c.lineOctet(octet, inTrailerLine, atTrailerFeed)
	case atTrailerFeed:
		return expect(octet, '\n', inTrailer)
	default: // atLastFeed
		return expect(octet, '\n', ended)
	}
}

// lineOctet returns the state after an octet of a line.
func (c *chunks) lineOctet(octet byte, in, atEnd chunkState) chunkState {
	switch octet {
	case '\r':
		return atEnd
	case '\n':
		return broken
	}
	return in
}

// size takes a digit of a chunk's size, or what follows the digits.
func (c *chunks) size(octet byte) chunkState {
	if v, err := strconv.ParseUint(string([]byte{octet}), 16, 8); err == nil && c.digits < 15 {
		c.left = c.left<<4 | int64(v)
		c.digits++
		return inSize
	}
	switch {
	case c.digits == 0:
		return broken
	case octet == '\r':
		return atSizeEnd
	case octet == ';':
		return inExtension
	}
	return broken
}
