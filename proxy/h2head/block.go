package h2head

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"heed/proxy/limit"
)

// connError is a fault that ends a connection (RFC 9113 §5.4.1).
type connError struct {
	text string
	bait string // a frame for which net/http ends the connection with the right code
}

// Error implements error.
func (e *connError) Error() string { return e.text }

const (
	// baitOrder is a CONTINUATION frame that continues nothing: PROTOCOL_ERROR.
	baitOrder = "\x00\x00\x00\x09\x04\x00\x00\x00\x01"
	// baitIndex is a HEADERS frame with a field of index 0: COMPRESSION_ERROR.
	baitIndex = "\x00\x00\x01\x01\x04\x00\x00\x00\x01\x80"
	// baitSize is the beginning of a frame that is too large: FRAME_SIZE_ERROR.
	baitSize = "\xff\xff\xff\x01\x04\x00\x00\x00\x01"
)

var (
	errOrder       = &connError{"HTTP/2: a header block is not HEADERS followed by its CONTINUATION frames (RFC 9113, section 6.10)", baitOrder}
	errUsed        = errors.New("HTTP/2: a request on a stream that was used before, or passed over (RFC 9113, section 5.1.1)")
	errStream      = &connError{"HTTP/2: HEADERS on a stream that a client cannot open (RFC 9113, section 5.1.1)", baitOrder}
	errPadding     = &connError{"HTTP/2: HEADERS with padding or a priority that exceeds the frame (RFC 9113, section 6.2)", baitOrder}
	errMany        = &connError{"HTTP/2: a header block in too many CONTINUATION frames", baitOrder}
	errCompression = &connError{"HTTP/2: a header block that cannot be decoded (RFC 9113, section 4.3)", baitIndex}
	errLost        = &connError{fmt.Sprintf("HTTP/2: more than %d requests that get no answer on one connection", maxLost), baitOrder}
	errFrameSize   = &connError{"HTTP/2: a frame that is larger than SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 4.2)", baitSize}
)

// baitReset is a header block for which net/http resets the stream: a request without a
// target, or trailers with a field that is not for them. net/http has opened the stream
// then, so that what else comes on it is no fault of the connection.
var baitReset = []hpack.HeaderField{{Name: ":method", Value: http.MethodGet}}

// block is a header block that is being read.
type block struct {
	frame  frame // HEADERS
	opens  bool  // the stream: it is a request
	rest   int   // octets of the frame that is being read
	more   bool  // CONTINUATION frames follow it
	fields []hpack.HeaderField
	size   int  // of the fields, counted as in RFC 9113 §6.5.2
	large  bool // the fields are not all: size exceeds the limit
	octets int  // encoded, with the headers of the frames
	frames int
	held   int  // octets that Hold has counted
	timed  bool // there is a deadline for reading
	itself bool // the stream depends on itself
}

func (b *block) begin(f frame, opens bool) {
	clear(b.fields)
	*b = block{frame: f, opens: opens, fields: b.fields[:0]}
	b.beginFrame(f)
}

func (b *block) beginFrame(f frame) {
	b.rest, b.more = f.length, f.kind != kindData && f.flags&flagEndHeaders == 0
}

// isTrailers reports whether b is the end of an earlier request, as far as it was read.
func (b *block) isTrailers() bool {
	return !b.opens && b.frame.kind == kindHeaders && b.frame.stream%2 == 1 &&
		!slices.ContainsFunc(b.fields, func(f hpack.HeaderField) bool { return strings.HasPrefix(f.Name, ":") })
}

// readHead reads the rest of a header block, which begins with f, and passes on what
// takes its place.
func (r *Reader) readHead(f frame) error {
	b := &r.block
	b.begin(f, f.stream > r.newest)
	r.decoder.SetEmitEnabled(true)
	err := r.readBlock(f)
	if b.timed {
		_ = r.conn.SetReadDeadline(time.Time{})
	}
	if b.held > 0 {
		r.limit.Drop()
	}
	var fault *connError
	var over *limit.Exceeded
	switch {
	case errors.As(err, &fault):
		r.fail(fault)
	case errors.As(err, &over) && !b.opens:
		r.fail(over)
	case errors.As(err, &over):
		r.newest, r.cut = f.stream, true
		r.streams.begin(f.stream, clientEnded)
		r.emit(f.stream, flagEndStream, refused(b.fields, Note{Over: over, Last: true}))
	case err != nil:
		return err
	case !b.opens:
		r.passTrailers()
	default:
		r.newest = f.stream
		r.passRequest()
	}
	if b.size > keptSize {
		b.fields = nil
	}
	return nil
}

// passRequest passes on the request of a complete block.
func (r *Reader) passRequest() {
	b := &r.block
	ended := b.frame.flags & flagEndStream
	if r.streams.begin(b.frame.stream, sideOf(ended)) > r.limit.Streams {
		r.lose(r.limit.Exceeded(limit.Streams), ended)
		return
	}
	note := &Note{}
	switch {
	case b.itself:
		note.Fault, note.reset = "the stream depends on itself (RFC 7540, section 5.3.1)", true
	case b.large:
		note.Over = r.limit.Exceeded(limit.HeaderBytes)
	default:
		note = check(b.fields, ended != 0)
	}
	fields := b.fields
	switch {
	case note != nil && note.reset:
		r.lose(errors.New("HTTP/2: "+note.Fault), ended)
		return
	case note != nil && note.Refused():
		fields = refused(fields, *note)
	case note != nil:
		fields = append(fields, note.field())
	}
	r.emit(b.frame.stream, ended, fields)
}

// lose reports the request of a complete block, for err, and has net/http reset its stream,
// or end the connection where too many were lost before it.
func (r *Reader) lose(err error, ended byte) {
	if r.lost++; r.lost > maxLost {
		r.fail(errLost)
		return
	}
	r.report(err)
	r.emit(r.block.frame.stream, ended, baitReset)
}

// passTrailers passes on a block that opens no stream. net/http decides what it is.
func (r *Reader) passTrailers() {
	b := &r.block
	fields := b.fields
	if !b.isTrailers() {
		r.report(errUsed)
	}
	r.streams.end(b.frame.stream, sideOf(b.frame.flags))
	if b.large || b.itself {
		fields = baitReset
	}
	r.emit(b.frame.stream, b.frame.flags&flagEndStream, fields)
}

// readBlock decodes a header block, of which the header of the first frame was read.
func (r *Reader) readBlock(f frame) error {
	switch {
	case f.length > r.limit.Frame:
		return errFrameSize
	case f.kind == kindContinuation:
		return errOrder
	case f.stream%2 == 0:
		return errStream
	}
	padding, err := r.readPrefix(&f)
	for {
		if err != nil {
			return err
		}
		if err := r.decode(f.length); err != nil {
			return err
		}
		if err := r.discard(padding); err != nil {
			return err
		}
		if f.flags&flagEndHeaders != 0 {
			break
		}
		padding = 0
		f, err = r.readContinuation()
	}
	if r.decoder.Close() != nil {
		return errCompression
	}
	return nil
}

// readPrefix reads what comes before the header block in a HEADERS frame, and removes it
// and the padding from f's length.
func (r *Reader) readPrefix(f *frame) (padding int, err error) {
	n := 0
	if f.flags&flagPadded != 0 {
		n++
	}
	if f.flags&flagPriority != 0 {
		n += 5
	}
	if n > f.length {
		return 0, errPadding
	}
	prefix, err := r.await(n)
	if err != nil {
		return 0, err
	}
	if f.flags&flagPadded != 0 {
		padding = int(prefix[0])
	}
	if f.flags&flagPriority != 0 {
		r.block.itself = binary.BigEndian.Uint32(prefix[n-5:])&^(1<<31) == f.stream
	}
	r.consume(n)
	if f.length -= n + padding; f.length < 0 {
		return 0, errPadding
	}
	return padding, nil
}

// readContinuation reads the header of the frame that continues the block.
func (r *Reader) readContinuation() (f frame, err error) {
	header, err := r.await(frameHeader)
	if err != nil {
		return f, err
	}
	f = parseFrame(header)
	b := &r.block
	b.frames++
	switch {
	case f.kind != kindContinuation || f.stream != b.frame.stream:
		return f, errOrder
	case f.length > r.limit.Frame:
		return f, errFrameSize
	case b.frames > 8+r.limit.Head>>10: // the decoder may copy all that it has, for each
		return f, errMany
	}
	_, _ = r.from.Discard(frameHeader)
	b.beginFrame(f)
	b.octets += frameHeader
	return f, nil
}

// decode decodes the next n octets.
func (r *Reader) decode(n int) error {
	for b := &r.block; n > 0; {
		part, err := r.await(min(n, bufferSize))
		if err != nil {
			return err
		}
		if b.octets += len(part); b.octets > 8*r.limit.Head {
			return r.limit.Exceeded(limit.HeaderBytes)
		}
		if _, err := r.decoder.Write(part); errors.Is(err, hpack.ErrStringLength) {
			return r.limit.Exceeded(limit.HeaderBytes)
		} else if err != nil {
			return errCompression
		}
		n -= len(part)
		r.consume(len(part))
	}
	return nil
}

// discard reads n octets that mean nothing.
func (r *Reader) discard(n int) error {
	if n == 0 {
		return nil
	}
	if _, err := r.await(n); err != nil { // at most 255
		return err
	}
	r.consume(n)
	return nil
}

// consume takes n octets of a frame that await has returned.
func (r *Reader) consume(n int) {
	_, _ = r.from.Discard(n)
	r.block.rest -= n
}

// skip discards what is left of a header block that is given up.
func (r *Reader) skip() error {
	b := &r.block
	for {
		if _, err := io.CopyN(io.Discard, r.from, int64(b.rest)); err != nil {
			return err
		}
		if b.rest = 0; !b.more {
			return nil
		}
		header, err := r.from.Peek(frameHeader)
		if err != nil {
			return err
		}
		f := parseFrame(header)
		if b.beginFrame(f); f.kind != kindContinuation {
			b.rest, b.more = 0, false
			return nil // net/http ends the connection if it has to
		}
		_, _ = r.from.Discard(frameHeader)
	}
}

// drop discards a header block that cannot be decoded any more, or DATA.
func (r *Reader) drop(f frame) {
	r.block.begin(f, f.stream > r.newest)
	if f.kind == kindHeaders && f.stream < r.newest { // trailers
		r.emit(f.stream, flagEndStream, baitReset)
	}
}

// keep takes a field of the block.
func (r *Reader) keep(f hpack.HeaderField) {
	b := &r.block
	if f.Name == noteName {
		return // it would be taken for ours
	}
	if b.size += int(f.Size()); b.size > r.limit.Head {
		b.large = true
		r.decoder.SetEmitEnabled(false)
		return
	}
	b.fields = append(b.fields, f)
}

// await returns the next n octets of a header block, at most bufferSize, without
// consuming them. While it waits for them, what is kept of the block counts.
func (r *Reader) await(n int) ([]byte, error) {
	b := &r.block
	if r.from.Buffered() < n {
		kept := bufferSize + b.size + min(b.octets, r.limit.Head)
		if more := kept - b.held; more > 0 {
			if err := r.limit.Hold(more); err != nil {
				return nil, err
			}
			b.held = kept
		}
		if !b.timed {
			b.timed = true
			if err := r.conn.SetReadDeadline(time.Now().Add(r.limit.Time)); err != nil {
				return nil, err
			}
		}
	}
	next, err := r.from.Peek(n)
	if b.timed && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, r.limit.Exceeded(limit.HeaderTime)
	}
	return next, err
}

// fail ends the connection for a fault in a header block.
func (r *Reader) fail(err error) {
	if !r.block.isTrailers() { // their request is recorded
		r.report(err)
	}
	bait := baitOrder
	if fault, ok := err.(*connError); ok {
		bait = fault.bait
	}
	r.out, r.ended = []byte(bait), true
}

// report reports a request that is not answered.
func (r *Reader) report(err error) {
	q := parse(r.block.fields)
	seen := &http.Request{Method: q.value[method], RequestURI: q.value[path], Header: http.Header{}}
	if q.agent != "" {
		seen.Header.Set("User-Agent", q.agent)
	}
	r.broken(seen, err)
}
