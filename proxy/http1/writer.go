package http1

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// ErrLength is returned for a body that has more or fewer octets than its head declares.
var ErrLength = errors.New("http1: the body is not as long as its head declares")

// Bounds of what a Writer holds back, in bytes.
const (
	heldBack = 4 << 10  // of a message, without Flush
	maxCopy  = 16 << 10 // of a chunk that is written in one piece with its size
	keptSize = 24 << 10 // of a buffer that is kept for another message
)

// writeBuffers are of *[]byte.
var writeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, heldBack+64); return &b }}

// Writer writes the messages of one connection. Octets are held back until there are many,
// or Flush or End is called, so that a head leaves with the first octets of its body. It
// holds no buffer between End and Begin. A Writer is for one goroutine at a time.
type Writer struct {
	To io.Writer // the connection

	buf     *[]byte // held back; nil: nothing is
	framing Framing
	left    int64 // of a body with a length
	err     error // of To, from then on
}

// Begin begins a message. A *Fault is returned for a head that HTTP/1 cannot carry, and
// nothing is written.
func (w *Writer) Begin(m *Message) error {
	if w.err != nil {
		return w.err
	}
	b, err := m.Append(*w.buffer())
	if err != nil {
		return err
	}
	*w.buf, w.framing, w.left = b, m.Framing, 0
	if m.Framing == Sized {
		w.left = m.Length
	}
	return nil
}

// BeginOther begins a message of another protocol with its head, which may be followed by a
// body in chunks.
func (w *Writer) BeginOther(head []byte, chunked bool) {
	if w.framing = NoBody; chunked {
		w.framing = Chunked
	}
	w.left = 0
	w.put(head)
}

func (w *Writer) buffer() *[]byte {
	if w.buf == nil {
		w.buf = writeBuffers.Get().(*[]byte)
	}
	return w.buf
}

// Write writes octets of the body. It returns http.ErrBodyNotAllowed when the message has
// none, and ErrLength, with the octets before, when it has not so many.
func (w *Writer) Write(p []byte) (n int, err error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case len(p) == 0:
		return 0, nil
	case w.framing == NoBody:
		return 0, http.ErrBodyNotAllowed
	case w.framing == Chunked:
		return w.writeChunk(p)
	case w.framing == Sized && int64(len(p)) > w.left:
		p, err = p[:w.left], ErrLength
	}
	n = w.put(p)
	w.left -= int64(n)
	return n, cmp.Or(w.err, err)
}

// put writes p behind what is held back: with it where that is little, and as far as it
// fits otherwise. It returns how many octets of p it has taken.
func (w *Writer) put(p []byte) (n int) {
	b := *w.buffer()
	if room := heldBack - len(b); len(p) > room {
		if len(b) > 0 {
			n = max(0, room)
			*w.buf = append(b, p[:n]...)
			if w.Flush() != nil {
				return n
			}
			p = p[n:]
		}
		if len(p) >= heldBack {
			m, err := w.To.Write(p)
			w.err = err
			return n + m
		}
		b = *w.buffer()
	}
	*w.buf = append(b, p...)
	return n + len(p)
}

// writeChunk writes p as a chunk.
func (w *Writer) writeChunk(p []byte) (n int, err error) {
	*w.buf = append(strconv.AppendInt(*w.buffer(), int64(len(p)), 16), "\r\n"...)
	if len(p) <= maxCopy {
		*w.buf = append(*w.buf, p...)
		n = len(p)
	} else {
		n = w.put(p)
	}
	if w.err == nil {
		*w.buffer() = append(*w.buffer(), "\r\n"...)
		if len(*w.buf) >= heldBack {
			_ = w.Flush() // it is w.err
		}
	}
	return n, w.err
}

// Flush writes what is held back.
func (w *Writer) Flush() error {
	if w.err != nil || w.buf == nil || len(*w.buf) == 0 {
		return w.err
	}
	_, w.err = w.To.Write(*w.buf)
	*w.buf = (*w.buf)[:0]
	return w.err
}

// End ends the message, with trailers where it is chunked, and writes what is held back.
// It returns ErrLength when octets are missing; the connection cannot be used any more
// then. trailers may be nil. Fields that frame a message, or that no trailer can carry, are
// left out.
func (w *Writer) End(trailers http.Header) error {
	if w.framing == Chunked && w.err == nil {
		*w.buffer() = append(*w.buffer(), "0\r\n"...)
		w.appendTrailers(trailers)
		*w.buf = append(*w.buf, "\r\n"...)
	}
	err := w.Flush()
	if err == nil && w.framing == Sized && w.left > 0 {
		err = ErrLength
	}
	w.framing = NoBody
	w.Release()
	return err
}

func (w *Writer) appendTrailers(trailers http.Header) {
	if len(trailers) == 0 {
		return
	}
	keys := make([]string, 0, len(trailers))
	for key := range trailers {
		if canonical := http.CanonicalHeaderKey(key); isToken(key) && !isOwn(canonical) && canonical != host {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		for _, value := range trailers[key] {
			if !hasControl(value) {
				*w.buf = append(append(append(*w.buf, key...), ": "...), value...)
				*w.buf = append(*w.buf, "\r\n"...)
			}
		}
	}
}

// Release drops what is held back, and gives the buffer back.
func (w *Writer) Release() {
	if w.buf == nil {
		return
	}
	if *w.buf = (*w.buf)[:0]; cap(*w.buf) <= keptSize {
		writeBuffers.Put(w.buf)
	}
	w.buf = nil
}
