package cache

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// acceptEncoding offers what decoderOf knows.
const acceptEncoding = "gzip, deflate, br, zstd"

// maxWindow is how far back a zstd stream may refer. RFC 9659 §3 has senders
// keep to it.
const maxWindow = 8 << 20

// decoder opens an encoded body that is not empty.
type decoder func(sent []byte) (io.Reader, error)

// decoderOf returns what decodes a content coding (RFC 9110 §8.4.1); nil for
// none. ok is false for one that was not offered, and for several.
func decoderOf(coding string) (d decoder, ok bool) {
	switch coding {
	case "", "identity":
		return nil, true
	case "gzip", "x-gzip":
		return openGzip, true
	case "deflate":
		return openDeflate, true
	case "br":
		return openBrotli, true
	case "zstd":
		return openZstd, true
	}
	return nil, false
}

func openGzip(sent []byte) (io.Reader, error) { return gzip.NewReader(bytes.NewReader(sent)) }

// openDeflate opens the zlib form that RFC 9110 §8.4.1.2 means, and the bare
// one that some servers send.
func openDeflate(sent []byte) (io.Reader, error) {
	if len(sent) >= 2 && sent[0]&0x0f == 8 && (uint(sent[0])<<8|uint(sent[1]))%31 == 0 {
		return zlib.NewReader(bytes.NewReader(sent))
	}
	return flate.NewReader(bytes.NewReader(sent)), nil
}

func openBrotli(sent []byte) (io.Reader, error) { return brotli.NewReader(bytes.NewReader(sent)), nil }

func openZstd(sent []byte) (io.Reader, error) {
	// Without concurrency it starts no goroutines, and so needs no Close.
	return zstd.NewReader(bytes.NewReader(sent), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

// decode returns what sent holds; more than maxBody of it only to tell that
// there is more.
func (d decoder) decode(sent []byte) ([]byte, error) {
	r, err := d(sent)
	if errors.Is(err, io.EOF) { // in its first octets
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxBody+1))
}
