package proxy

import (
	"strings"
	"testing"

	"heed/internal/judge/signal"
)

// The title of a refusal by a statement says who does not allow what, and where; the markup
// of the site is in quoted_from_site alone, as it is.
func TestUse_TheTitleSaysWhoDoesNotAllowWhat(t *testing.T) {
	t.Parallel()
	const licensed = "License: http://site.test/license.xml\nUser-agent: *"
	for want, c := range map[string]struct{ robots, terms string }{
		"the site's robots.txt does not allow training: site.test/robots.txt, line 2":          {robots: "User-agent: *\nContent-Signal: ai-train=no\n"},
		"the site's licence does not allow training: site.test/license.xml, line 3":            {licensed, `<prohibits type="usage">ai-train</prohibits>`},
		"the site's licence permits only search: site.test/license.xml, line 3":                {licensed, `<permits type="usage">search</permits>`},
		"the site's licence allows training only for a payment: site.test/license.xml, line 3": {licensed, `<permits type="usage">all</permits><payment type="use"/>`},
	} {
		s := usageSite(t, c.robots, "<rsl>\n<content url=\"/\">\n<license>"+c.terms+"</license></content></rsl>")
		r := newRigBefore(t, s, purposeOf(signal.PurposeTraining))
		got := r.ask(plain, question{path: "/page"})
		p := problemOf(t, got)
		if !strings.Contains(got.body, `"title": "Refused by heed: `+want+`"`) || c.terms != "" && !strings.Contains(got.body, `"rule": "<license>`+strings.ReplaceAll(c.terms, `"`, `\"`)) {
			t.Errorf("%s\n%+v", got.body, p)
		}
	}
}
