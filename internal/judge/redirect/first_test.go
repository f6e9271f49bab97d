package redirect

import (
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestClassify_FindsOutWhatAClientSpeaks(t *testing.T) {
	long := strings.Repeat("A", MaxFirst)
	for first, want := range map[string]Kind{
		"\x16\x03\x01\x02\x00\x01": TLS,
		"GET / HTTP/1.1\r\n":       HTTP1, "\r\nGET / HTTP/1.1": HTTP1, "get index.html\r\n": HTTP1, "GET\t/": HTTP1,
		"PROPFIND /dav HTTP/1.1": HTTP1, "REPORT https://a.test/ HTTP/1.1": HTTP1, "OPTIONS * HTTP/1.1": HTTP1, "M-SEARCH * HTTP/1.1": HTTP1,
		"CONNECT a.test:443 HTTP/1.1": HTTP1, preface: HTTP2, "PRI * HTTP/2.1\r\n": HTTP1, "PRI /": HTTP1,
		"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n": Other, "SSH-2.0-Go\r\n": Other, "NICK bot\r\n": Other, "EHLO client.test\r\n": Other,
		"\x00\x00\x00\x08\x04\xd2\x16\x2f": Other, "*1\r\n$4\r\nPING\r\n": Other, "\x10\x0c\x00\x04MQTT": Other, "\x00\x00\x00\x52\x00\x03\x00\x00user\x00": Other, "\xc3\x89tat\r\n": Other, "\xff\xfe\xfd\x01A": Other,
		"JOIN h\r\n": Other, "STATS\r\n": Other, "AMQP\x00\x00\x09\x01": Other, "<?xml version='1.0'?>\n": Other, "\x13BitTorrent protocol": Other,
		"DESCRIBE rtsp://a.test/ RTSP/1.0\r\n": Other,
		// What servers that are more lenient than heed take for a request.
		" GET / HTTP/1.1": HTTP1, "\tGET /": HTTP1, "\n\nGET /": HTTP1, strings.Repeat("\r\n", 9): HTTP1, strings.Repeat("\n", 17): HTTP1, "\r\n\r\n\x00\r\nQUIT\n": HTTP1,
		"FOO\t/ HTTP/1.1": HTTP1, "FOO   / HTTP/1.1": HTTP1, "FOO\v/": HTTP1, "(GET /": HTTP1, "<GET / HTTP/1.1": HTTP1, "G\xc3\x89T /": HTTP1,
		"FOO private HTTP/1.1\r\n": HTTP1, "FOO x://a.test/ http/1.1\r\n": HTTP1, "/private HTTP/1.1\r\n": HTTP1,
		// What Python takes for a blank.
		"\x1cGET /private HTTP/1.0": HTTP1, "\x85GET\xa0/private": HTTP1, "\xa0\x1fget /": HTTP1, "FOO\x1d/private": HTTP1, "FOO\x85/private HTTP/1.0": HTTP1,
		"\xa0\x1d\x85GET\x1e/": HTTP1, "\x00GET /": Other, "\x1c\x00GET /": Other, "\x1c\xa0tat\r\n": Other, "\x00\x00": Other,
		"PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\nGET /": HTTP1, long: HTTP1, long + "\n": HTTP1, "FOO " + long: HTTP1, "GET": Other,
		// And what a server of TLS may take for a hello.
		"\x16\x02": TLS, "\x15\x03\x01\x00\x02\x01\x00": TLS, "\x14\x03": TLS, "\x14\x00A": Other, "\x80\x2e\x01\x03\x01": TLS, "\x80\x2e\x00": Other,
	} {
		k, more := Classify([]byte(first))
		must.True(t, k == want && more == (first == "GET"), "%q: %v, more %v; want %v", first, k, more, want)
	}
	for _, first := range []string{"", "G", "\r\n", "PRI", "PRI * HTTP/2.0\r\n", "REPORT ", "REPORT ht", "REPORT https:", "FOO private HTTP", "\x15", "\x80\x2e\x01", "\x1c", "\xa0GE", "\x1c\xa0", strings.Repeat("\r\n", 8)} {
		k, more := Classify([]byte(first))
		must.True(t, k == Other && more, "%q: %v, more %v; want more", first, k, more)
	}
}

// pythonReads prints, in hexadecimal, the lines in which Python's http.server finds the
// method GET and the path /x, of those with one octet or two before, and between, the parts.
const pythonReads = `
import http.server, io
class Reader(http.server.BaseHTTPRequestHandler):
    def __init__(self): pass
    def send_error(self, *a): pass
def reads(line):
    r = Reader()
    r.raw_requestline, r.rfile = line + b"\r\n", io.BytesIO(b"\r\n")
    try:
        return r.parse_request() and r.command == "GET" and r.path == "/x"
    except Exception:
        return False
for c in range(256):
    c = bytes([c])
    for line in (c + b"GET /x HTTP/1.0", b"GET" + c + b"/x HTTP/1.0", b"GET /x" + c + b"HTTP/1.0", b" " + c + b"GET /x", c + b"\xa0GET" + c + b"/x"):
        if reads(line): print(line.hex())
`

// Whatever Python's server reads as a request is one here: it splits the line at more
// octets than RFC 9112 §3 names.
func TestClassify_TakesForHTTPWhatPythonDoes(t *testing.T) {
	out, err := exec.Command("python3", "-c", pythonReads).CombinedOutput()
	must.Need(t, err == nil, "%v: %s", err, out)
	lines := strings.Fields(string(out))
	for _, line := range lines {
		first := must.Get(hex.DecodeString(line))(t)
		k, more := Classify(first)
		must.True(t, k == HTTP1 && !more, "%q: %v, more %v", first, k, more)
	}
	must.True(t, len(lines) >= 40, "Python reads %d lines", len(lines))
}

// What is decided is decided by the first octets that suffice, and stays so however the
// octets arrive; MaxFirst octets always suffice.
func FuzzClassify(f *testing.F) {
	for _, seed := range []string{"GET / HTTP/1.1\r\n", preface, "\x16\x03\x01", "\r\n\r\nHEAD x", "SSH-2.0-x", "REPORT https://a.test/", "\x80\x2e\x01\x03", "FOO bar HTTP/1.1\n", "\x1c\xa0GET /"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, first []byte) {
		want, more := Classify(first)
		must.True(t, !more || len(first) < MaxFirst, "%q: %d octets do not suffice", first, len(first))
		for n := range len(first) {
			k, waits := Classify(first[:n])
			must.True(t, waits || k == want && !more, "%q is %v, %q is %v (more %v)", first[:n], k, first, want, more)
		}
	})
}
