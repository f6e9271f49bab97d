package rules

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

func TestHeed_ASnapshotGivesBackExactlyWhatItWasPackedWith(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "User-agent: *\nDisallow: /a\n", "\xEF\xBB\xBF\x00\xFF\r", strings.Repeat("Disallow: /a\n", 1<<16)} {
		var s Snapshot
		s.Pack([]byte(body))
		got, err := s.Body()
		must.True(t, string(got) == body && err == nil && s.Size == len(body) && s.SHA256 == DigestOf([]byte(body)),
			"%.40q comes back as %.40q, %v", body, got, err)
		r := must.Get(zlib.NewReader(bytes.NewReader(s.Zlib)))(t)
		by, err := io.ReadAll(r)
		must.True(t, string(by) == body && err == nil, "others read %.40q, %v", by, err)
	}
	var none Snapshot
	body, err := none.Body()
	must.True(t, body == nil && err == nil, "of no file: %q, %v", body, err)
}

// No changed octet goes unseen, and a size that lies fills no memory.
func TestHeed_ASnapshotKnowsWhetherItIsIntact(t *testing.T) {
	t.Parallel()
	var s Snapshot
	s.Pack([]byte("User-agent: *\nDisallow: /a\nDisallow: /ab\nDisallow: /abc\n"))
	broken := func(name string, change func(*Snapshot)) {
		c := s
		c.Zlib = bytes.Clone(s.Zlib)
		if change(&c); c.Zlib == nil {
			t.Fatalf("%s: nothing is left", name)
		}
		body, err := c.Body()
		must.True(t, errors.Is(err, ErrNotIntact), "%s: read as %q, %v", name, body, err)
	}
	for i := 2; i < len(s.Zlib); i++ { // the first two say how it is packed
		broken(fmt.Sprintf("octet %d changed", i), func(c *Snapshot) { c.Zlib[i] ^= 0x11 })
	}
	for i := range s.Zlib {
		broken(fmt.Sprintf("cut at octet %d", i), func(c *Snapshot) { c.Zlib = c.Zlib[:i] })
	}
	broken("more behind it", func(c *Snapshot) { c.Zlib = append(c.Zlib, 0) })
	broken("another size", func(c *Snapshot) { c.Size-- })
	broken("a larger size", func(c *Snapshot) { c.Size = 1 << 40 })
	broken("another digest", func(c *Snapshot) { c.SHA256[0]++ })
}

func TestHeed_ADigestIsHexadecimal(t *testing.T) {
	t.Parallel()
	// The SHA-256 of no octets (FIPS 180-4).
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	must.Equal(t, DigestOf(nil).String(), empty, "of nothing")
	var d Digest
	err := d.UnmarshalText([]byte(empty))
	must.True(t, err == nil && d == DigestOf(nil), "%s, %v", d, err)
	for _, bad := range []string{"", empty[2:], empty + "00", "xx" + empty[2:]} {
		err := d.UnmarshalText([]byte(bad))
		must.True(t, err != nil, "%q is taken for a digest", bad)
	}
}

func TestHeed_ASnapshotIsWrittenAndReadAsJSON(t *testing.T) {
	t.Parallel()
	s := Snapshot{
		Origin: Origin{Scheme: "https", Host: "site.test", Port: 443}, AskedAs: "curl/8",
		Chain: []string{"https://site.test/robots.txt"}, Status: 200, Header: map[string][]string{"Etag": {`"1"`}},
		FetchedAt: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), SHA256: DigestOf(nil), Zlib: []byte("beside it"),
	}
	text, err := json.Marshal(&s)
	must.Need(t, err == nil && !strings.Contains(string(text), "beside"), "%s, %v", text, err)
	var again Snapshot
	must.OK(t, json.Unmarshal(text, &again))
	twice, _ := json.Marshal(&again)
	must.True(t, string(twice) == string(text), "read back: %s\nwritten:   %s", twice, text)
}
