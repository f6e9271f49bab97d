package rules_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// siteFile is a robots.txt as sites write it, and the same rules in plain lines, which
// the naive engine reads.
type siteFile struct{ habit, written, plain string }

var siteFiles = []siteFile{
	{"plain groups", "User-agent: *\nDisallow: /images/\nAllow: /images/public/\n\nUser-agent: AlphaBot\nDisallow: /blog\n\nUser-agent: BetaBot\nDisallow:\n", ""},
	{"operators", "User-agent: *\nDisallow: /*.pdf$\nDisallow: /*?\nAllow: /*?page=\nDisallow: *.php$\nDisallow: /a*z/*/end\nAllow: /blog/*/$\n", ""},
	{"longest, and Allow among equals", "User-agent: *\nDisallow: /blog\nAllow: /blog/\nDisallow: /blog/2014\nAllow: /blog/*014\nAllow: /\nDisallow: /*\n", ""},
	{"spellings of octets", "User-agent: *\nDisallow: /caf%C3%A9\nDisallow: /%7Euser\nDisallow: /100%25\nDisallow: /a%2Fb\nAllow: /login?return_url=%2F\nDisallow: /login\n", ""},
	{"an Allow in the spelling that is sent", "User-agent: *\nDisallow: /\nAllow: /login?return_url=%2F\nAllow: /search?q=http://site.test/?x\n", ""},
	{"stars around names", "User-agent: *AlphaBot*\nDisallow: /blog\nUser-agent: BetaBot*\nDisallow: /images\nUser-agent: *GammaSpider\nDisallow: /search\n",
		"User-agent: AlphaBot\nDisallow: /blog\nUser-agent: BetaBot\nDisallow: /images\nUser-agent: GammaSpider\nDisallow: /search\n"},
	{"stars alone", "User-agent: **\nDisallow: /blog\nUser-agent: *.*\nDisallow: /images\nUser-agent: * all\nDisallow: /search\n",
		"User-agent: *\nDisallow: /blog\nDisallow: /images\nDisallow: /search\n"},
	{"lists of paths", "User-agent: *\nDisallow: /blog /images/ /search\n", "User-agent: *\nDisallow: /blog\nDisallow: /images/\nDisallow: /search\n"},
	{"what only looks like a list", "User-agent: *\nDisallow: /search/ ***\nDisallow: /* */*$\nAllow: /blog /images\n", "User-agent: *\nDisallow: /search/%20*\nDisallow: /*%20*/*$\nAllow: /blog%20/images\n"},
	{"a name and what it is compatible with", "User-agent: AlphaBot www.alpha.example (compatible with BetaBot)\nDisallow: /\n", "User-agent: AlphaBot\nDisallow: /\n"},
	{"two lines in one", "User-agent: *\nUser-agent: AlphaBot Disallow: /\nDisallow: /images\n", "User-agent: *\nDisallow: /images\nUser-agent: AlphaBot\nDisallow: /\nDisallow: /images\n"},
	{"a number for a name", "User-agent: 008\nDisallow: /\nUser-agent: *\nDisallow: /images\n", ""},
	{"UTF-8 mark", "\xEF\xBB\xBFUser-agent: *\nDisallow: /images\n", "User-agent: *\nDisallow: /images\n"},
	{"UTF-16 mark before UTF-8", "\xFF\xFEUser-agent: *\nDisallow: /images\n", "User-agent: *\nDisallow: /images\n"},
	{"UTF-16", utf16("User-agent: *\nDisallow: /caf\u00e9\n", false), "User-agent: *\nDisallow: /caf%C3%A9\n"},
	{"blank and unknown lines in a group", "User-agent: AlphaBot\n\nCrawl-delay: 5\nSitemap: https://site.test/s.xml\nUser-agent: BetaBot\n\n\nDisallow: /blog\n\nDisallow: /images\n",
		"User-agent: AlphaBot\nUser-agent: BetaBot\nDisallow: /blog\nDisallow: /images\n"},
	{"rules before any group", "Disallow: /blog\nUser-agent: *\nDisallow: /images\n", "User-agent: *\nDisallow: /images\n"},
	{"groups of one name", "User-agent: *\nDisallow: /blog\nUser-agent: AlphaBot\nDisallow: /x\nUser-agent: *\nDisallow: /images\n", ""},
	{"versions and lists of names", "User-agent: AlphaBot/2.1, BetaBot\nDisallow: /blog\nUser-agent: wget/1.6\nDisallow: /images\n",
		"User-agent: AlphaBot\nUser-agent: BetaBot\nDisallow: /blog\nUser-agent: wget\nDisallow: /images\n"},
	{"a whole User-Agent string", "User-agent: Mozilla/5.0 (compatible; AlphaBot/1.0; +http://bots.example/betabot)\nDisallow: /blog\n", "User-agent: AlphaBot\nDisallow: /blog\n"},
	{"misspelt fields", "Useragent: *\nDissallow: /blog\nDisalow: /images\nDisallow /search\nDISALLOW:/x\n", "User-agent: *\nDisallow: /blog\nDisallow: /images\nDisallow: /search\nDisallow: /x\n"},
	{"no slash, and whole URLs", "User-agent: *\nDisallow: images/\nDisallow: https://site.test/blog\nDisallow: https://other.test/search\n", "User-agent: *\nDisallow: /images/\nDisallow: /blog\n"},
	{"comments, tabs and line ends", "# a file\r\nUser-agent:\t*\t# all\r\n\tDisallow:\t/blog # not yet\r\nDisallow: /images\rDisallow: /search\r\n", "User-agent: *\nDisallow: /blog\nDisallow: /images\nDisallow: /search\n"},
	{"an octet that ends a line", "User-agent: *\nDisallow: /images\x00/public\n", "User-agent: *\nDisallow: /images\n"},
	{"other fields", "User-agent: *\nNoindex: /blog\nHost: site.test\nClean-param: ref /search\nRequest-rate: 1/5\nDisallow: /images\n", "User-agent: *\nDisallow: /images\n"},
	{"a page in place of a file", "<!DOCTYPE html><html><head><title>404</title></head><body><p>User-agent: of no use</p></body></html>\n", "User-agent: *\nDisallow:\n"},
	{"nothing", "", ""},
}

// siteTargets are 200 targets in the habits of links.
func siteTargets() (all []string) {
	for _, path := range []string{"/", "/blog", "/blog/", "/blog/2014/05/geeking-out.html", "/blog/tags/c++", "/images/logo.PNG", "/images/public/a.jpg", "/~user/", "/%7Euser/x",
		"/caf%C3%A9/", "/caf\u00e9", "/search", "/search/%20b", "/index.php", "/files/a.pdf", "//blog//x", "/./images/../blog/", "/a%2fb;jsessionid=0A1b", "/100%-cotton", "/x/a|b{c}"} {
		for _, query := range []string{"", "?", "?page=2", "?q=a+b&lang=en", "?return_url=%2F", "?q=http://site.test/?x", "?a%5B%5D=1", "?x=%zz", "?utm=/images/", "?&&=="} {
			all = append(all, path+query)
		}
	}
	return all
}

// siteAgents are User-Agent strings in the forms in which robots and others write them.
var siteAgents = []string{
	"", "AlphaBot", "alphabot/2.1 (+http://alpha.example/bot.html)", "Mozilla/5.0 (compatible; AlphaBot/2.1; +http://alpha.example/bot)", "Mozilla/5.0 (compatible; BetaBot; crawler@beta.example)",
	"Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36 (compatible; BetaBot/3)", "GammaSpider+(+http://www.gamma.example/betabot)",
	"008/0.83 (http://www.008.example/) Gecko/2008032620", "Wget/1.21.4", "Wget/1.13.4 (linux-gnu)", "python-requests/2.32.3", "curl/8.5.0", "Java/1.8.0_45", "Feedfetcher-Example; (+http://feeds.example/; 3 subscribers)",
	"Mozilla/5.0 (Windows; U; Windows NT 5.1; fr; rv:1.8.1) VoilaExampleBot BETA 1.2 (help@voila.example)", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
}

var (
	addressInAgent = regexp.MustCompile(`[A-Za-z]*://[^ ()\[\]{}<>,;"']*|[A-Za-z0-9._%+-]+@[A-Za-z0-9._%+-]+`)
	wordInAgent    = regexp.MustCompile(`[a-z0-9._-]+`)
)

// namesIn returns the names in a User-Agent string for which groups have rules: each of its
// words but those of addresses.
func namesIn(header string, groups []refGroup) (names []string) {
	words := wordInAgent.FindAllString(strings.ToLower(addressInAgent.ReplaceAllString(header, " ")), -1)
	for _, word := range words {
		if slices.ContainsFunc(groups, func(g refGroup) bool {
			return slices.ContainsFunc(g.names, func(n string) bool { return strings.EqualFold(n, word) })
		}) {
			names = append(names, word)
		}
	}
	return names
}

// compareSites asks the engine and the naive one about every target for every agent, under
// every file, and returns how many questions and differences there were.
func compareSites(t *testing.T, files []siteFile, targets, agents []string) (questions, differences int) {
	readings := make([][][]string, len(targets))
	for i, target := range targets {
		readings[i] = refReadings(target)
	}
	for _, f := range files {
		policy := rules.New(rules.Source{State: rules.Available, Origin: site}, []byte(f.written))
		if f.plain == "" {
			f.plain = f.written
		}
		groups := refParse(f.plain)
		known := map[string][]bool{} // the answers by the names that count
		refused := 0
		for _, header := range agents {
			names := namesIn(header, groups)
			key := strings.Join(names, " ")
			if known[key] == nil {
				for i := range targets {
					known[key] = append(known[key], refDecide(groups, names, readings[i]).allow)
				}
			}
			agent := rules.Identify(header)
			for i, target := range targets {
				questions++
				if !known[key][i] {
					refused++
				}
				if got := policy.Decide(agent, rules.NewTarget(target)); (got.Verdict == rules.Allow) != known[key][i] {
					if differences++; differences < 10 {
						t.Errorf("%s: %q asks for %s: engine says %+v, reference allow=%v", f.habit, header, target, got, known[key][i])
					}
				}
			}
		}
		closes := strings.Contains(f.plain, "Disallow: /")
		must.True(t, (refused > 0) == closes, "%s: %d questions are refused", f.habit, refused)
	}
	return questions, differences
}

// TestHeed_FilesOfSitesMeanTheirPlainFile reads files in all habits that are known of real
// sites. Nothing but their plain meaning decides about any target, for any agent.
func TestHeed_FilesOfSitesMeanTheirPlainFile(t *testing.T) {
	t.Parallel()
	targets := siteTargets()
	must.Equal(t, len(targets), 200, "targets")
	questions, differences := compareSites(t, siteFiles, targets, siteAgents)
	t.Logf("%d questions, %d differences", questions, differences)
}
