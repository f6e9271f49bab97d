package lint

import (
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// TestHeed_AccidentsInPaths has what sites write by accident as the value of a rule.
func TestHeed_AccidentsInPaths(t *testing.T) {
	t.Parallel()
	check(t, slipsInPath, map[Kind][]string{
		"regular-expression": {"^/private", "/(private|secret)", "/[0-9]+/x", "/[a-z]/", "/.*\\.pdf$", "/a{2}", "/a{2,5}", "/private/?$", "/x\\d+", "/img/.*", "/(?i)private", "/(ab)+", "~* ^/x", "/a.+b"},
		"glob":               {"/*.{jpg,png}", "/a/**/b", "/private/**", "/[!a]x"},
		"placeholder":        {"/user/:id", "/user/{id}", "/{{ path }}/", "/<int:id>/", "/<path>", "/%s", "/${base}/x", "/user/$id", "/[slug]", "/[your path]/", "/path/to/folder"},
		"quoted-value":       {`"/private"`, "'/private'", "“/private”", "`/a`", "«/a»"},
		"backslash":          {`\private\`, `/a\b`},
		"html-entity":        {"/a?b=1&amp;c=2", "/caf&#233;", "/a&nbsp;b"},
		"comment-sign":       {"/private // not for robots", "/private <!-- x -->", "/a /* b */", "/a ; b", "/a -- b"},
		"host-in-path":       {"//site.test/private", "/www.site.test/private", "www.site.test/private", "site.test/private", "http:/site.test/", "/example.com/x"},
		"file-path":          {"/var/www/html/private", "/home/user/public_html/x", "C:/inetpub/x", "/public_html/x", "./private", "../x"},
		"word-for-path":      {"none", "nothing", "All", "no", "n/a", "-", "true", "."},
		"method-in-path":     {"GET /private", "post /x"},
		"separator":          {"/a;/b", "/a|/b", "/a and /b", "/a,/b", "/a; /b"},
		"last-sign":          {"/private;", "/private,", "/private>"},
		"escaped-slash":      {"/a%2Fb", "/a%2fb"},
		"double-escape":      {"/a%2520b", "/%253Fx"},
		"query-at-end":       {"/page?$", "/a/b.php?$"},
		"repeated-field":     {"Disallow /private", "allow"},
		everywhere:           {"*$", "/*$", "**", "/**", "*/", "/***$"},
		lookAlike:            {"／private", "/private＊", "/a–b", "/привaт/х", "/a∗", "/priv\u0430te"},
		hiddenCharacter:      {"/private\u200b", "/pri\u00advate", "/a\u00a0b", "\ufeff/a", "/a\u2060"},
	})
}

// TestHeed_AccidentsInNames has what sites write by accident as the name of a robot.
func TestHeed_AccidentsInNames(t *testing.T) {
	t.Parallel()
	check(t, slipsInName, map[Kind][]string{
		"name-pattern":   {".*", "^ABot$", "ABot.*", "(ABot|BBot)", "[Aa]Bot", "ABot(-Image)?", "/bot/i", "%bot%", "~*abot", `ABot\d`},
		"negated-name":   {"!ABot", "-ABot", "not ABot", "all except ABot", "* except ABot"},
		"name-for-all":   {"all", "Any", "everyone", "all robots", "bots", "default", "All-Bots"},
		"name-address":   {"66.249.66.1", "66.249.*.*", "66.249.66.0/24", "2001:db8::1", "crawl.abot.com", "http://abot.test/", "bot@site.test"},
		"quoted-value":   {`"ABot"`, "'ABot'", "“ABot”", "ABot\""},
		"placeholder":    {"<robot>", "[robot name]", "{{ bot }}", "your-bot", "BotName", "%s"},
		"separator":      {"ABot; BBot", "ABot|BBot", "ABot and BBot"},
		"comment-sign":   {"ABot // a robot", "ABot <!-- x -->"},
		"repeated-field": {"User-agent ABot"},
		lookAlike:        {"＊", "∗", "A\u0412ot", "ABot–Image", "G\u043e\u043eglebot"},
		hiddenCharacter:  {"ABot\u200b", "\u200bABot", "A\u00adBot", "ABot\u00a0"},
	})
}

// check holds that each text has a slip of its kind.
func check(t *testing.T, find func(string) []slip, all map[Kind][]string) {
	t.Helper()
	for kind, texts := range all {
		for _, text := range texts {
			var kinds []string
			found := false
			for _, s := range find(text) {
				found = found || s.kind == kind && s.from >= 0 && s.from < s.to && s.to <= len(text)
				kinds = append(kinds, string(s.kind))
			}
			must.True(t, found, "%q: found %q, want %s", text, kinds, kind)
		}
	}
}

// TestHeed_WhatIsMeantIsNoAccident has values as sites mean them.
func TestHeed_WhatIsMeantIsNoAccident(t *testing.T) {
	t.Parallel()
	for _, path := range strings.Fields(`/ * /* /private /private/ /a* /*.pdf$ *.gif$ /*? /*?* /*?s= /*&x= /cgi-bin/ /wp-admin/admin-ajax.php /wiki/Special: /wiki/Foo_(bar)
		/index.* /index.php?$x /*.php$ /*/feed/$ /a-b/c_d~e /~user/ /%7Euser /caf%C3%A9 /café /привет/ /日本語／x /特集：x /*?filter[price]= /*[]= /*?*[min-price]= /a;jsessionid=
		/search?q=a+b /a+b/ /@handle /!x /a,b /a:b /foo.bar/ /*.json?* /x$ /c++/ /2026/11/26 /*sort=*&dir= /%d0%bf /Foo_(bar)* /node_modules /home/ /homepage/www/ /a.b.c/`) {
		found := slipsInPath(path)
		must.True(t, found == nil, "%q: %v", path, found)
	}
	for _, name := range []string{
		"*", "Googlebot", "archive.org_bot", "ABot/1.0", "008", "A Bot", "ia_archiver-web.archive.org", "Mediapartners-Google*", "Bot-1.2", "Яндекс", "Baiduspider+",
		"360Spider", "WebZIP/4.21", "Wget", "Teleport Pro", "libwww-perl", "Copernicus Fred", "Sogou web spider",
	} {
		found := slipsInName(name)
		must.True(t, found == nil, "%q: %v", name, found)
	}
}

func FuzzSlips(f *testing.F) {
	f.Add("/(a|b)\u200b*$")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range append(slipsInPath(text), slipsInName(text)...) {
			must.True(t, s.from >= 0 && s.to >= s.from && s.to <= len(text) && s.kind.Means() != "", "%q: %+v", text, s)
		}
	})
}
