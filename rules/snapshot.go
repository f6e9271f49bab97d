package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Snapshot is one answer to a request for a robots.txt: what a Policy was made
// of, so that it can be made again, and shown to somebody who doubts it. It is
// data; whoever holds one must not change what it refers to.
type Snapshot struct {
	Origin Origin `json:"origin"`
	// AskedAs is the client's User-Agent that was sent; empty: heed's own.
	AskedAs string `json:"asked_as,omitempty"`
	// Chain is the URLs asked, the origin's robots.txt first. The last one gave
	// the answer; those before it were redirects.
	Chain  []string `json:"chain"`
	Status int      `json:"status"` // of the answer; never 0
	// Header is the fields of the answer that say what it is and for how long
	// it holds, under their canonical names; the others are left out.
	Header map[string][]string `json:"header,omitempty"`
	// FetchedAt is when the bytes were received. A later confirmation (304)
	// leaves it as it is.
	FetchedAt time.Time `json:"fetched_at"`
	// SHA256 is the digest of Body.
	SHA256 Digest `json:"sha256"`
	// Body is the file without its content coding, which is what the rules were
	// read from: the same file has one digest whether or not it came compressed,
	// and reading it again needs no decompressor. Nothing else is changed. It is
	// empty for an answer that is no file.
	Body []byte `json:"-"`
}

// Intact reports whether Body is what SHA256 says.
func (s *Snapshot) Intact() bool { return DigestOf(s.Body) == s.SHA256 }

// Digest is a SHA-256. As text it is 64 hexadecimal digits.
type Digest [sha256.Size]byte

// DigestOf returns the digest of body.
func DigestOf(body []byte) Digest { return sha256.Sum256(body) }

// String returns d as hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText returns what String does.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Digest) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(d) {
		return fmt.Errorf("a SHA-256 has %d hexadecimal digits, not %d", hex.EncodedLen(len(d)), len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}
