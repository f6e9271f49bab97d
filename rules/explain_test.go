package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

const explained = `User-agent: *
Disallow: /star

User-agent: GoodBot
User-agent: Other Good Bot
Disallow: /a
Allow: /a/b
Disallow: /a/b*

User-agent: Googlebot
Disallow: /g

User-agent: goodbot
Disallow: /x
`

// printSteps puts an explanation into lines.
func printSteps(x rules.Explanation) string {
	var b strings.Builder
	for _, t := range x.Tokens {
		fmt.Fprintf(&b, "%s from %q:", t.Name, t.Piece)
		for _, to := range t.Groups {
			fmt.Fprintf(&b, " %s by %s", to.Name, to.How)
		}
		b.WriteByte('\n')
	}
	for _, g := range x.Governing {
		fmt.Fprintf(&b, "%s, lines %v, %d rules, for %q by %s\n", g.Name, g.Lines, g.Rules, g.Token.Name, g.How)
	}
	for _, r := range x.Readings {
		fmt.Fprintf(&b, "%s %s\n", r.Variant, r.Target)
		for _, o := range r.Results {
			fmt.Fprintf(&b, "  %v", o.Verdict)
			for _, m := range o.Matches {
				fmt.Fprintf(&b, "; %d %s (%v, %d)", m.Line, m.Rule, m.Allow, m.Octets)
			}
			if o.Further > 0 {
				fmt.Fprintf(&b, "; %d more", o.Further)
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "%v %s %d %s\n", x.Decision.Verdict, x.Decision.Reason, x.Decision.Line, x.Decision.Variant)
	return b.String()
}

func TestHeed_ExplainPrintsTheSteps(t *testing.T) {
	t.Parallel()
	p := policyAs(rules.Standard, explained)
	for _, c := range []struct{ agent, target, want string }{
		{"Mozilla/5.0 (compatible; GoodBot/1.0; NewBot)", "/a/b", `
goodbot from "GoodBot/1.0": GoodBot by name
newbot from "NewBot":
GoodBot, lines [4 13], 4 rules, for "goodbot" by name
 /a/b
  refuse; 8 Disallow: /a/b* (false, 5); 7 Allow: /a/b (true, 4); 6 Disallow: /a (false, 2)
refuse rule 8 
`},
		{"Applebot/0.1 GoodBot/1", "/g", `
applebot from "Applebot/0.1 GoodBot/1": Googlebot by chain
goodbot from "GoodBot/1": GoodBot by name
Googlebot, lines [10], 1 rules, for "applebot" by chain
GoodBot, lines [4 13], 4 rules, for "goodbot" by name
 /g
  refuse; 11 Disallow: /g (false, 2)
refuse rule 11 
`},
		{"Good", "/%78/..//star%2f?a/b", `
good from "Good": Other Good Bot by list
*, lines [1], 1 rules, for "" by star
Other Good Bot, lines [5], 3 rules, for "good" by list
 /x/..//star%2F?a%2Fb
  allow
  allow
 /x/..//star%2F?a/b
  allow
  allow
v1 //star%2F?a%2Fb
  allow
  allow
v1 //star%2F?a/b
  allow
  allow
v2 /star%2F?a%2Fb
  refuse; 2 Disallow: /star (false, 5)
refuse rule 2 v2
`},
		{"", "?q", `
*, lines [1], 1 rules, for "" by star
 /?q
  allow
allow no-rule 0 
`},
		{"GoodBot", "/robots.txt", `
goodbot from "GoodBot": GoodBot by name
GoodBot, lines [4 13], 4 rules, for "goodbot" by name
allow robots-txt 0 
`},
	} {
		got := printSteps(p.Explain(agentOf(c.agent), rules.NewTarget(c.target)))
		must.True(t, got == c.want[1:], "%q asks for %s; got\n%swant%s", c.agent, c.target, got, c.want)
	}
}

func TestHeed_ExplainWithoutRules(t *testing.T) {
	t.Parallel()
	agent := rules.Identify("GoodBot/1.0")
	for state, want := range map[rules.State]string{
		rules.Unreachable: "goodbot from \"GoodBot/1.0\":\nrefuse robots-unreachable 0 \n",
		rules.Unavailable: "goodbot from \"GoodBot/1.0\":\nallow robots-unavailable 0 \n",
		rules.Available:   "goodbot from \"GoodBot/1.0\":\n /a\nallow no-rule 0 \n",
	} {
		p := rules.New(rules.Source{Origin: site, State: state}, nil)
		must.Equal(t, printSteps(p.Explain(agent, rules.NewTarget("/a"))), want, "%v: told", state)
	}
}

// TestHeed_ExplainIsBounded holds that a site cannot make an explanation long.
func TestHeed_ExplainIsBounded(t *testing.T) {
	t.Parallel()
	p := policyAs(rules.Standard, "User-agent: *\n"+strings.Repeat("Disallow: /a\n", 1000))
	x := p.Explain(nil, rules.NewTarget("/a"))
	if o := x.Readings[0].Results[0]; len(o.Matches) != rules.MaxMatches || o.Further != 1000-rules.MaxMatches || o.Matches[0].Line != 2 {
		t.Errorf("%d matches, %d further, the first is %+v", len(o.Matches), o.Further, o.Matches[0])
	}
}

// TestHeed_ExplainAgreesWithDecide holds every explanation of the vectors
// against the verdict.
func TestHeed_ExplainAgreesWithDecide(t *testing.T) {
	t.Parallel()
	for _, s := range allVectors {
		p := policyAs(s.as, strings.TrimPrefix(s.file, "\n"))
		for _, q := range s.questions(t) {
			x := p.Explain(agentOf(q.agent), rules.NewTarget(q.target))
			if len(x.Readings) == 0 {
				continue // /robots.txt
			}
			verdict, line, variant := rules.Allow, 0, ""
			for i, r := range x.Readings {
				for j, o := range r.Results {
					if o.Verdict == rules.Refuse {
						verdict, line, variant = o.Verdict, o.Matches[0].Line, r.Variant
					} else if i == 0 && line == 0 && len(o.Matches) > 0 && x.Governing[j].How != rules.ByList {
						line = o.Matches[0].Line
					}
				}
			}
			must.True(t, verdict == q.verdict && line == q.line && variant == q.variant,
				"%s: %q asks for %s: explained as %v by %d %s, decided %+v", s.name, q.agent, q.target, verdict, line, variant, x.Decision)
		}
	}
}
