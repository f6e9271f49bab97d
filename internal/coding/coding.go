// Package coding undoes the content codings of HTTP (RFC 9110 §8.4.1): gzip, deflate,
// br and zstd. Its readers are synchronous, start no goroutines and need no Close; their
// memory is bounded by the windows that the codings allow (at most 16 MiB).
//
// Outside packages: github.com/andybalholm/brotli and github.com/klauspost/compress
// (zstd).
package coding

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Accepted is the value of an Accept-Encoding field that offers all codings.
const Accepted = "gzip, deflate, br, zstd"

// maxWindow is how far back a zstd stream may refer. RFC 9659 §3 has senders
// keep to it.
const maxWindow = 8 << 20

// ErrUnknown is the error for a coding that is not known, and for several.
var ErrUnknown = errors.New("unknown content coding")

// openers are the decoders; nil for a coding that changes nothing.
var openers = map[string]func(io.Reader) (io.Reader, error){
	"": nil, "identity": nil, "gzip": openGzip, "x-gzip": openGzip, "deflate": openDeflate, "br": openBrotli, "zstd": openZstd,
}

// Name returns the coding of a body by its Content-Encoding field lines, in lower case;
// empty when there is none. Several codings are one name, which is not known.
func Name(lines []string) string {
	name := strings.ToLower(strings.TrimSpace(strings.Join(lines, ",")))
	if name == "identity" {
		return ""
	}
	return name
}

// Known reports whether a body of that coding can be decoded.
func Known(name string) bool {
	_, ok := openers[name]
	return ok
}

// NewReader returns a reader of the content of sent, which has the coding of that name.
// It reads the first octets of sent. An unknown coding is ErrUnknown, a body without
// any octet io.EOF.
func NewReader(name string, sent io.Reader) (io.Reader, error) {
	open, ok := openers[name]
	switch {
	case !ok:
		return nil, ErrUnknown
	case open == nil:
		return sent, nil
	}
	return open(sent)
}

// Free lets the windows of a reader that NewReader returned be used for another body. The
// reader must not be used again. Calling it is not required.
func Free(content io.Reader) {
	switch r := content.(type) {
	case *gzip.Reader:
		_ = r.Reset(nothing{}) // drops the body; its error is that there is none
		gzips.Put(r)
	case *brotli.Reader:
		if r.Reset(nothing{}) == nil {
			brotlis.Put(r)
		}
	case *zstd.Decoder:
		if r.Reset(nil) == nil {
			zstds.Put(r)
		}
	}
}

// nothing is an empty body.
type nothing struct{}

// Read returns io.EOF.
func (nothing) Read([]byte) (int, error) { return 0, io.EOF }

// The readers that were freed: making one costs more than a short body.
var gzips, brotlis, zstds sync.Pool

func openGzip(sent io.Reader) (io.Reader, error) {
	if r, ok := gzips.Get().(*gzip.Reader); ok {
		return r, r.Reset(sent)
	}
	return gzip.NewReader(sent)
}

// openDeflate opens the zlib form that RFC 9110 §8.4.1.2 means, and the bare
// one that some servers send.
func openDeflate(sent io.Reader) (io.Reader, error) {
	in := bufio.NewReader(sent)
	start, err := in.Peek(2)
	if len(start) == 0 {
		return nil, err
	}
	if len(start) == 2 && start[0]&0x0f == 8 && (uint(start[0])<<8|uint(start[1]))%31 == 0 {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil
}

func openBrotli(sent io.Reader) (io.Reader, error) {
	if r, ok := brotlis.Get().(*brotli.Reader); ok {
		return r, r.Reset(sent)
	}
	return brotli.NewReader(sent), nil
}

func openZstd(sent io.Reader) (io.Reader, error) {
	if r, ok := zstds.Get().(*zstd.Decoder); ok {
		return r, r.Reset(sent)
	}
	// Without concurrency it starts no goroutines, and so needs no Close.
	return zstd.NewReader(sent, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}
