package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// beginningsDiffer fails the test when a target that begins with beginning has another
// Decision than decideBeginning returns for all of them.
func beginningsDiffer(t *testing.T, p *rules.Policy, agent *rules.Agent, beginning string, rests ...string) (sure bool) {
	t.Helper()
	all, sure := decideBeginning(p, agent, beginning)
	for _, rest := range rests {
		if d := p.Decide(agent, rules.NewTarget(beginning+rest)); sure && d != all {
			t.Fatalf("%q is decided as %+v, and all that begin with %q as %+v", beginning+rest, d, beginning, all)
		}
	}
	return sure
}

func TestBeginning_WhatIsSure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules, beginning string
		sure             bool
	}{
		"no rule is near":                    {"Disallow: /private\nAllow: /open", "/c?token=", true},
		"no rules":                           {"Disallow:", "/c;token=", true},
		"the beginning is refused":           {"Disallow: /c", "/c?token=", true},
		"every query is refused":             {"Disallow: /*?\nAllow: /c", "/c?token=", true},
		"the beginning is allowed by a rule": {"Disallow: /c\nAllow: /c?token", "/c?token=", true},
		"a shorter rule may match":           {"Disallow: /c?token\nAllow: /*.pdf", "/c?token=", true},
		"a longer rule may match":            {"Disallow: /c\nAllow: /*.pdf", "/c?token=", false},
		"the value may be in a rule":         {"Disallow: /c?token=x", "/c?token=", false},
		"the end may be in a rule":           {"Disallow: /*.pdf$", "/c?token=", false},
		"the whole may be a rule":            {"Disallow: /c?token=$", "/c?token=", false},
		"a rule for the path alone":          {"Disallow: /c$", "/c?token=", true},
		"a value in the path":                {"Disallow: /private", "/c;token=", false},
		"an ambiguous path":                  {"Disallow: /private", "/a//c?token=", false},
		"separators in the query":            {"Disallow: /private", "/c?u=%2Fx&token=", false},
		"an escape that goes on":             {"Disallow: /c?a=%41", "/c?a=%4", false},
		"a file that may be robots.txt":      {"Disallow: /", "/robots", false},
	} {
		p := rules.New(rules.Source{State: rules.Available}, []byte("User-agent: *\n"+c.rules+"\n"))
		sure := beginningsDiffer(t, p, rules.Identify("bot"), c.beginning, "", "x", "x.pdf", "1A&y=z", "../private", "%2F..%2Fprivate")
		must.Equal(t, sure, c.sure, "%s: sure", name)
	}
	for _, state := range []rules.State{rules.Unavailable, rules.Unreachable} {
		must.True(t, beginningsDiffer(t, rules.New(rules.Source{State: state}, nil), nil, "/c;token=", "x", "/../y"),
			"without rules, in state %v, it is not sure", state)
	}
}

// TestBeginning_IsTrueOfEveryTarget tries files and targets made of the same pieces.
func TestBeginning_IsTrueOfEveryTarget(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	pieces := strings.Fields("/ /a /b ? ?t= & = t a b . .. // %2F %2f.. %3F %26 %4 1 ; \\ %5C ab %61 é % .pdf x")
	some := func(n int, more ...string) string {
		var b strings.Builder
		for range random.IntN(n) {
			all := append(pieces, more...)
			b.WriteString(all[random.IntN(len(all))])
		}
		return b.String()
	}
	sure := 0
	for range 4000 {
		var file strings.Builder
		for group := range 1 + random.IntN(2) {
			fmt.Fprintf(&file, "User-agent: %s\n", []string{"*", "bot"}[group])
			for range random.IntN(4) {
				fmt.Fprintf(&file, "%s: /%s%s\n", []string{"Allow", "Disallow"}[random.IntN(2)], some(4, "*", "*"), []string{"", "", "$"}[random.IntN(3)])
			}
		}
		p := rules.NewAs([]rules.Profile{rules.Standard, rules.Strict, rules.Google, rules.REP1994}[random.IntN(4)], rules.Source{State: rules.Available}, []byte(file.String()))
		beginning := []string{"/", "/a?", "/b?t="}[random.IntN(3)] + some(3)
		rests := []string{""}
		for range 40 {
			rests = append(rests, some(5))
		}
		if beginningsDiffer(t, p, rules.Identify("bot"), beginning, rests...) {
			sure++
		}
	}
	if t.Logf("%d of 4000 are sure", sure); sure < 500 {
		t.Errorf("only %d of 4000 are sure", sure)
	}
}
