package cache

import (
	"strings"
	"testing"

	"heed/rules"
)

// Walls answer robots.txt with a page of their own, which is neither the
// site's file nor a word that there is none.
func TestHeed_ChallengePagesAreNoPermission(t *testing.T) {
	is := func(name string, a answer, wall string) {
		t.Helper()
		src := after(a).policy.Source()
		got := src.Err != nil && strings.Contains(src.Err.Error(), "challenge page ("+wall+")")
		if (src.State == rules.Unreachable) != (wall != "") || got != (wall != "") {
			t.Errorf("%s: state %v, err %v; want a challenge of %q", name, src.State, src.Err, wall)
		}
	}
	page := func(status int, html string) answer {
		a := said(status, "Content-Type", "text/html; charset=utf-8")
		a.body = []byte(html)
		return a
	}
	for _, m := range wallMarks {
		is(m.mark, page(200, "<!DOCTYPE html><html><script>var x='"+m.mark+"'</script></html>"), m.wall)
	}
	is("without a type", answer{
		origin: site, url: site.RobotsURL(), status: 200,
		body: []byte("<html><body><script id=\"anubis_challenge\">{}</script></body></html>"),
	}, "Anubis")
	is("203", page(203, "<html>window._cf_chl_opt={}</html>"), "Cloudflare")
	is("by a field", said(200, "Cf-Mitigated", "challenge"), "Cloudflare")
	is("by a field of any value", said(200, "X-Amzn-Waf-Action", "captcha"), "AWS WAF")

	is("a field that says something else", said(200, "Cf-Mitigated", "none"), "")
	is("a page behind a wall", page(200, "<html><script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script></html>"), "")
	file := said(200, "Content-Type", "text/plain")
	file.body = []byte("User-agent: *\nDisallow: /.well-known/sgcaptcha/\nDisallow: /_sec/cp_challenge/\n")
	is("a file that names the paths of a wall", file, "")
	is("far down a long page", page(200, "<html>"+strings.Repeat("x", maxChallenge)+"_cf_chl_opt"), "")
}

func TestHeed_OtherPagesHoldNoRulesAndAreReported(t *testing.T) {
	a := said(200, "Content-Type", "text/html")
	a.body = []byte("<!DOCTYPE html><html><title>Welcome</title></html>")
	src := after(a).policy.Source()
	if src.State != rules.Unavailable || !strings.Contains(src.Note, "HTML") {
		t.Errorf("%+v", src)
	}
	a.body = []byte("<html><pre>\nUser-agent: *\nDisallow: /private\n</pre></html>")
	p := after(a).policy
	if p.Source().State != rules.Available || p.Decide(nil, "/private").Verdict != rules.Refuse {
		t.Errorf("a page with rules: %+v", p.Source())
	}
}
