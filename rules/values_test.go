package rules_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
	"heed/rules/clock"
	"heed/rules/lint"
)

// TestHeed_ValuesOfOtherFields holds values against what they say; nothing
// where they say nothing.
func TestHeed_ValuesOfOtherFields(t *testing.T) {
	t.Parallel()
	const none = "nothing"
	for _, c := range []struct {
		kind  rules.FieldKind
		value string
		want  string
	}{
		{rules.CrawlDelay, "1,5", "1.5s"},
		{rules.CrawlDelay, "soon", none},
		{rules.CacheDelay, "10", "10s"},
		{rules.RequestRate, "30/1m", "2s"},
		{rules.RequestRate, "2/1h 0800-1845", "[30m0s from 480 to 1125]"},
		{rules.RequestRate, "slow", none},
		{rules.VisitTime, "0600 - 2400", "from 360 to 0"},
		{rules.VisitTime, "0600", none},
		{rules.Sitemap, "https://site.test/s.xml", "a value"},
		{rules.Sitemap, "/s.xml", none},
		{rules.Sitemap, "ftp://site.test/s.xml", none},
		{rules.Sitemap, "https://", none},
		{rules.CleanParam, "ref", "a value"},
		{rules.CleanParam, "a&b /shop/", "a value"},
		{rules.CleanParam, "a&& /shop/", none},
		{rules.CleanParam, "a b c", none},
		{rules.CleanParam, "", none},
		{rules.Noindex, "5", none},
	} {
		must.Equal(t, said(rules.Field{Kind: c.kind, Value: c.value}), c.want, "%v: %s says", c.kind, c.value)
	}
}

// said puts the value of a field into words, whatever its kind.
func said(f rules.Field) string {
	said := []string{}
	tell := func(ok bool, format string, args ...any) {
		if ok {
			said = append(said, fmt.Sprintf(format, args...))
		}
	}
	speed, ok := f.Speed()
	tell(ok && f.Kind != rules.VisitTime, "%v", speed.Delay)
	tell(ok && (f.Kind == rules.VisitTime || speed.Window != (clock.Window{})), "from %d to %d", speed.Window.From, speed.Window.To)
	if f.Kind == rules.Sitemap || f.Kind == rules.CleanParam {
		found := lint.Lint(rules.Standard, site, []byte(f.Kind.String()+": "+f.Value))
		bad := func(f lint.Finding) bool { return f.Kind == "bad-value" }
		tell(!slices.ContainsFunc(found, bad), "a value")
	}
	switch len(said) {
	case 0:
		return "nothing"
	case 1:
		return said[0]
	}
	return fmt.Sprint(said)
}

func TestHeed_WindowsMayGoOverMidnight(t *testing.T) {
	t.Parallel()
	at := func(clock string) time.Time {
		c := must.Get(time.Parse("15:04", clock))(t)
		return c.In(time.FixedZone("east", 2*60*60)) // the same moment, told elsewhere
	}
	for _, c := range []struct {
		window      clock.Window
		clock       string
		isContained bool
	}{
		{clock.Window{}, "13:00", true},
		{clock.Window{From: 60, To: 120}, "01:00", true},
		{clock.Window{From: 60, To: 120}, "01:59", true},
		{clock.Window{From: 60, To: 120}, "02:00", false},
		{clock.Window{From: 60, To: 120}, "00:59", false},
		{clock.Window{From: 1320, To: 360}, "22:00", true},
		{clock.Window{From: 1320, To: 360}, "05:59", true},
		{clock.Window{From: 1320, To: 360}, "06:00", false},
		{clock.Window{From: 1320, To: 360}, "12:00", false},
	} {
		must.Equal(t, c.window.Contains(at(c.clock)), c.isContained, "%v contains %s", c.window, c.clock)
	}
}

// A signal after a blank line or a Sitemap line is apart from its group, until a line of
// RFC 9309 follows; a comment separates nothing.
func TestHeed_FieldsReportWhomTheyConcern(t *testing.T) {
	t.Parallel()
	p := policyAs(rules.Standard, `Content-Usage: a
User-agent: *
License: b
# remark
License: c

License: d
Disallow: /x
License: e
Sitemap: https://site.test/s.xml
License: f
User-agent: Bot
Content-Signal: g

Content-Signal: h
`)
	scopes := []string{"file", "group", "other"}
	list := func(agent string) string {
		text := ""
		for _, f := range p.Fields(rules.Identify(agent), rules.ContentUsage, rules.ContentSignal, rules.License) {
			text += fmt.Sprintf(" %s:%s", f.Value, scopes[f.Scope])
			if f.Apart {
				text += ",apart"
			}
		}
		return text[1:]
	}
	for agent, want := range map[string]string{
		"Other": "a:file b:group c:group d:group,apart e:group f:group,apart g:other h:other,apart",
		"Bot":   "a:file b:other c:other d:other,apart e:other f:other,apart g:group h:group,apart",
	} {
		must.Equal(t, list(agent), want, agent)
	}
	must.Same(t, p.Fields(nil, rules.CrawlDelay), nil, "fields that are not there")
}

// A line that chooses by path matches as Allow and Disallow do.
func TestRFC9309_PatternsMatchAsRulesDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, target string
		octets          int
		ok              bool
		read            bool // it matches another reading
	}{
		{"/", "/x", 1, true, false},
		{"/a", "/a1", 2, true, false},
		{"/a%20b", "/a%20b", 6, true, false},
		{"/~a", "/%7Ea", 3, true, false},
		{"/a/b", "/a%2Fb", 4, false, true},
		{"*.pdf$", "/x.pdf", 6, true, false},
		{"*.pdf$", "/x.pdf?y", 6, false, false},
		{"/a*c", "/abc/d", 4, true, false},
		{"a", "/a", 2, true, false},
		{"", "/a", 0, true, false},
		{"/x$", "/x", 3, true, false},
	} {
		paths := rules.NewPaths([]string{c.pattern, strings.Repeat("*", c.octets)}) // as long, and matches everything
		want := []rules.Selection{{Of: []int{1}}}
		if c.ok {
			want[0].Of = []int{0, 1}
		}
		got := paths.Select(rules.NewTarget(c.target), rules.Standard, rules.Longest, nil)
		must.True(t, c.read || reflect.DeepEqual(got, want), "%q for %q: %v", c.pattern, c.target, got)
		p := policyAs(rules.Standard, "User-agent: *\nDisallow: "+c.pattern+"\n")
		d := p.Decide(nil, rules.NewTarget(c.target))
		refused := d.Verdict == rules.Refuse && d.Variant == ""
		must.True(t, c.pattern == "" || refused == c.ok, "%q: a rule of it refuses %q: %v", c.pattern, c.target, refused)
	}
	must.Same(t, new(rules.Paths).Select(rules.NewTarget("/"), rules.Standard, rules.Longest, nil), nil, "selected, with no path")
}

func TestHeed_FieldsBelongToGroupsOrToTheFile(t *testing.T) {
	t.Parallel()
	p := policyAs(rules.Standard, `Crawl-delay: 9
User-agent: ABot
Crawl-delay: 1
User-agent: BBot
Crawl-delay: 2
Sitemap: https://site.test/s.xml
Disallow: /
Crawl-delay: 3
User-agent: *
Crawl-delay: 4
License: https://site.test/l.xml
`)
	delays := func(agent string) (lines []int) {
		for _, f := range p.Fields(rules.Identify(agent), rules.CrawlDelay) {
			if f.Scope == rules.ScopeOther {
				continue
			}
			lines = append(lines, f.Line)
		}
		return lines
	}
	for agent, want := range map[string][]int{
		"ABot/1.0":      {1, 3, 5, 8},
		"BBot":          {1, 3, 5, 8},
		"ABot BBot":     {1, 3, 5, 8},
		"CBot":          {1, 10},
		"ABot and CBot": {1, 3, 5, 8},
	} {
		must.Same(t, delays(agent), want, "delays of %s stand on lines", agent)
	}
	var told []string
	for _, kind := range []rules.FieldKind{rules.CrawlDelay, rules.Sitemap, rules.License} {
		for _, f := range p.Fields(nil, kind) {
			if f.Scope == rules.ScopeOther {
				continue
			}
			told = append(told, fmt.Sprintf("%d %v %s", f.Line, f.Kind, f.Value))
		}
	}
	want := []string{
		`1 crawl-delay 9`, `10 crawl-delay 4`,
		`6 sitemap https://site.test/s.xml`, `11 license https://site.test/l.xml`,
	}
	must.Same(t, told, want)
}
