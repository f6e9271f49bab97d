package rules

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_FieldsBehindSigns(t *testing.T) {
	t.Parallel()
	for line, invisible := range map[string]bool{
		"- Disallow: /a": false, "* Disallow: /a": false, "• Disallow: /a": false, "1. Disallow: /a": false, "2) Disallow: /a": false, "// Disallow: /a": false,
		"> Disallow: /a": false, "<p>Disallow: /a": false, "<br /> Disallow: /a": false, "\"Disallow: /a": false, "; Disallow: /a": false, "-- Disallow: /a": false,
		"\ufeffDisallow: /a": true, "\u00a0Disallow: /a": true, "\u200b\u200bDisallow: /a": true, "\ufeff- Disallow: /a": false, "`Disallow: /a": false,
	} {
		rest, hidden := behind(line)
		must.True(t, rest == "Disallow: /a" && hidden == invisible, "%q: %q, invisible %v", line, rest, hidden)
	}
	rest, _ := behind("Disallow: /a")
	must.True(t, rest == "Disallow: /a", "%q", rest)
}
