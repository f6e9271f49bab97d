package proxy

import (
	"strings"
	"testing"

	"heed/internal/signal"
)

// The title of a refusal by a statement says who does not allow what, and where; the markup
// of the site is in quoted_from_site alone, as it is.
func TestUse_TheTitleSaysWhoDoesNotAllowWhat(t *testing.T) {
	t.Parallel()
	files := map[string]string{"/license.xml": "<rsl>\n<content url=\"/\">\n<license><prohibits type=\"usage\">ai-train</prohibits></license></content></rsl>"}
	for robots, want := range map[string]string{
		"User-agent: *\nContent-Signal: ai-train=no\n":         "the site's robots.txt does not allow training: site.test/robots.txt, line 2",
		"License: http://site.test/license.xml\nUser-agent: *": "the site's licence does not allow training: site.test/license.xml, line 3",
	} {
		s := usageSite(t, robots, files["/license.xml"])
		r := newRigBefore(t, s, purposeOf(signal.PurposeTraining))
		got := r.ask(plain, question{path: "/page"})
		p := problemOf(t, got)
		if !strings.Contains(got.body, `"title": "Refused by heed: `+want+`"`) || strings.Contains(want, "licence") && !strings.Contains(got.body, `"rule": "<license><prohibits type=\"usage\">`) {
			t.Errorf("%s\n%+v", got.body, p)
		}
	}
}
