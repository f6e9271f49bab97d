package rules

import "testing"

func TestHeed_FieldsBehindSigns(t *testing.T) {
	t.Parallel()
	for line, invisible := range map[string]bool{
		"- Disallow: /a": false, "* Disallow: /a": false, "• Disallow: /a": false, "1. Disallow: /a": false, "2) Disallow: /a": false, "// Disallow: /a": false,
		"> Disallow: /a": false, "<p>Disallow: /a": false, "<br /> Disallow: /a": false, "\"Disallow: /a": false, "; Disallow: /a": false, "-- Disallow: /a": false,
		"\ufeffDisallow: /a": true, "\u00a0Disallow: /a": true, "\u200b\u200bDisallow: /a": true, "\ufeff- Disallow: /a": false, "`Disallow: /a": false,
	} {
		if rest, hidden := behind(line); rest != "Disallow: /a" || hidden != invisible {
			t.Errorf("%q: %q, invisible %v", line, rest, hidden)
		}
	}
	if rest, _ := behind("Disallow: /a"); rest != "Disallow: /a" {
		t.Errorf("%q", rest)
	}
}
