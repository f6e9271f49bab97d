package rules_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// TestRFC9309_OriginsAreSchemeHostAndPort holds spellings of a place against
// its canonical form: what is one place has one robots.txt.
func TestRFC9309_OriginsAreSchemeHostAndPort(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 63)
	for _, c := range []struct{ scheme, authority, want string }{
		{"http", "example.org", "http://example.org"},
		{"HTTPS", "EXAMPLE.Org", "https://example.org"},
		{"http", "example.org.", "http://example.org"},
		{"http", "example.org:80", "http://example.org"},
		{"http", "example.org:", "http://example.org"},
		{"http", "example.org:0080", "http://example.org"},
		{"https", "example.org:443", "https://example.org"},
		{"http", "example.org:443", "http://example.org:443"},
		{"https", "example.org.:8443", "https://example.org:8443"},
		{"http", "my_host-1", "http://my_host-1"},
		{"http", "bücher.test", "http://xn--bcher-kva.test"},
		{"http", "BÜCHER.test.", "http://xn--bcher-kva.test"},
		{"http", "XN--bcher-KVA.test", "http://xn--bcher-kva.test"},
		{"http", "example。org", "http://example.org"},
		{"http", "ｅｘａｍｐｌｅ.org", "http://example.org"},
		{"http", "192.0.2.1", "http://192.0.2.1"},
		{"http", "192.0.2.1.:81", "http://192.0.2.1:81"},
		{"http", "[2001:DB8:0:0::1]", "http://[2001:db8::1]"},
		{"https", "[::1]:443", "https://[::1]"},
		{"http", "[::1]:8080", "http://[::1]:8080"},
		{"http", "[::ffff:192.0.2.1]", "http://192.0.2.1"},
		{"http", "1.example.org", "http://1.example.org"},
		{"http", "0x.example", "http://0x.example"},
		{"http", label + ".test", "http://" + label + ".test"},
	} {
		o, err := rules.ParseOrigin(c.scheme, c.authority)
		must.True(t, err == nil && o.String() == c.want,
			"%s://%s is %s (%v), want %s", c.scheme, c.authority, o, err, c.want)
		must.Equal(t, o.RobotsURL(), c.want+"/robots.txt", "%s has its robots.txt at", o)
	}
}

// TestHeed_SpellingsThatNameNoSinglePlaceAreErrors holds what the dialler and
// the rules could take for two places.
func TestHeed_SpellingsThatNameNoSinglePlaceAreErrors(t *testing.T) {
	t.Parallel()
	for _, authority := range []string{
		"", ".", "..", "a..b", ".example.org", "example.org..", "exa mple.org", "example.org/", "example.org?x", "exa%6Dple.org",
		"user@example.org", "user:pass@example.org", "example.org\\", "example.org\x00",
		"example.org:0", "example.org:65536", "example.org:-1", "example.org:+80", "example.org:8o", "example.org:80:80",
		"2130706433", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.256", "1.2.3.4.5", "0x7F.0.0.0x1", "example.0x1", "example.1", "１２７.0.0.1", "127.0.0.1..",
		"::1", "2001:db8::1", "[::1", "[::1]80", "[::1]x:80", "[::1%25eth0]", "[fe80::1%eth0]", "[127.0.0.1]", "[]", "[example.org]",
		strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 127) + "test",
	} {
		o, err := rules.ParseOrigin("http", authority)
		must.True(t, errors.Is(err, rules.ErrHost), "%q is %s (%v)", authority, o, err)
	}
	for _, scheme := range []string{"", "ftp", "FILE", "httpss", "ws"} {
		o, err := rules.ParseOrigin(scheme, "example.org")
		must.True(t, err != nil, "%q: %s", scheme, o)
	}
}

func TestHeed_OriginOfAURL(t *testing.T) {
	t.Parallel()
	u := must.Get(url.Parse("HTTPS://Example.ORG.:443/a/b?c#d"))(t)
	o, err := rules.OriginOf(u)
	want := (rules.Origin{Scheme: "https", Host: "example.org", Port: 443})
	must.True(t, err == nil && o == want, "%+v (%v), want %+v", o, err, want)
	must.True(t, o.Authority() == "example.org" && o.HostPort() == "example.org:443",
		"authority %s, to dial %s", o.Authority(), o.HostPort())
	o.Port, o.Host = 8443, "::1"
	must.True(t, o.Authority() == "[::1]:8443" && o.HostPort() == "[::1]:8443",
		"authority %s, to dial %s", o.Authority(), o.HostPort())
}

// TestHeed_CanonicalOriginsCostNothing holds the way of every request.
func TestHeed_CanonicalOriginsCostNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		must.Get(rules.ParseOrigin("https", "www.example.org:8443"))(t)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzHeed_OriginsAreCanonical holds that an origin, printed and read again, is
// the same origin, and is one that can stand in a URL.
func FuzzHeed_OriginsAreCanonical(f *testing.F) {
	for _, s := range []string{"example.org:8080", "[2001:db8::1]:1", "bücher.test", "1.2.3.4.", "a_b-c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		o, err := rules.ParseOrigin("http", authority)
		if err != nil {
			must.Need(t, o == (rules.Origin{}), "%q: an error, and %+v", authority, o)
			return
		}
		again, err := rules.ParseOrigin(o.Scheme, o.Authority())
		must.Need(t, err == nil && again == o, "%q is %+v, and that is %+v (%v)", authority, o, again, err)
		u, err := url.Parse(o.RobotsURL())
		must.Need(t, err == nil && u.Path == "/robots.txt", "%q: %s is no URL (%v)", authority, o.RobotsURL(), err)
	})
}
