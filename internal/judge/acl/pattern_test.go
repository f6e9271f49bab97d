package acl

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_AHostPatternNamesHosts(t *testing.T) {
	for _, c := range []struct {
		pattern, origin string
		fits            bool
	}{
		{"example.org", "http://example.org", true},
		{"EXAMPLE.org.", "https://example.org:8443", true},
		{"example.org", "http://www.example.org", false},
		{"*.example.org", "http://www.example.org", true},
		{"*.example.org", "http://a.b.example.org", true},
		{"*.example.org", "http://example.org", false},
		{"*.example.org", "http://badexample.org", false},
		{"*", "http://192.0.2.1", true},
		{"*:8443", "https://example.org:8443", true},
		{"*:8443", "https://example.org", false},
		{"example.org:443", "https://example.org", true},
		{"example.org:80", "https://example.org", false},
		{"[2001:db8::1]", "http://[2001:DB8:0::1]:80", true},
		{"[2001:db8::1]:81", "http://[2001:db8::1]", false},
		{"bücher.example", "http://xn--bcher-kva.example", true},
	} {
		must.Equal(t, host(t, c.pattern).Matches(origin(t, c.origin)), c.fits, "%s fits %s: %v", c.pattern, c.origin, !c.fits)
	}
}

func TestHeed_AHostPatternThatCouldMeanAnythingIsAnError(t *testing.T) {
	for _, text := range []string{"", "*example.org", "www.*.org", "example.org/", "http://example.org", "a:b", "a:0", "a:70000", "*.", "*.*", "user@example.org", "2130706433", "*:"} {
		p, err := ParseHostPattern(text)
		must.True(t, err != nil || text == "*:", "%q is read as %+v", text, p)
	}
}

func TestHeed_AGlobIgnoresLetterCase(t *testing.T) {
	for _, c := range []struct {
		glob, text string
		fits       bool
	}{
		{"", "anything", true},
		{"newsbot/*", "NewsBot/2.1 (+https://bots.example/)", true},
		{"NewsBot/*", "OldNewsBot/1", false},
		{"*bot*bot", "bot", false},
		{"*bot*bot", "robot and bot", true},
		{"a*a", "a", false},
		{"Mozilla/5.0 * HeadlessChrome/*", "Mozilla/5.0 (X11) HeadlessChrome/130", true},
		{"exact", "exact", true},
		{"exact", "exactly", false},
	} {
		must.Equal(t, NewGlob(c.glob).Matches(c.text), c.fits, "%q fits %q: %v", c.glob, c.text, !c.fits)
	}
}
