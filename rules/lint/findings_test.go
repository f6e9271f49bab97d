package lint_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
	"heed/rules/lint"
)

// site is the origin of every file.
var site = rules.Origin{Scheme: "https", Host: "site.test", Port: 443}

// findings are files and what is odd in them, as "line:column kind text".
var findings = []struct {
	file string
	want string
}{
	{"User-agent: *\nDisallow: /a\nDisallow: /b*c$\n\nUser-agent: GoodBot\nDisallow:\nSitemap: https://site.test/s.xml\n", ""},
	{"", ""},
	{"# nothing yet\n", "0:0 no-group "},
	{"User-agent: *\nDisallow: /\n" + strings.Repeat("# far too much\n", 40_000), "0:0 over-500-kib "},
	{"User-agent: *\nDisallow: /\n" + strings.Repeat("# far too much\n", 300_000), "0:0 long-file "},
	{"\xFE\xFF\x00" + strings.Join(strings.Split("User-agent: *\nDisallow: /\n", ""), "\x00"), "0:0 utf-16 "},
	{"\xEF\xBB\xBFUser-agent: *\nDisallow:/\n", "0:0 byte-order-mark "},
	{"\xEF\xBBUser-agent: *\nDisallow:/\n", "0:0 partial-mark "},
	{"<pre>User-agent: *\nDisallow: /a\n</pre>\n", "0:0 html-page \n1:1 prefixed-field <pre>User-agent\n2:1 orphan-rule Disallow: /a\n3:1 no-field </pre>"},
	{"<html>\n<body>Not found</body>\n</html>\n", "0:0 html-page \n1:1 no-field <html>\n2:1 no-field <body>Not found</body>\n3:1 no-field </html>"},
	{"User-agent: *\n" + strings.Repeat("Disallow: /"+strings.Repeat("*a", 8000)+"\n", 140),
		"0:0 over-500-kib \n0:0 many-wildcards \n" + repeated(3, 141, "11 repeated-rule /"+strings.Repeat("*a", 100)[:199])},
	{strings.Repeat("User-agent: "+strings.Repeat("a ", 8000)+"\n", 9) + "Disallow: /\n",
		"0:0 many-words \n" + repeated(1, 9, "13 name-of-words "+strings.Repeat("a ", 100))},
	{"User-agent: *\nDisallow: /" + strings.Repeat("a", 16_660) + "\n", "2:16664 long-line aaaaaaaa"},
	{"User-agent: *\nDisallow: /a\x00b\n", "2:13 nul \x00b"},
	{"User-agent: *\nDisallow: /caf\xE9\n", "2:15 not-utf-8 \xE9"},
	{"User-agent: *\nDisallow: /ü/é # ä\n", ""},
	{"hello\nUser-agent: *\nwhat is this\n: /x\nDisallow: /x\n", "1:1 no-field hello\n3:1 no-field what is this\n4:1 no-field : /x"},
	{"Useragent: *\nDissallow: /a\nDisallows: /b\nSite-map: https://site.test/\n",
		"1:1 misspelt-field Useragent\n2:1 misspelt-field Dissallow\n3:1 misspelt-field Disallows\n4:1 misspelt-field Site-map"},
	{"User-agent: *\nDisalllow: /a\nUsr-agent: b\nAlow: /c\nUser_agent: d\nFollow: e\nDisallow: /\n",
		"2:1 likely-misspelt Disalllow\n3:1 likely-misspelt Usr-agent\n4:1 likely-misspelt Alow\n5:1 likely-misspelt User_agent\n6:1 unknown-field Follow"},
	{"User-agent: *\n\uFEFFDisallow: /a\n\u00A0Allow: /b\nDisallow: \u00A0/c\nDisallow: /d\n",
		"2:1 hidden-character \uFEFFDisallow\n3:1 hidden-character \u00A0Allow\n4:11 hidden-character \u00A0/c"},
	{"User-agent: \u00A0*\nDisallow: /\n", "1:13 hidden-character \u00A0*\n1:13 name-star \u00A0*"},
	{"User-agent: *\n- Disallow: /a\n// Allow: /b\n<p>User-agent: b</p>\n1. Disallow: /c\nDisallow: /d\n- a remark\n",
		"2:1 prefixed-field - Disallow\n3:1 prefixed-field // Allow\n4:1 prefixed-field <p>User-agent\n5:1 prefixed-field 1. Disallow\n7:1 no-field - a remark"},
	{"User-agent: all\nUser-agent: Good|Bad\nDisallow: /(a|b)\nDisallow: \"/x\"\nDisallow: /p\u200Bq\nDisallow: *$\n",
		"1:13 name-for-all all\n2:13 name-character Good|Bad\n2:13 name-of-words Good|Bad\n2:17 separator |\n3:12 regular-expression (a|b)\n4:11 quoted-value \"\n4:11 no-slash \"/x\"\n5:13 hidden-character \u200Bq\n6:11 everything *$"},
	{"User-agent *\nDisallow /a\n", "1:1 missing-colon User-agent *\n2:1 missing-colon Disallow /a"},
	{"User-agent: *\nColour: blue\nDisallow: /\n", "2:1 unknown-field Colour"},
	{"User-agent: * Disallow: /a\n", "1:15 joined-lines Disallow: /a"},
	{"Disallow: /a\nUser-agent: *\nDisallow: /b\n", "1:1 orphan-rule Disallow: /a"},
	{"User-agent: *\nDisallow: /a\nAllow:\n", "3:1 empty-allow Allow"},
	{"User-agent: *\nDisallow: /a /b\n", "2:11 path-list /a /b"},
	{"User-agent: *\nDisallow: /a, /b\n", "2:11 path-list /a, /b\n2:13 comma-in-paths ,"},
	{"User-agent: *\nDisallow: https://other.test/a\n", "2:11 foreign-url https://other.test/a"},
	{"User-agent: *\nDisallow: https://site.test/a\n", "2:11 absolute-url https://site.test/a"},
	{"User-agent: *\nDisallow: private/\n", "2:11 no-slash private/"},
	{"User-agent: *\nDisallow: /my folder\n", "2:11 blank-in-path /my folder"},
	{"User-agent: *\nDisallow: /a#b\nDisallow: /b # c\n", "2:13 hash-in-path #"},
	{"User-agent: *\nDisallow: /a\x01b\n", "2:13 control-octet \x01"},
	{"User-agent: *\nDisallow: /a$b$\n", "2:13 inner-dollar $"},
	{"User-agent: *\nDisallow: /a%zz%41%4\n", "2:13 bad-escape %\n2:19 bad-escape %"},
	{"User-agent: *\nDisallow: /a/../b\nDisallow: /./c$\nDisallow: /d..e/...\nDisallow: /f?/../g\n", "2:11 dot-segment /a/../b\n3:11 dot-segment /./c$"},
	{"User-agent: *\nDisallow: /a*\nDisallow: *\nDisallow: /b*$\n", "2:13 trailing-star *"},
	{"User-agent: *\nDisallow: /robots.txt\n", "2:11 robots-txt /robots.txt"},
	{"User-agent: *\nDisallow: /a\nDisallow: /%61\nDisallow: /a$\nDisallow: /b*c\nDisallow: /%62*c\nDisallow: /b%2Ac\n\nUser-agent: x1\nDisallow: /a\n",
		"3:1 repeated-rule Disallow: /%61\n6:1 repeated-rule Disallow: /%62*c\n9:13 name-character x1"},
	{"User-agent: *\nDisallow: /a\nAllow: /a\n", "3:8 opposed-rules /a"},
	{"User-agent:\nDisallow: /\n", "1:12 no-name "},
	{"User-agent: 008\nDisallow: /\n", "1:13 name-character 008"},
	{"User-agent: mozilla/5.0 (X11)\nUser-agent: Chrome\nDisallow: /\n", "1:13 names-nobody mozilla/5.0 (X11)\n2:13 names-nobody Chrome"},
	{"User-agent: Mozilla/5.0 (compatible; ABot/1.0)\nDisallow: /\n", "1:13 whole-user-agent Mozilla/5.0 (compatible; ABot/1.0)"},
	{"User-agent: ABot, BBot\nDisallow: /\n", "1:13 name-list ABot, BBot"},
	{"User-agent: a!, b!\nDisallow: /\n", "1:13 name-character a!, b!\n1:13 name-list a!, b!"},
	{"User-agent: Chrome, Safari\nDisallow: /\n", "1:13 name-list Chrome, Safari\n1:13 names-nobody Chrome, Safari"},
	{"User-agent: Copernicus Fred\nDisallow: /\n", "1:13 name-of-words Copernicus Fred"},
	{"User-agent: ABot/1.0\nDisallow: /\n", "1:13 name-version ABot/1.0"},
	{"User-agent: ABot*\nDisallow: /\n", "1:13 name-star ABot*"},
	{"User-agent: archive.org_bot\nDisallow: /\n", "1:13 name-character archive.org_bot"},
	{"User-agent: * and all\nDisallow: /\n", "1:13 star-and-text * and all"},
	{"User-agent: ABot\nCrawl-delay: 5\nUser-agent: BBot\n\nUser-agent: CBot\nUser-agent: DBot\nDisallow: /\n",
		"3:1 shared-group User-agent\n5:1 shared-group User-agent"},
	{"User-agent: ABot\n\n# rules\nDisallow: /\n\nDisallow: /b\n", "4:1 blank-in-group Disallow"},
	{"User-agent: *\nDisallow: /a\nUser-agent: ABot\nDisallow: /b\nUser-Agent: *\nDisallow: /c\n", "5:13 repeated-group *"},
	{"User-agent: *\nDisallow: /a\n\nUser-agent: ABot\n", "4:13 group-without-rules ABot"},
	{"User-agent: *\nCrawl-delay: soon\nCrawl-delay: -1\nCrawl-delay: 0,5\nRequest-rate: 1\nVisit-time: 25-26\nSitemap: /s.xml\nDisallow: /\n",
		"2:14 bad-value soon\n3:14 bad-value -1\n5:15 bad-value 1\n6:13 bad-value 25-26\n7:10 bad-value /s.xml"},
	{"User-agent: *\nCrawl-delay: 10s\nRequest-rate: 1 per minute\nVisit-time: 6-8\nDisallow: /\n",
		"2:14 loose-value 10s\n3:15 loose-value 1 per minute\n4:13 loose-value 6-8"},
	{"Crawl-delay: 5\nUser-agent: *\nDisallow: /\n", "1:1 orphan-field Crawl-delay"},
	{"User-agent: *\nNoindex: /a\nDisallow: /\n", "2:1 no-effect Noindex"},
	{"User-agent: *\nDisallow: /\nHost: site.test\n", "3:1 old-field Host"},
	{"User-agent: *\nDisallow: /a–b\n", "2:13 look-alike –"},
	{"\x1f\x8b\b\x00what\nhello\n", "0:0 binary-file "},
	{strings.Repeat("\x00 ", 9), "0:0 binary-file "},
	{"\x7fELF\nUser-agent: *\nDisallow: /a\n", "1:1 no-field \x7fELF"}, // a rule is a rule
	{strings.Repeat("what\n", 10_001), "0:0 further-findings \n" + repeated(1, 10_000, "1 no-field what")},
}

// repeated returns a finding once for each of some lines.
func repeated(from, to int, finding string) string {
	var b strings.Builder
	for line := from; line <= to; line++ {
		fmt.Fprintf(&b, "%d:%s\n", line, finding)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func told(found []lint.Finding) string {
	var lines []string
	for _, f := range found {
		if f.Kind.Means() == "" {
			lines = append(lines, "no words for "+string(f.Kind))
		}
		lines = append(lines, fmt.Sprintf("%d:%d %s %s", f.Line, f.Column, f.Kind, f.Text))
	}
	return strings.Join(lines, "\n")
}

func TestHeed_LintFinds(t *testing.T) {
	t.Parallel()
	for _, c := range findings {
		got := told(lint.Lint(rules.Standard, site, []byte(c.file)))
		must.Equal(t, got, c.want, "%.300q\nfound", c.file)
	}
}

// TestHeed_EveryFindingHasWords holds that each kind is found in some file, or is an accident
// (slips_test.go), and has a meaning and an advice.
func TestHeed_EveryFindingHasWords(t *testing.T) {
	t.Parallel()
	source, accidents := must.Get(os.ReadFile("kinds.csv"))(t), string(must.Get(os.ReadFile("slips_test.go"))(t))
	found := map[string]bool{}
	for _, c := range findings {
		for _, profile := range []rules.Profile{rules.Standard, rules.Google} {
			for _, f := range lint.Lint(profile, site, []byte(c.file)) {
				found[string(f.Kind)] = true
			}
		}
	}
	kinds := regexp.MustCompile(`(?m)^([a-z0-9-]+),(?:note|misleading|lost),`).FindAllStringSubmatch(string(source), -1)
	must.Need(t, len(kinds) >= 40, "%d kinds", len(kinds))
	for _, k := range kinds {
		kind := lint.Kind(k[1])
		must.True(t, found[k[1]] || strings.Contains(accidents, `"`+k[1]+`":`), "%s: is found in no file", kind)
		for _, words := range []string{kind.Means(), kind.Instead()} {
			must.True(t, strings.HasSuffix(words, ".") && !strings.Contains(words, "heed"), "%s: says %q", kind, words)
		}
	}
	k := lint.Kind("none")
	must.True(t, k.Means() == "" && k.Severity() == lint.Note, "no kind means %q", k.Means())
}

// TestHeed_LintReadsAsTheProfileDoes holds that a finding is about the reading
// that counts.
func TestHeed_LintReadsAsTheProfileDoes(t *testing.T) {
	t.Parallel()
	file := []byte("User-agent: Q42bot\nDisallow: private\n")
	must.Equal(t, told(lint.Lint(rules.Google, site, file)), "1:14 name-cut 42bot\n2:11 no-slash private", "google")
	blank := []byte("User-agent: *\n\nDisallow: /a\n")
	must.Contain(t, told(lint.Lint(rules.REP1994, site, blank)), "3:1 orphan-rule Disallow: /a", "rep1994")
}
