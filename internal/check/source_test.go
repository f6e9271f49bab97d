package check

import (
	"fmt"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestParsedTextsAreBounded(t *testing.T) {
	p := newParsed(rules.Standard)
	o, _ := must.Two(rules.ParseURL("http://h.test/"))(t)
	same := p.policy(o, someRules)
	must.Equal(t, p.policy(o, someRules), same, "the same text was parsed twice")
	other, _ := must.Two(rules.ParseURL("http://other.test/"))(t)
	sitemap := someRules + "Sitemap: https://h.test/map.xml\n"
	must.Equal(t, p.policy(o, sitemap), p.policy(other, sitemap), "a text that means the same everywhere was parsed twice")
	bound := "User-agent: *\nDisallow: http://h.test/a\n"
	if at := p.policy(other, bound).Decide(nil, rules.NewTarget("/a")); at.Verdict != rules.Allow {
		t.Errorf("a rule for another origin counts: %+v", at)
	}
	if at := p.policy(o, bound).Decide(nil, rules.NewTarget("/a")); at.Verdict != rules.Refuse {
		t.Errorf("a rule for this origin does not count: %+v", at)
	}
	at := p.of(bound)
	if at(o).Decide(nil, rules.NewTarget("/a")).Verdict != rules.Refuse || at(other).Decide(nil, rules.NewTarget("/a")).Verdict != rules.Allow {
		t.Error("a file is judged without regard to the origin")
	}
	p.limit = 1 << 20
	for i := range 1000 {
		p.policy(o, fmt.Sprint("User-agent: ", i, "\n", strings.Repeat("Disallow: /a\n", 100)))
	}
	must.True(t, p.policy(o, someRules) != same, "after more than the limit, the first policy is kept")
	cut := p.policy(o, strings.Repeat("# a line\n", rules.MaxBytes/9)+"User-agent: *\nDisallow: /")
	must.Equal(t, cut.Decide(rules.Identify("x"), rules.NewTarget("/")).Verdict, rules.Allow, "a line beyond the limit")
}

const someRules = "User-agent: *\nDisallow: /private\n\nUser-agent: GoodBot\nAllow: /\n"
