// Package coding undoes the content codings of HTTP (RFC 9110 §8.4.1): gzip, deflate,
// br and zstd. Its readers are synchronous, start no goroutines and need no Close; their
// memory is bounded by the windows that the codings allow (at most 16 MiB).
//
// Outside packages: github.com/andybalholm/brotli and github.com/klauspost/compress
// (zstd): the standard library reads neither coding.
package coding

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"slices"
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

// errNotText is the error for a body whose name of a coding is the name of none, and which is
// no text.
var errNotText = errors.New("it is not text, and its Content-Encoding names no coding")

// openers are the decoders; nil for a coding that changes nothing.
var openers = map[string]func(io.Reader) (io.Reader, error){
	"": nil, "identity": nil, "gzip": openGzip, "x-gzip": openGzip, "deflate": openDeflate, "br": openBrotli, "zstd": openZstd,
}

// others are the codings that change the octets of a body and are not undone: those of the
// registry of content codings (RFC 9110 §16.6.1), and compressions by which servers label
// files.
var others = []string{
	"aes128gcm", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip",
	"brotli", "bzip2", "x-bzip2", "bzip", "x-bzip", "lz4", "lzma", "x-lzma", "sdch", "snappy", "x-snappy", "xz", "x-xz",
	"zip", "x-zip", "zlib", "base64", "uuencode", "x-uuencode", "xpress", "peerdist",
}

// Name returns the coding of a body by its Content-Encoding field lines, in lower case;
// empty when there is none. Several codings are one name, which is not known. Quotation marks
// and parameters, which are no part of the syntax, are left out, and beside a coding what
// changes nothing: empty members, identity and words that name no coding.
func Name(lines []string) string {
	var codings, rest []string
	for member := range strings.SplitSeq(strings.ToLower(strings.Join(lines, ",")), ",") {
		member, _, _ = strings.Cut(member, ";")
		switch member = strings.Trim(member, " \t\"'"); {
		case member == "" || member == "identity":
		case isNone(member):
			rest = append(rest, member)
		default:
			codings = append(codings, member)
		}
	}
	if len(codings) == 0 {
		codings = rest
	}
	return strings.Join(codings, ",")
}

// isNone reports whether a name is that of no coding: a character encoding such as utf-8,
// "none", "binary", or any other word. It is read as no coding when the body is text.
func isNone(name string) bool {
	_, decoded := openers[name]
	return !decoded && !slices.Contains(others, name)
}

// Mislabelled reports whether a name that Name returned is that of no coding.
func Mislabelled(name string) bool {
	return !slices.ContainsFunc(strings.Split(name, ","), func(one string) bool { return !isNone(one) })
}

// Known reports whether a body of that coding can be decoded. If its name is that of no
// coding, it can if it is text.
func Known(name string) bool {
	_, ok := openers[name]
	return ok || Mislabelled(name)
}

// Offer returns the value of an Accept-Encoding field (RFC 9110 §12.5.3) that offers a site what
// the lines of one offer and NewReader undoes; changed is false when that is all of it, and the
// lines are to be sent as they came. A "*" is written out as the codings that it means. When
// nothing that is wanted is left, the content without a coding is: a site may send that where
// it has nothing else that is acceptable.
func Offer(lines []string) (value string, changed bool) {
	var kept, names []string
	wanted, others := false, ""
	for member := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		member = strings.TrimSpace(member)
		name, weight, _ := strings.Cut(member, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		_, known := openers[name]
		refused := isZero(weight)
		switch {
		case name == "":
		case name == "*" && !refused:
			others, changed = ";"+weight, true
			if weight == "" {
				others = " "
			}
		case known || name == "*":
			kept, names = append(kept, member), append(names, name)
			wanted = wanted || !refused
		default:
			changed = true
		}
	}
	if !changed {
		return "", false
	}
	if others != "" {
		for name := range strings.SplitSeq(Accepted, ", ") {
			if !slices.Contains(names, name) {
				kept, wanted = append(kept, name+strings.TrimSpace(others)), true
			}
		}
	}
	if !wanted {
		kept = slices.DeleteFunc(kept, func(m string) bool { return m[0] == '*' || strings.HasPrefix(strings.ToLower(m), "identity") })
		kept = append(kept, "identity")
	}
	return strings.Join(kept, ", "), true
}

// isZero reports whether a weight is 0: what has it is not acceptable (RFC 9110 §12.4.2).
func isZero(weight string) bool {
	name, value, _ := strings.Cut(weight, "=")
	value = strings.TrimSpace(value)
	return strings.EqualFold(strings.TrimSpace(name), "q") && value != "" && strings.Trim(value, "0.") == ""
}

// NewReader returns a reader of the content of sent, which has the coding of that name.
// It reads the first octets of sent. An unknown coding is ErrUnknown, a body without
// any octet io.EOF.
func NewReader(name string, sent io.Reader) (io.Reader, error) {
	open, ok := openers[name]
	switch {
	case !ok && Mislabelled(name):
		return &textReader{sent: sent}, nil
	case !ok:
		return nil, ErrUnknown
	case open == nil:
		return sent, nil
	}
	return open(sent)
}

// textReader reads a body that must be text: its beginning has no octet that is in binary
// data only, or a byte order mark (WHATWG MIME Sniffing §7.2).
type textReader struct {
	sent io.Reader
	seen int // octets, at most sniffed
	mark bool
}

// sniffed is how many octets decide whether a body is text.
const sniffed = 1445

// Read reads and fails at an octet that is no text.
func (r *textReader) Read(p []byte) (int, error) {
	n, err := r.sent.Read(p)
	start := p[:min(n, sniffed-r.seen)]
	if r.seen == 0 {
		r.mark = bytes.HasPrefix(start, []byte("\xFE\xFF")) || bytes.HasPrefix(start, []byte("\xFF\xFE"))
	}
	r.seen += len(start)
	if !r.mark && slices.ContainsFunc(start, isBinary) {
		return 0, errNotText
	}
	return n, err
}

// isBinary reports whether an octet is in no text (WHATWG MIME Sniffing §3).
func isBinary(c byte) bool {
	return c <= 0x08 || c == 0x0B || c >= 0x0E && c <= 0x1A || c >= 0x1C && c <= 0x1F
}

// Free lets the windows of a reader that NewReader returned be used for another body. The
// reader must not be used again. Calling it is not required.
func Free(content io.Reader) {
	switch r := content.(type) {
	case *gzipReader:
		r.in.Reset(nothing{})
		_ = r.z.Reset(r.in) // drops the body; its error is that there is none
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
	r, ok := gzips.Get().(*gzipReader)
	if !ok {
		r = &gzipReader{in: bufio.NewReader(nothing{}), z: new(gzip.Reader)}
	}
	r.in.Reset(sent)
	return r, r.member()
}

// gzipReader reads the members of a gzip body (RFC 1952 §2.2). Octets after the last one that
// begin no member are ignored, as browsers and libraries ignore them: a line break that a
// server appends to what it has compressed.
type gzipReader struct {
	in *bufio.Reader
	z  *gzip.Reader
}

// member begins the next member.
func (r *gzipReader) member() error {
	err := r.z.Reset(r.in)
	if err == nil {
		r.z.Multistream(false)
	}
	return err
}

// Read reads the content.
func (r *gzipReader) Read(p []byte) (int, error) {
	for {
		n, err := r.z.Read(p)
		if n > 0 || err != io.EOF {
			return n, unlessEOF(n, err)
		}
		start, err := r.in.Peek(2)
		if err != nil && err != io.EOF { // the body is cut off, and what is missing may be a member
			return 0, err
		}
		if string(start) != "\x1f\x8b" {
			return 0, io.EOF
		}
		if err := r.member(); err != nil {
			return 0, err
		}
	}
}

// unlessEOF returns err, but nil for the end of a member with whose last octets it came.
func unlessEOF(n int, err error) error {
	if n > 0 && err == io.EOF {
		return nil
	}
	return err
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
