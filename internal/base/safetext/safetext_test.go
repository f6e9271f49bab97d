package safetext

import (
	"errors"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestPrintable_KeepsPrintableASCIIWithinTheLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"robots.txt":                   "robots.txt",
		"a\r\nb\x00c\x7fd":             "a??b?c?d",
		"\u202ereversed":               "?reversed",
		"caf\xc3\xa9 \xff":             "caf? ?",
		strings.Repeat("x", 17):        strings.Repeat("x", 17),
		strings.Repeat("x", 21):        strings.Repeat("x", 17) + "...",
		strings.Repeat("\u00e9", 2000): strings.Repeat("?", 17) + "...",
	} {
		must.Equal(t, Printable(text, 20), want, "Printable(%q, 20) =", text)
	}
}

func TestQuoteAndError_AreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	must.Equal(t, Quote("a\nb"), `"a?b"`, "Quote =")
	must.Equal(t, len(Quote(long)), maxQuoted+2, "octets of Quote")
	must.Equal(t, len(Error(errors.New(long))), maxError, "octets of Error")
}

// Targets of every kind are printable, and nothing of them is lost.
func FuzzOctets(f *testing.F) {
	for text, want := range map[string]string{
		"":                         "",
		"/a?b=%zz|{^}\"":           "/a?b=%zz|{^}\"",
		"/caf\u00e9":               `/caf\xC3\xA9`,
		"/\xff\xfe \x00\x7f\r\n":   `/\xFF\xFE\x20\x00\x7F\x0D\x0A`,
		`/a\b\x4`:                  `/a\b\x4`,
		`/\x41\x5C`:                `/\x5Cx41\x5Cx5C`,
		"\u202e/":                  `\xE2\x80\xAE/`,
		"https://a.test/\\x00\x01": `https://a.test/\x5Cx00\x01`,
	} {
		if got := Octets(text); got != want {
			f.Errorf("Octets(%q) = %s, want %s", text, got, want)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := Octets(text)
		must.True(t, !strings.ContainsFunc(shown, func(r rune) bool { return r <= ' ' || r > '~' }),
			"%q is shown as %q", text, shown)
		must.Equal(t, ParseOctets(shown), text, "%q is shown as %s, which", text, shown)
	})
}
