package rules_test

import (
	"net/url"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestEscapePercents(t *testing.T) {
	for target, want := range map[string]string{
		"/": "/", "": "", "*": "*", "/a%20b": "/a%20b", "/100%-cotton": "/100%25-cotton", "/%": "/%25", "/%2": "/%252", "/%2g%zz": "/%252g%25zz",
		"/%%20": "/%25%20", "/a?%zz": "/a?%zz", "http://h.test/%zz?%zz": "http://h.test/%25zz?%zz", "http://h%zz.test/%zz": "http://h%zz.test/%25zz",
		"http://h.test?%zz": "http://h.test?%zz", "h.test:443%zz": "h.test:443%zz",
	} {
		must.Equal(t, rules.EscapePercents(target), want, "%q", target)
	}
}

func TestTargetFault(t *testing.T) {
	for target, faulty := range map[string]bool{
		"/": false, "/a%00b": true, "/a?b%00": false, "/%u0070rivate": true, "/a/%U4E2d": true, "/%u007": false, "/%u00g0": false, "/a?%u0070": false, "*": false,
		"/%25u0070": false, "/%%u0070": true, "/%u": false,
	} {
		got := rules.TargetFault(target)
		must.True(t, (got != "") == faulty, "%q: %q", target, got)
	}
}

func TestParseURL(t *testing.T) {
	for address, want := range map[string]string{
		"http://h.test": "/", "http://h.test?q": "/?q", "https://H.test:443/a%zz?b#c": "/a%zz?b", "http://h.test/a b|c": "/a%20b|c",
		"http://h.test/%": "/%", "http://h.test//x": "//x", "http://h.test/\xe9\"{}^": "/\xe9\"{}^",
	} {
		o, target, err := rules.ParseURL(address)
		must.True(t, err == nil && target == want && o.Host == "h.test",
			"%q: %v %q %v, want %q", address, o, target, err, want)
	}
	for _, address := range []string{"", "/a", "ftp://h.test/", "http:///x", "http://h%zz.test/", "http://h.test/\x00", "http://h.test/\n", "http:h.test/"} {
		_, target, err := rules.ParseURL(address)
		must.True(t, err != nil, "%q is taken for %q", address, target)
	}
}

// net/url parses every target once its percents are escaped, unless it is no target at
// all, and then its path decodes to the octets that were meant.
func FuzzEscapePercents(f *testing.F) {
	for _, s := range []string{"/", "/%zz", "http://h.test/%?%", "/%2%46", "%", "a://%zz/%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, target string) {
		escaped := rules.EscapePercents(target)
		must.Equal(t, rules.EscapePercents(escaped), escaped, "%q: %q, then", target, escaped)
		_, err := url.ParseRequestURI(target)
		must.True(t, err != nil || escaped == target, "%q needs no change and became %q", target, escaped)
		if _, err := url.ParseRequestURI(escaped); err != nil && strings.HasPrefix(target, "/") && !strings.ContainsFunc(target, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			t.Errorf("%q became %q: %v", target, escaped, err)
		}
		sent, ok := rules.SendableTarget(target)
		must.True(t, !ok || sent[0] == '/' && !strings.ContainsAny(sent, "# \r\n\t"), "%q is sent as %q", target, sent)
	})
}
