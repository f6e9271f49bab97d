package proxy

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/crypto/cryptobyte"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// extension is one of a TLS hello.
type extension struct {
	id   uint16
	data string
}

// namesOf is a server_name extension with the names.
func namesOf(names ...string) extension {
	var list, b cryptobyte.Builder
	for _, name := range names {
		list.AddUint8(typeHostName)
		list.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(name)) })
	}
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(list.BytesOrPanic()) })
	return extension{extServerName, string(b.BytesOrPanic())}
}

// rawHello is a TLS hello in records of size octets of it.
func rawHello(size int, extensions ...extension) string {
	var b cryptobyte.Builder
	b.AddUint8(typeHello)
	b.AddUint24LengthPrefixed(func(b *cryptobyte.Builder) {
		b.AddUint16(0x0303)
		b.AddBytes(make([]byte, 32))
		b.AddUint8(0)                                    // no session
		b.AddBytes([]byte{0, 4, 0xc0, 0x2b, 0xc0, 0x2f}) // ECDHE with AES-GCM
		b.AddBytes([]byte{1, 0})                         // no compression
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
			for _, e := range extensions {
				b.AddUint16(e.id)
				b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(e.data)) })
			}
		})
	})
	var records cryptobyte.Builder
	for rest := b.BytesOrPanic(); len(rest) > 0; {
		n := min(size, len(rest))
		records.AddBytes([]byte{recordHandshake, 3, 1})
		records.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(rest[:n]) })
		rest = rest[n:]
	}
	return string(records.BytesOrPanic())
}

// oddHellos are hellos that crypto/tls rejects, with what is said of them. OpenSSL and the
// servers that use it accept most.
var oddHellos = map[string]struct {
	extensions []extension
	host, want string // host: as it is recorded
}{
	"final dot":         {[]extension{namesOf("site.test.")}, "site.test.", `the TLS hello names "site.test." with a final dot, which RFC 6066, section 3, forbids; write the host without the dot`},
	"empty name":        {[]extension{namesOf("")}, "site.test", "the TLS hello has an empty server name (RFC 6066, section 3)"},
	"no name":           {[]extension{namesOf()}, "site.test", "the TLS hello has a server_name extension without a name (RFC 6066, section 3)"},
	"empty extension":   {[]extension{{extServerName, ""}}, "site.test", "the TLS hello has a server_name extension without a name (RFC 6066, section 3)"},
	"two names":         {[]extension{namesOf("site.test", "site.test")}, "site.test", "the TLS hello names several hosts (RFC 6066, section 3)"},
	"twice":             {[]extension{namesOf("site.test"), {23, ""}, {23, ""}}, "site.test", "the TLS hello has the extension 23 twice (RFC 8446, section 4.2)"},
	"server name twice": {[]extension{namesOf("site.test"), namesOf("site.test")}, "site.test", "the TLS hello has the extension 0 twice (RFC 8446, section 4.2)"},
	"no curves":         {[]extension{namesOf("site.test"), {10, "\x00\x00"}}, "site.test", "the TLS hello breaks its standard: local error: tls: error decoding message"},
}

// A hello that heed's TLS library does not accept is recorded with its fault, and with what
// can be done about it, under the name that the client wrote.
func TestHeed_AHelloThatIsRejectedIsToldWithItsFault(t *testing.T) {
	for name, hello := range oddHellos {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(http.ResponseWriter, *http.Request) { t.Error("the site was asked") })
			at := r.redirectedTo(elsewhere+":443", nil)
			for _, c := range []*testkit.Conn{testkit.Dial(t, r.addr).Connect("site.test.:443"), testkit.Dial(t, at)} {
				c.Send(rawHello(50, hello.extensions...))
				alert := c.Rest()
				must.True(t, len(alert) == 7 && alert[0] == 21, "in place of an alert: %q", alert) // RFC 8446 §6
			}
			for _, redirected := range []bool{false, true} {
				e := r.records.await(t, name, func(e *audit.Entry) bool { return strings.Contains(e.Detail, "redirected connection") == redirected })
				if e.Decision.Reason != rules.ReasonMalformed || e.Judged != audit.NotJudged || !strings.HasPrefix(e.Detail, hello.want+passUnjudged) {
					t.Errorf("%s: %s", e.Decision.Reason, e.Detail)
				}
				if !redirected && e.URL() != "https://"+hello.host {
					t.Errorf("recorded as %s", e.URL())
				}
			}
		})
	}
}

// A hello is read from its last octet on, however many records it comes in, and nothing else
// is one.
func TestHelloOf(t *testing.T) {
	for size := range 200 {
		octets := rawHello(size+1, namesOf("site.test"), extension{23, ""})
		for end, have := range octets {
			if h, want := helloOf([]byte(octets[:end])); h != nil || want < 1 || end+want > len(octets) {
				t.Fatalf("%d octets of %d, the next is %x: %+v, %d", end, len(octets), have, h, want)
			}
		}
		h, want := helloOf([]byte(octets + "more"))
		must.True(t, h != nil && want == 0 && h.name() == "site.test" && h.fault == "", "records of %d: %+v, %d", size+1, h, want)
	}
	for _, text := range []string{"GET / HTTP/1.1\r\n", "\x16\x03\x01\x00\x01\x02", "\x16\x03\x01\x00\x04\x01\x00\x00\x00", strings.Repeat("\x16\x03\x01\x00\x00", maxHello/5+1)} {
		h, want := helloOf([]byte(text))
		must.True(t, h == nil && want == 0, "%.20q: %+v, %d", text, h, want)
	}
}

// Where tunnels pass as they are, such hellos pass, too, unless one names another host.
func TestHeed_ATunnelPassesAHelloThatHeedCannotTake(t *testing.T) {
	s := newSite(t, hello)
	came := make(chan string, 1)
	serve(s.listen(t, "odd.test:443"), func(c net.Conn) {
		octets, _ := io.ReadAll(c)
		came <- string(octets)
	})
	r := newRigBefore(t, s, settled(t, map[string]acl.HTTPS{"odd.test": acl.Tunnel}))
	for name, names := range map[string][]string{"dot": {"odd.test."}, "twice": {"odd.test", "ODD.test"}, "none": {}, "empty": {""}} {
		c := testkit.Dial(t, r.addr).Connect("odd.test:443")
		octets := rawHello(50, namesOf(names...))
		c.Send(octets)
		c.CloseWrite()
		must.Equal(t, <-came, octets, "%s: what came", name)
	}
	c := testkit.Dial(t, r.addr).Connect("odd.test:443")
	c.Send(rawHello(1<<10, namesOf("odd.test", "site.test")))
	c.Closed()
	r.records.await(t, "two hosts", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonHostMismatch })
}
