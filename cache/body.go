package cache

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxBody is how much of a robots.txt is read, decoded. RFC 9309 §2.5 asks
	// for 500 KiB at least.
	maxBody = 4 << 20
	// codingOverhead is how much longer than its content an encoded body may be:
	// one of empty blocks has no end.
	codingOverhead = 64 << 10

	// shortBody is how much of every body is read without a ticket: the bodies of
	// slow sites must not keep those of others out.
	shortBody = 64 << 10
	// maxLongBodies is how many longer ones are in flight at a time: as many as
	// fill 64 MiB. Each counts in full, since one that had to ask for more on
	// its way could wait for another that waits for it.
	maxLongBodies     = (64 << 20) / (maxBody + codingOverhead)
	maxSiteLongBodies = 2 // of them of one site
)

// bodyLimits is what the reading of one body shares with all others.
type bodyLimits struct {
	long     func() error  // called before more than shortBody is held
	decoders chan struct{} // has room for each decoder at work
}

// readBody reads the body of a 200 or 203, decoded. When it is longer than
// maxBody, cut is set and the body ends with its last whole line: half a line
// is another rule ("Disallow: /" of "Disallow: /private"). A body shorter than
// announced is an error.
func (r *bodyLimits) readBody(resp *http.Response) (body []byte, cut bool, err error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
	d, known := codings[coding] // several on one line are not known
	if !known {
		return nil, false, publicErrorf(nil, "came in a content coding that was not offered (%.40q)", coding)
	}
	// What is sent is read before it is decoded, so that no decoder, whose
	// windows may be large, waits for a slow site.
	sent, more, err := readEncoded(resp, maxBody+codingOverhead, r.long)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = publicErrorf(err, "was cut off before its end")
	}
	if err != nil {
		return nil, false, err
	}
	if d == nil && bytes.HasPrefix(sent, []byte("\x1f\x8b")) {
		d = openGzip // a compressed file that does not say so: no text begins like this
	}
	body = sent
	if d != nil && len(sent) > 0 {
		if body, err = r.decode(d, sent); err != nil {
			err = publicErrorf(err, "could not be decoded as %s", cmp.Or(coding, "gzip"))
		}
	}
	switch {
	case len(body) > maxBody:
		return body[:bytes.LastIndexAny(body[:maxBody], "\r\n")+1], true, nil
	case more:
		return nil, false, publicErrorf(nil, "came in a longer %s form than 4 MiB can have", coding)
	case err != nil:
		return nil, false, err
	}
	return body, false, nil
}

func (r *bodyLimits) decode(d decoder, sent []byte) ([]byte, error) {
	r.decoders <- struct{}{}
	defer func() { <-r.decoders }()
	return d.decode(sent)
}

// readEncoded reads what resp brings, most octets at the most; more reports whether
// there were more.
func readEncoded(resp *http.Response, most int, long func() error) (sent []byte, more bool, err error) {
	if known := resp.ContentLength; known >= 0 {
		most = int(min(int64(most), known))
	}
	sent = make([]byte, 0, min(most, 4<<10)+1)
	for len(sent) < most || resp.ContentLength < 0 {
		if len(sent) == cap(sent) {
			if sent, err = grow(sent, most, long); err != nil {
				return nil, false, err
			}
		}
		n, err := resp.Body.Read(sent[len(sent):cap(sent)])
		sent = sent[:len(sent)+n]
		switch {
		case len(sent) > most:
			return sent[:most], true, nil
		case err == io.EOF:
			return sent, false, nil
		case err != nil:
			return nil, false, err
		}
	}
	return sent, resp.ContentLength > int64(most), nil
}

// grow makes room in a full b: by doubling while it is short, then by allocating
// room for most octets; always with one more, to see the end.
func grow(b []byte, most int, long func() error) ([]byte, error) {
	room := min(2*len(b), most+1, shortBody+1)
	if room <= len(b) {
		if err := long(); err != nil {
			return nil, err
		}
		room = most + 1
	}
	return append(make([]byte, 0, room), b...), nil
}

// isHTML reports whether an answer is a page for people, by its type or by
// how it begins.
func isHTML(h http.Header, body []byte) bool {
	if strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/html") {
		return true
	}
	start := bytes.ToLower(bytes.TrimLeft(body[:min(len(body), 64)], "\ufeff \t\r\n"))
	return bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}

// acceptEncoding lists the codings that are offered.
const acceptEncoding = "gzip, deflate, br, zstd"

// maxWindow is how far back a zstd stream may refer. RFC 9659 §3 has senders
// keep to it.
const maxWindow = 8 << 20

// decoder opens an encoded body that is not empty.
type decoder func(sent []byte) (io.Reader, error)

// codings are the decoders of content codings (RFC 9110 §8.4.1); nil for one that
// changes nothing.
var codings = map[string]decoder{
	"": nil, "identity": nil, "gzip": openGzip, "x-gzip": openGzip, "deflate": openDeflate, "br": openBrotli, "zstd": openZstd,
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

// decode returns what sent holds; more than maxBody of it only to show that
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
