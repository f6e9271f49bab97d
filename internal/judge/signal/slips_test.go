package signal_test

import (
	"strings"
	"testing"

	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// TestHeed_SlipsHideNoTerm has statements with slips as sites make them. Each is read as it was
// meant.
func TestHeed_SlipsHideNoTerm(t *testing.T) {
	t.Parallel()
	for kind, values := range map[string][]string{
		"quotation marks":        {`"noindex"`, "'noindex'", "“noindex”", "`noindex`", `"noindex, nofollow"`, "„noindex“"},
		"a full stop":            {"noindex.", "noindex!", "(noindex)", "[noindex]", "noindex, nofollow."},
		"another separator":      {"noindex/nofollow", "noindex|nofollow", "noindex+nofollow", "noindex & nofollow", "noindex and nofollow", "nofollow.noindex", "nofollow - noindex"},
		"another comma":          {"nofollow，noindex", "nofollow、noindex", "nofollow；noindex"},
		"a space that is none":   {"nofollow,\u00a0noindex", "\u00a0noindex", "nofollow\u3000noindex"},
		"what cannot be seen":    {"no\u00adindex", "noindex\u200b", "\ufeffnoindex", "no\u200bindex"},
		"full width":             {"ｎｏｉｎｄｅｘ", "nofollow, ｎｏｉｎｄｅｘ"},
		"a hyphen":               {"no-index", "no_index", "no–index", "No-Index, No-Follow", "non-index"},
		"two words":              {"no index", "not index", "nofollow, no index", "do-not index"},
		"a name before it":       {"robots: noindex", "robots=noindex", "content: noindex", "content=\"noindex\"", "X-Robots-Tag: noindex", "name=robots content=noindex", "meta robots noindex", "bots: noindex", "crawlers noindex", "all bots noindex", "spider noindex"},
		"a value":                {"noindex: true", "noindex=1", "noindex: yes", "noindex=on"},
		"the opposite":           {"index: no", "index=false", "index: off"},
		"a crawler, no colon":    {"examplebot noindex", "examplebot=noindex"},
		"a crawler's version":    {"ExampleBot/1.0: noindex", "examplebot/2: nofollow, noindex"},
		"a list of crawlers":     {"googlebot, examplebot: noindex", "ExampleBot, bingbot: noindex", "googlebot, examplebot, bingbot: nofollow, noindex"},
		"unavailable, no colon":  {"unavailable_after=2020-01-01", "unavailable_after 25 Jun 2010 15:00:00 PST", "unavailable-after: 2020-01-01", "unavailable after: 2020-01-01"},
		"another form of a date": {"unavailable_after: Jun 25, 2010 15:00:00", "unavailable_after: 25.06.2010", "unavailable_after: 2010/06/25", "unavailable_after: 20100625T150000Z"},
	} {
		for _, value := range values {
			must.Equal(t, refused(request{header: []string{"X-Robots-Tag: " + value}}.judge(t)), "search", "X-Robots-Tag, %s: %q refuses", kind, value)
			if strings.Contains(kind, "crawler") || strings.ContainsAny(value, `"`) {
				continue
			}
			must.Equal(t, refused(request{head: `<head><meta name="robots" content="` + value + `"></head>`}.judge(t)), "search", "META, %s: %q refuses", kind, value)
		}
	}
	for _, value := range []string{"noindex: false", "noindex=0", "otherbot noindex", "OtherBot/1.0: noindex", "googlebot, otherbot: noindex", "index, follow", "all", "max-snippet=-1", "follow: yes", "x: noindex"} {
		must.Equal(t, refused(request{header: []string{"X-Robots-Tag: " + value}}.judge(t)), "", "%q refuses", value)
	}
}

// Elements and fields whose names have slips are read.
func TestHeed_SlipsHideNoStatement(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"X-Robot-Tag", "X-Robots-Tags", "X-Robots", "XRobots-Tag", "X-RobotsTag", "X_Robots_Tag", "Robots", "Robots-Tag"} {
		must.Equal(t, refused(request{header: []string{name + ": noindex"}}.judge(t)), "search", "%s refuses", name)
	}
	for _, element := range []string{
		`<meta name=”robots” content=”noindex”>`, `<meta name=“robots” content=“noindex, nofollow”>`, `<meta name="robots:" content="noindex">`, `<meta name="robot" content="noindex">`,
		`<meta name="googlebot, examplebot" content="noindex">`, `<meta name="robots,googlebot" content="noindex">`, `<meta name="meta robots" content="noindex">`, "<meta name=\"\u00a0robots\" content=noindex>",
		`<meta property="robots" content="noindex">`, `<meta itemprop="robots" content="noindex">`, `<meta http-equiv="X-Robots-Tag" content="noindex">`, `<meta http-equiv="robots" content="noindex">`,
		`<meta name="robots" value="noindex">`, `<meta name="robots" contents="noindex">`, `<meta name='"robots"' content='"noindex"'>`, `<meta name="robots.txt" content="noindex">`,
		`<meta itemprop="robots" property="og:title" content="noindex">`, `<meta name="robots" contents="noindex" value="all">`, // the first of two
	} {
		must.Equal(t, refused(request{head: "<head>" + element + "</head>"}.judge(t)), "search", "%s refuses", element)
	}
	for _, element := range []string{`<meta property="og:robots" content="noindex">`, `<meta name="description" content="robots noindex">`, `<meta name="robots" content="index">`, `<meta name="otherbot, thirdbot" content="noindex">`} {
		must.Equal(t, refused(request{head: "<head>" + element + "</head>"}.judge(t)), "", "%s refuses", element)
	}
}

// What cannot be read and may be a restriction is recorded as unread, and refused under strict.
func TestHeed_TermsThatCannotBeReadAreNamed(t *testing.T) {
	t.Parallel()
	unread := []request{
		{head: `<head><meta name="robots content="noindex"></head>`}, {head: `<head><meta name="robots" noindex></head>`}, {head: `<head><meta name="robots" content"noindex"></head>`},
	}
	for _, value := range []string{"noidnex", "please do noindex this", "noindexed pages", "please do not index", "unavailable_after: soon", "noarchve", "noindex-nofollow-x", "nonidex"} {
		unread = append(unread, request{header: []string{"X-Robots-Tag: " + value}}, request{head: `<head><meta name="robots" content="` + value + `"></head>`})
	}
	for _, r := range unread {
		for _, profile := range []rules.Profile{rules.Standard, rules.Strict} {
			r.profile = profile
			v := r.judge(t)
			_, refused := v.Refuses(signal.PurposeSearch)
			must.True(t, refused == (profile == rules.Strict) && len(v.Statements) == 1 && v.Statements[0].Fault != "",
				"%s%v under %s: refused %v, %+v", r.head, r.header, profile, refused, v.Statements)
		}
	}
	for _, value := range []string{"unheardof", "max-image-preview:large, x", "index", "follow, y", "noydir", "see https://site.test/policy"} {
		v := request{header: []string{"X-Robots-Tag: " + value}, profile: rules.Strict}.judge(t)
		if _, refused := v.Refuses(signal.PurposeSearch); refused {
			t.Errorf("%q is refused: %+v", value, v.Statements)
		}
	}
}
