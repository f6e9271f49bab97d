package balancer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"heed/internal/tools/testkit/must"
)

// half is a connection of which only the reading works.
type half struct {
	io.Reader
	net.Conn
}

func (h half) Read(p []byte) (int, error) { return h.Reader.Read(p) }

func (h half) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 999}
}

// v2 is a header of version 2: the octets after its signature in hexadecimal.
func v2(rest string) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
	if err != nil {
		panic(err)
	}
	return "\r\n\r\n\x00\r\nQUIT\n" + string(raw)
}

const four = "c0000201 c6336407 1f90 0050" // 192.0.2.1:8080 to 198.51.100.7:80

func TestPROXY_TheHeaderNamesTheClientAndItsDestination(t *testing.T) {
	for name, c := range map[string]struct{ header, client, site string }{
		"1, IPv4":                  {"PROXY TCP4 192.0.2.1 198.51.100.7 8080 80\r\n", "192.0.2.1:8080", "198.51.100.7:80"},
		"1, IPv6":                  {"PROXY TCP6 2001:db8::1 2001:db8::2 8080 80\r\n", "[2001:db8::1]:8080", "[2001:db8::2]:80"},
		"1, IPv4 as IPv6":          {"PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 8080 80\r\n", "192.0.2.1:8080", "[2001:db8::2]:80"},
		"2, IPv4":                  {v2("21 11 000c" + four), "192.0.2.1:8080", "198.51.100.7:80"},
		"2, extensions":            {v2("21 11 0014" + four + "04 0001 00 ea 0001 ff"), "192.0.2.1:8080", "198.51.100.7:80"},
		"2, IPv6":                  {v2("21 21 0024 20010db8000000000000000000000001 20010db8000000000000000000000002 1f90 0050"), "[2001:db8::1]:8080", "[2001:db8::2]:80"},
		"2, of the load balancer":  {v2("20 00 0000"), "10.0.0.5:999", "invalid AddrPort"},
		"2, the same with address": {v2("20 11 000c" + four), "10.0.0.5:999", "invalid AddrPort"},
	} {
		const after = "GET / HTTP/1.1\r\n"
		for _, from := range []io.Reader{strings.NewReader(c.header + after), iotest.OneByteReader(strings.NewReader(c.header + after))} {
			got, err := Read(half{Reader: from})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got.RemoteAddr().String() != c.client || got.Destination().String() != c.site || got.Local() != strings.Contains(name, "of the load") && got.Local() != strings.Contains(name, "the same") {
				t.Errorf("%s: %v to %v, %v", name, got.RemoteAddr(), got.Destination(), got.Local())
			}
			rest, _ := io.ReadAll(from)
			must.True(t, string(rest) == after, "%s: %q is left", name, rest)
		}
	}
}

func TestPROXY_WhatIsNoHeaderOfAClientIsAnErrorWithWords(t *testing.T) {
	for header, says := range map[string]string{
		"GET http://site.test/ HTTP/1.1\r\n\r\n":          "no PROXY protocol header came",
		"\x16\x03\x01\x02\x00\x01":                        "no PROXY protocol header came",
		"\x05\x01\x00":                                    "no PROXY protocol header came",
		"PROXIED x":                                       "no PROXY protocol header came",
		"\r\n\r\nGET / HTTP/1.1\r\n\r\n":                  "no PROXY protocol header came",
		"PROXY TCP4":                                      "ended in the middle",
		v2("21 11 000c c000"):                             "ended in the middle",
		"PROXY UNKNOWN\r\n":                               "names no TCP address",
		v2("21 31 00d8" + strings.Repeat("61", 216)):      "names no TCP address", // UNIX
		v2("21 12 000c" + four):                           "names no TCP address", // UDP
		v2("21 00 0000"):                                  "cannot be read",       // PROXY without a family
		v2("31 11 000c" + four):                           "cannot be read",       // version 3
		v2("21 11 0004 c0000201"):                         "cannot be read",
		v2("21 11 000f" + four + "04 ffff"):               "broken extensions",
		v2("21 11 1001"):                                  "heed takes 4096",
		"PROXY TCP4 192.0.2.256 198.51.100.7 1 2\r\n":     "cannot be read",
		"PROXY TCP4 192.0.2.1 198.51.100.7 1 99999\r\n":   "cannot be read",
		"PROXY TCP4 0.0.0.0 198.51.100.7 1 2\r\n":         "no address of one",
		"PROXY TCP4 224.0.0.1 198.51.100.7 1 2\r\n":       "no address of one",
		"PROXY TCP4 192.0.2.1 198.51.100.7 1 2\n":         "cannot be read",
		"PROXY TCP4 " + strings.Repeat("1", 200) + "\r\n": "no end within 107 octets",
	} {
		got, err := Read(half{Reader: strings.NewReader(header)})
		must.True(t, err != nil && strings.Contains(err.Error(), says), "%q: %v, %v", header, got, err)
	}
	_, err := Read(half{Reader: strings.NewReader("")})
	must.True(t, errors.Is(err, io.EOF), "an empty connection: %v", err)
}

// Whatever comes, Read ends, takes no more than a header has, and names a client only with a
// valid address.
func FuzzRead(f *testing.F) {
	for _, header := range []string{"PROXY TCP4 192.0.2.1 198.51.100.7 8080 80\r\n", v2("21 11 0014" + four + "04 0001 00 ea 0001 ff"), v2("20 00 0000"), "GET / HTTP/1.1\r\n"} {
		f.Add([]byte(header + "rest"))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		from := bytes.NewReader(input)
		c, err := Read(half{Reader: from})
		taken := len(input) - from.Len()
		must.True(t, taken <= fixed+maxRest, "%d bytes were taken", taken)
		if err != nil {
			return
		}
		if a := c.RemoteAddr().(*net.TCPAddr).AddrPort(); !a.IsValid() || !c.Local() && (a.Addr().Is4In6() || a.Addr().IsUnspecified() || !c.Destination().IsValid()) {
			t.Errorf("%v to %v", a, c.Destination())
		}
		split := iotest.OneByteReader(bytes.NewReader(input))
		again, err := Read(half{Reader: split})
		must.True(t, err == nil && again.RemoteAddr().String() == c.RemoteAddr().String(), "in single bytes: %v, %v", again, err)
	})
}
