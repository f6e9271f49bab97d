package redirect

import (
	"strings"
	"testing"
)

func TestClassify_FindsOutWhatAClientSpeaks(t *testing.T) {
	for first, want := range map[string]Kind{
		"\x16\x03\x01\x02\x00\x01": TLS,
		"GET / HTTP/1.1\r\n":       HTTP1, "\r\nGET / HTTP/1.1": HTTP1, "get index.html\r\n": HTTP1, "GET\t/": HTTP1,
		"PROPFIND /dav HTTP/1.1": HTTP1, "REPORT https://a.test/ HTTP/1.1": HTTP1, "OPTIONS * HTTP/1.1": HTTP1, "M-SEARCH * HTTP/1.1": HTTP1,
		"CONNECT a.test:443 HTTP/1.1": HTTP1, preface: HTTP2, "PRI * HTTP/2.1\r\n": HTTP1, "PRI /": HTTP1,
		"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n": Other, "SSH-2.0-Go\r\n": Other, "NICK bot\r\n": Other, "EHLO client.test\r\n": Other,
		"\x00\x00\x00\x08\x04\xd2\x16\x2f": Other, "\x16\x02": Other, "*1\r\n$4\r\nPING\r\n": Other, "\x10\x0c\x00\x04MQTT": Other, "\xff\xfe": Other,
		"JOIN h\r\n": Other, strings.Repeat("A", maxMethod+1): Other, strings.Repeat("\r\n", maxEmptyLead): Other, "\x80\x2e\x01\x03\x01": Other,
	} {
		if k, more := Classify([]byte(first)); k != want || more {
			t.Errorf("%q: %v, more %v; want %v", first, k, more, want)
		}
	}
	for _, first := range []string{"", "\x16", "G", "\r\n", "PRI", "PRI * HTTP/2.0\r\n", "REPORT ", "REPORT ht", "REPORT https:"} {
		if k, more := Classify([]byte(first)); k != Other || !more {
			t.Errorf("%q: %v, more %v; want more", first, k, more)
		}
	}
}

// What is decided is decided by the first octets that suffice, and stays so however the
// octets arrive; MaxFirst octets always suffice.
func FuzzClassify(f *testing.F) {
	for _, seed := range []string{"GET / HTTP/1.1\r\n", preface, "\x16\x03\x01", "\r\n\r\nHEAD x", "SSH-2.0-x", "REPORT https://a.test/"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, first []byte) {
		want, more := Classify(first)
		if more && len(first) >= MaxFirst {
			t.Errorf("%q: %d octets do not suffice", first, len(first))
		}
		for n := range len(first) {
			k, waits := Classify(first[:n])
			if !waits && (k != want || more) {
				t.Errorf("%q is %v, %q is %v (more %v)", first[:n], k, first, want, more)
			}
		}
	})
}
