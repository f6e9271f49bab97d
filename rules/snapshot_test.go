package rules

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestHeed_ASnapshotKnowsWhetherItIsIntact(t *testing.T) {
	s := Snapshot{Body: []byte("User-agent: *\nDisallow: /a\n")}
	if s.Intact() {
		t.Error("a digest of nothing fits")
	}
	s.SHA256 = DigestOf(s.Body)
	if !s.Intact() {
		t.Error("its own digest does not fit")
	}
	s.Body[len(s.Body)-2] = 'b'
	if s.Intact() {
		t.Error("another file has the same digest")
	}
}

func TestHeed_ADigestIsHexadecimal(t *testing.T) {
	// The SHA-256 of no bytes (FIPS 180-4).
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := DigestOf(nil).String(); got != empty {
		t.Errorf("of nothing: %s", got)
	}
	var d Digest
	if err := d.UnmarshalText([]byte(empty)); err != nil || d != DigestOf(nil) {
		t.Errorf("%s, %v", d, err)
	}
	for _, bad := range []string{"", empty[2:], empty + "00", "xx" + empty[2:]} {
		if err := d.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a digest", bad)
		}
	}
}

func TestHeed_ASnapshotIsWrittenAndReadAsJSON(t *testing.T) {
	s := Snapshot{
		Origin: Origin{Scheme: "https", Host: "site.test", Port: 443}, AskedAs: "curl/8",
		Chain: []string{"https://site.test/robots.txt"}, Status: 200, Header: map[string][]string{"Etag": {`"1"`}},
		FetchedAt: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), SHA256: DigestOf(nil), Body: []byte("beside it"),
	}
	text, err := json.Marshal(&s)
	if err != nil || strings.Contains(string(text), "beside") {
		t.Fatalf("%s, %v", text, err)
	}
	var again Snapshot
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if twice, _ := json.Marshal(&again); string(twice) != string(text) {
		t.Errorf("read back: %s\nwritten:   %s", twice, text)
	}
}
