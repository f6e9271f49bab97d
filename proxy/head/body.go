package head

import (
	"bytes"
	"strconv"
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
		if hold := r.Limit.Hold(n); n > 0 && hold != nil {
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

// Rest returns the octets that were read from the connection and not passed on, and
// ends the use of r: the connection is not HTTP any more.
func (r *Reader) Rest() []byte {
	rest := r.out
	if r.state == inHead {
		rest = r.head[r.passed:]
	}
	rest = append(bytes.Clone(rest), r.ahead...)
	r.state, r.out, r.ahead, r.head = unchanged, nil, nil, nil
	return rest
}
