package rules

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"sync"
	"time"
	"unsafe"
)

// Snapshot is one answer to a request for a robots.txt, from which a Policy is
// made, and can be made and verified again. It is data and must not be changed.
// The snapshot of an operator's own file has no Chain, no Header, and status 0.
type Snapshot struct {
	Origin Origin `json:"origin"`
	// AskedAs is the client's User-Agent that was sent; empty: heed's own.
	AskedAs string `json:"asked_as,omitempty"`
	// Chain is the URLs requested, the origin's robots.txt first. The last one gave
	// the answer; those before it were redirects.
	Chain  []string `json:"chain"`
	Status int      `json:"status"` // of the answer
	// Header is the fields of the answer about its type and lifetime, under their
	// canonical names; the others are left out.
	Header map[string][]string `json:"header,omitempty"`
	// FetchedAt is when the octets were received. A later confirmation (304)
	// leaves it as it is.
	FetchedAt time.Time `json:"fetched_at"`
	// SHA256 is the digest of the body, Size its length.
	SHA256 Digest `json:"sha256"`
	Size   int    `json:"size"`
	// Zlib is the body, compressed (RFC 1950); nil for an answer that is no file.
	Zlib []byte `json:"-"`

	blocks [][]byte // of a file of minCompact octets, its compressed blocks in Zlib; nil: they are not known
}

// Pack stores body in s: the file without its content coding, as the parser reads
// it, so that the same file has one digest whether or not it was compressed.
// body is not kept.
func (s *Snapshot) Pack(body []byte) {
	s.SHA256, s.Size, s.blocks = DigestOf(body), len(body), nil
	packed := bytes.NewBuffer(make([]byte, 0, len(body)/4+64))
	packed.WriteString("\x78\x01") // RFC 1950 §2.2
	each, ends := max(1, len(body)), []int{packed.Len()}
	if len(body) >= minCompact {
		each = blockSize
	}
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	for from := 0; from == 0 || from < len(body); from += each {
		// A bytes.Buffer never fails.
		w.Reset(packed)
		_, _ = w.Write(body[from:min(from+each, len(body))])
		if from+each < len(body) {
			_ = w.Flush()
		} else {
			_ = w.Close()
		}
		ends = append(ends, packed.Len())
	}
	s.Zlib = binary.BigEndian.AppendUint32(bytes.Clone(packed.Bytes()), adler32.Checksum(body))
	for i := 1; i < len(ends) && each == blockSize; i++ {
		s.blocks = append(s.blocks, s.Zlib[ends[i-1]:ends[i]])
	}
}

// packers use BestSpeed: a third of the time of the default level, and at most a
// tenth more in size.
var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic("compress/flate does not accept BestSpeed: " + err.Error())
	}
	return w
}}

// ErrNotIntact is the error for a Snapshot whose octets do not match its digest.
var ErrNotIntact = errors.New("the octets of the robots.txt do not match its SHA-256")

// MaxUnpacked is more than heed reads of a robots.txt, in bytes.
const MaxUnpacked = 64 << 20

// Body returns the octets that s was packed with, nil when it has none. It
// fails with ErrNotIntact when they do not match the digest.
func (s *Snapshot) Body() ([]byte, error) {
	if s.Zlib == nil {
		return nil, nil
	}
	packed := bytes.NewReader(s.Zlib)
	r, err := zlib.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotIntact, err)
	}
	if s.Size < 0 || s.Size > MaxUnpacked {
		return nil, fmt.Errorf("%w: it has %d octets, more than heed reads", ErrNotIntact, s.Size)
	}
	var body bytes.Buffer
	body.Grow(max(0, min(s.Size, MaxBytes)) + bytes.MinRead)
	if _, err := body.ReadFrom(io.LimitReader(r, int64(s.Size)+1)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotIntact, err)
	}
	if packed.Len() > 0 || body.Len() != s.Size || DigestOf(body.Bytes()) != s.SHA256 {
		return nil, ErrNotIntact
	}
	return body.Bytes(), nil
}

// memory returns about how many octets of memory s takes; 0 for nil.
func (s *Snapshot) memory() int {
	if s == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*s)) + len(s.AskedAs) + allocated(len(s.Zlib)) + 24*len(s.blocks)
	for _, u := range s.Chain {
		n += len(u) + 16
	}
	for name, values := range s.Header {
		n += len(name) + headerOverhead
		for _, v := range values {
			n += len(v) + 16
		}
	}
	return n
}

// headerOverhead is about the memory of a map entry beside its text.
const headerOverhead = 64

// Digest is a SHA-256. As text it is 64 hexadecimal digits.
type Digest [sha256.Size]byte

// DigestOf returns the digest of body.
func DigestOf(body []byte) Digest { return sha256.Sum256(body) }

// String returns d as hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText returns the text of String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the text of MarshalText.
func (d *Digest) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(d) {
		return fmt.Errorf("a SHA-256 has %d hexadecimal digits, not %d", hex.EncodedLen(len(d)), len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}
