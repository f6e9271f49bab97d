package h2head

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2/hpack"

	"heed/proxy/limit"
)

// Limit bounds the heads of a connection. All fields must be set.
type Limit struct {
	Head    int           // octets of a head, counted as in RFC 9113 §6.5.2
	Frame   int           // octets of a frame's payload, as net/http has it
	Streams int           // at a time, as net/http has it
	Time    time.Duration // from the first octets of a head that is incomplete to its last

	// Hold is called before octets of an incomplete head are kept, and returns the limit
	// that stops them. Drop is called when none are kept any more.
	Hold func(octets int) error
	Drop func()

	// Exceeded counts that a limit was reached.
	Exceeded func(limit.Kind) *limit.Exceeded
}

// ListSize returns the MaxHeaderBytes of an http.Server that takes every request that a
// Reader with at most head octets per head passes on, with its Note.
func ListSize(head int) int { return 2*head + 4<<10 }

// Reader reads the frames of a client. Make it with NewReader. It must be read by one
// goroutine at a time.
type Reader struct {
	conn   net.Conn
	from   *bufio.Reader // of conn
	limit  Limit
	broken func(seen *http.Request, err error)

	out    []byte // to be passed on first
	pass   int    // octets of the connection to be passed on after out
	newest uint32 // the largest stream that a request came on
	ended  bool   // what else comes is discarded
	cut    bool   // a head was given up: what else comes on its stream, and heads, are discarded
	lost   int    // requests that were reported

	streams streams
	block   block
	decoder *hpack.Decoder // of the client's header blocks
	encoder *hpack.Encoder // of those for net/http; writes to encoded
	encoded bytes.Buffer
}

const (
	bufferSize = 1 << 10   // most heads of a connection fit
	keptSize   = 4 << 10   // octets that may be kept with an idle connection
	tableSize  = 4 << 10   // of HPACK's dynamic tables: RFC 9113 §6.5.2, and what net/http announces
	maxDrain   = 256 << 10 // octets that are read after the end of a connection
	maxBack    = 2         // times Streams: how many more requests are taken back before their answers than are answered
	maxLost    = 1000      // requests without an answer: a client that goes on after them costs its connection
)

// preface is how many octets begin a connection (RFC 9113 §3.4).
const preface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// NewReader returns a Reader of the frames that come from c, and sets deadlines for
// reading on it. broken is called with what could be read of a request for which
// the stream is reset or the connection ended, and the reason, which may be a
// *limit.Exceeded.
func NewReader(c net.Conn, l Limit, broken func(seen *http.Request, err error)) *Reader {
	r := &Reader{conn: c, from: bufio.NewReaderSize(c, bufferSize), limit: l, broken: broken, pass: preface}
	r.decoder = hpack.NewDecoder(tableSize, r.keep)
	r.decoder.SetMaxStringLength(l.Head)
	r.encoder = hpack.NewEncoder(&r.encoded)
	return r
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.out) == 0 && r.pass == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if len(r.out) == 0 {
		n, err := r.from.Read(p[:min(len(p), r.pass)])
		r.pass -= n
		return n, err
	}
	n := copy(p, r.out)
	if r.out = r.out[n:]; len(r.out) == 0 {
		r.out = nil
		if r.encoded.Cap() > keptSize {
			r.encoded = bytes.Buffer{}
		}
	}
	return n, nil
}

// next takes the next frame, and with HEADERS the CONTINUATION frames after it.
func (r *Reader) next() error {
	if r.ended { // net/http closes the connection, later than at once for a client that stops
		if _, err := io.CopyN(io.Discard, r.from, maxDrain); err != nil {
			return err
		}
		return io.EOF
	}
	if r.cut {
		if err := r.skip(); err != nil {
			return err
		}
	}
	header, err := r.from.Peek(frameHeader)
	if err != nil {
		return err
	}
	f := parseFrame(header)
	isHead := f.kind == kindHeaders || f.kind == kindContinuation
	if !isHead {
		r.encoded.Reset()
		r.encoded.Write(header)
	}
	_, _ = r.from.Discard(frameHeader) // it is in the buffer
	switch {
	case isHead && r.cut, r.cut && f.kind == kindData && f.stream == r.newest:
		r.drop(f)
		return nil
	case isHead:
		return r.readHead(f)
	}
	if f.kind != kindReset {
		r.streams.end(f.stream, f.ends(clientEnded))
	} else if most := maxBack * r.limit.Streams; r.streams.takeBack(f.stream) > most {
		r.block.begin(f, true) // without fields
		r.fail(&connError{fmt.Sprintf("HTTP/2: the client has taken back more than %d requests before their answers", most), baitOrder})
		return nil
	}
	r.out, r.pass = r.encoded.Bytes(), f.length
	return nil
}

// Wrote has to be called with what the server writes to the client, before it is written.
func (r *Reader) Wrote(p []byte) { r.streams.wrote(p) }

// frame is the header of a frame (RFC 9113 §4.1).
type frame struct {
	length      int // of the payload
	kind, flags byte
	stream      uint32
}

const (
	frameHeader = 9 // octets

	kindData         = 0x0
	kindHeaders      = 0x1
	kindReset        = 0x3 // RST_STREAM
	kindContinuation = 0x9

	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

func parseFrame(b []byte) frame {
	return frame{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]), kind: b[3], flags: b[4],
		stream: binary.BigEndian.Uint32(b[5:]) &^ (1 << 31),
	}
}

// put writes f to the beginning of b.
func (f frame) put(b []byte) {
	b[0], b[1], b[2], b[3], b[4] = byte(f.length>>16), byte(f.length>>8), byte(f.length), f.kind, f.flags
	binary.BigEndian.PutUint32(b[5:], f.stream)
}

// emit passes on a header block on a stream that contains the given fields.
func (r *Reader) emit(stream uint32, flags byte, fields []hpack.HeaderField) {
	r.encoded.Reset()
	r.encoded.Write(make([]byte, frameHeader))
	for _, f := range fields {
		r.encode(f)
	}
	r.out = r.encoded.Bytes()
	f := frame{kind: kindHeaders, flags: flags | flagEndHeaders, stream: stream, length: len(r.out) - frameHeader}
	if f.length > r.limit.Frame {
		r.out = split(f, r.out[frameHeader:], r.limit.Frame)
		return
	}
	f.put(r.out)
}

// encode writes a field to encoded.
func (r *Reader) encode(f hpack.HeaderField) {
	if f.Size() <= tableSize {
		_ = r.encoder.WriteField(f) // a Buffer takes everything
		return
	}
	r.encoded.WriteByte(0x10) // never indexed; the Encoder would keep as much room for ever
	for _, s := range [...]string{f.Name, f.Value} {
		n := len(s)
		if n < 0x7f { // RFC 7541 §5.1, with a prefix of seven bits
			r.encoded.WriteByte(byte(n))
		} else {
			r.encoded.Write(binary.AppendUvarint([]byte{0x7f}, uint64(n-0x7f)))
		}
		r.encoded.WriteString(s)
	}
}

// split returns a header block as a HEADERS frame and CONTINUATION frames. f is the header
// of a frame that contains all of it.
func split(f frame, block []byte, most int) (frames []byte) {
	for len(block) > 0 {
		f.length, f.flags = min(len(block), most), f.flags&^flagEndHeaders
		if f.length == len(block) {
			f.flags |= flagEndHeaders
		}
		frames = append(frames, make([]byte, frameHeader)...)
		f.put(frames[len(frames)-frameHeader:])
		frames = append(frames, block[:f.length]...)
		block = block[f.length:]
		f.kind, f.flags = kindContinuation, 0
	}
	return frames
}
