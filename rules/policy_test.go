package rules

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

func policyOf(text string) *Policy {
	o := Origin{Scheme: "https", Host: "site.test", Port: 443}
	return New(Source{Origin: o, State: Available}, []byte(text))
}

// TestRFC9309_Examples holds rules against targets, each as one line of a file.
func TestRFC9309_Examples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules, target string
		want          Verdict
	}{
		{"Disallow: /tmp", "/tmp.html", Refuse},
		{"Disallow: /tmp/", "/tmp", Allow},
		{"Disallow: /a%3cd.html", "/a%3Cd.html", Refuse},
		{"Disallow: /a%2fb.html", "/a/b.html", Allow},
		{"Disallow: /%7ejoe/", "/~joe/x", Refuse},
		{"Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", Refuse},
		{"Disallow: /foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", Refuse},
		{"Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", Refuse},
		{"Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html", Refuse},
		{"Disallow: /path/foo-%24", "/path/foo-$", Refuse},
		{"Disallow: *.gif$", "/x/y.gif", Refuse},
		{"Disallow: /*.php$", "/a.php?x", Allow},
		{"Disallow: /a:b", "/a%3Ab", Refuse},
		{"Allow: /fish\nDisallow: /fish*", "/fish", Refuse},
		{"Disallow: /a\nAllow: /a", "/a", Allow},
		{"Disallow:", "/a", Allow},
		{"Disallow: /private", "/robots.txt", Allow},
		{"Disallow: /", "/robots.txt", Allow},
		{"Disallow: /private", "/x/../private/a", Refuse},
		{"Disallow: /private", "//private/a", Refuse},
		{"Disallow: /private", "/x/%2e%2e/private/", Refuse},
		{"Disallow: /private", "/%2fprivate/", Refuse},
		{"Disallow: /private", "/x/..%2fprivate/", Refuse},
		{"Disallow: /private", "/%5Cprivate", Refuse},
		{"Disallow: /private", "/x//../private/", Refuse},
		{"Disallow: private/", "/private/", Refuse},
		{"Disallow: /a /b", "/b/c", Refuse},
		{"Disallow: /my folder/", "/my%20folder/x", Refuse},
		{"Disallow: https://site.test/p", "/p", Refuse},
		{"Disallow: https://other.test/p", "/p", Allow},
	} {
		p := policyOf("User-agent: *\n" + c.rules)
		must.Equal(t, p.Decide(nil, NewTarget(c.target)).Verdict, c.want, "%q for %s", c.rules, c.target)
	}
}

// TestHeed_AgentsFindTheirGroups holds User-Agent strings against group names.
func TestHeed_AgentsFindTheirGroups(t *testing.T) {
	t.Parallel()
	file := `User-agent: MJ12bot
Disallow: /mj

User-agent: GPTBot
User-agent: CCBot
Disallow: /ai

User-agent: googlebot
Disallow: /g

User-agent: Sogou web spider
Disallow: /sogou

User-agent: *
Disallow: /star

User-agent: Googlebot
Disallow: /g2
`
	for _, c := range []struct {
		agent, target string
		want          Verdict
	}{
		{"Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)", "/mj", Refuse},
		{"Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)", "/star", Allow},
		{"NotGPTBot/1.0", "/ai", Allow},
		{"NotGPTBot/1.0", "/star", Refuse},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot", "/ai", Refuse},
		{"CCBot/2.0 (https://gptbot.test/)", "/ai", Refuse},
		{"OtherBot/1.0 (+https://site.test/googlebot.html)", "/g", Allow},
		{"Googlebot-Image/1.0", "/g2", Refuse},
		{"Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)", "/sogou", Refuse},
		{"GPTBot/1.0 Googlebot/2.1", "/ai", Refuse},
		{"GPTBot/1.0 Googlebot/2.1", "/g", Refuse},
		{"", "/star", Refuse},
	} {
		p := policyOf(file)
		if d := p.Decide(Identify(c.agent), NewTarget(c.target)); d.Verdict != c.want {
			t.Errorf("%q for %s: %+v, want %v (tokens %v)", c.agent, c.target, d, c.want, Identify(c.agent).Tokens)
		}
	}
}
