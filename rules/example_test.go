package rules_test

import (
	"fmt"
	"net/url"

	"heed/rules"
)

// The whole road: a file, an agent, a target, a verdict and what it rests on.
func Example() {
	u, _ := url.Parse("https://example.org/private/page?id=1")
	origin, err := rules.OriginOf(u)
	if err != nil {
		panic(err)
	}
	file := []byte(`User-agent: *
Disallow: /private/

User-agent: ExampleBot
Disallow: /private/
Allow: /private/page
`)
	policy := rules.New(rules.Source{Origin: origin, State: rules.Available}, file)
	agent := rules.Identify("Mozilla/5.0 (compatible; ExampleBot/2.1; +https://bots.example/about)")

	d := policy.Decide(agent, rules.NewTarget(u.RequestURI()))
	fmt.Println(d.Verdict, "by", d.Rule, "on line", d.Line, "for", d.Group)

	d = policy.Decide(nil, rules.NewTarget(u.RequestURI()))
	fmt.Println(d.Verdict, "by", d.Rule, "on line", d.Line, "for", d.Group)
	// Output:
	// allow by Allow: /private/page on line 6 for ExampleBot
	// refuse by Disallow: /private/ on line 2 for *
}

// A policy knows what it means that there is no file, or that it could not be had.
func ExampleNew() {
	missing := rules.New(rules.Source{State: rules.Unavailable, Status: 404}, nil)
	fmt.Println(missing.Decide(nil, rules.NewTarget("/page")).Verdict)

	broken := rules.New(rules.Source{State: rules.Unreachable, Status: 503}, nil)
	fmt.Println(broken.Decide(nil, rules.NewTarget("/page")).Verdict)
	// Output:
	// allow
	// refuse
}

// One file, read in the ways of different times and houses.
func ExampleNewAs() {
	file := []byte("User-agent: *\nDisallow: /\nAllow: /public\n")
	for _, profile := range []rules.Profile{rules.Standard, rules.REP1994} {
		p := rules.NewAs(profile, rules.Source{State: rules.Available}, file)
		fmt.Println(profile, p.Decide(nil, rules.NewTarget("/public/page")).Verdict)
	}
	// Output:
	// standard allow
	// rep1994 refuse
}

func ExampleIdentify() {
	for _, t := range rules.Identify("Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)").Tokens {
		fmt.Printf("%s, from %q\n", t.Name, t.Piece)
	}
	// Output:
	// mj12bot, from "MJ12bot/v1.4.8"
}

// Every name that is declared must be allowed, also one that no User-Agent
// string contains.
func ExampleDeclare() {
	p := rules.New(rules.Source{State: rules.Available}, []byte("User-agent: Google-Extended\nDisallow: /\n"))
	fmt.Println(p.Decide(rules.Declare("Googlebot"), rules.NewTarget("/page")).Verdict)
	fmt.Println(p.Decide(rules.Declare("Googlebot", "Google-Extended"), rules.NewTarget("/page")).Verdict)
	// Output:
	// allow
	// refuse
}

// A path has many spellings. The one that was refused is named.
func ExamplePolicy_Decide() {
	p := rules.New(rules.Source{State: rules.Available}, []byte("User-agent: *\nDisallow: /private/\n"))
	for _, target := range []string{"/private/", "/%70rivate/", "/x/../private/", "//private/", "/private%2F", "/public/"} {
		d := p.Decide(nil, rules.NewTarget(target))
		fmt.Printf("%s %s %q\n", d.Verdict, target, d.Variant)
	}
	// Output:
	// refuse /private/ ""
	// refuse /%70rivate/ ""
	// refuse /x/../private/ "v1"
	// refuse //private/ "v2"
	// refuse /private%2F "v3"
	// allow /public/ ""
}

func ExamplePolicy_Explain() {
	p := rules.New(rules.Source{State: rules.Available}, []byte("User-agent: ExampleBot\nDisallow: /a\nAllow: /a/b\n"))
	x := p.Explain(rules.Identify("ExampleBot/2.1 (OtherBot)"), rules.NewTarget("/a/b"))
	for _, t := range x.Tokens {
		fmt.Println(t.Name, "leads to", len(t.Groups), "groups")
	}
	for _, m := range x.Readings[0].Results[0].Matches {
		fmt.Println("line", m.Line, "matches:", m.Rule)
	}
	fmt.Println(x.Decision.Verdict)
	// Output:
	// examplebot leads to 1 groups
	// otherbot leads to 0 groups
	// line 3 matches: Allow: /a/b
	// line 2 matches: Disallow: /a
	// allow
}

// What access ignores is kept for those who honour it.
func ExamplePolicy_Fields() {
	p := rules.New(rules.Source{State: rules.Available}, []byte("User-agent: ExampleBot\nCrawl-delay: 2.5\nDisallow:\n"))
	for _, f := range p.Fields(rules.Identify("ExampleBot/1.0"), rules.CrawlDelay) {
		speed, ok := f.Speed()
		fmt.Println(speed.Delay, ok, "on line", f.Line)
	}
	// Output:
	// 2.5s true on line 2
}
