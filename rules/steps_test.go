package rules

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// shop is a file of n rules, one in ten with an inner wildcard, all of which begin alike.
func shop(n int) *Policy {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range n {
		switch {
		case i%10 == 9:
			fmt.Fprintf(&b, "Disallow: /shop/*/item%d.html$\n", i)
		case i%7 == 3:
			fmt.Fprintf(&b, "Allow: /catalog/section-%d/public/\n", i)
		default:
			fmt.Fprintf(&b, "Disallow: /catalog/section-%d/\n", i)
		}
	}
	return New(Source{State: Available}, []byte(b.String()))
}

// TestHeed_StepsOfADecisionHardlyGrowWithTheRules asks files of 10 to 10,000 rules about
// pages that a rule refuses, that one nearly matches, and that none is about. Finding
// the rules of a target among so many takes two to three times the steps of trying ten.
func TestHeed_StepsOfADecisionHardlyGrowWithTheRules(t *testing.T) {
	t.Parallel()
	targets := func(n int) (all []string) {
		for i := range 200 {
			i *= max(1, n/200)
			all = append(all, fmt.Sprintf("/catalog/section-%d/page.html", i), fmt.Sprintf("/shop/toys/blue/item%d.html", i),
				fmt.Sprintf("/catalog/section-%d/public/", i%n), fmt.Sprintf("/about/people/%d?from=catalog", i))
		}
		return all
	}
	first := 0
	for _, n := range []int{10, 100, 1000, 10000} {
		p, sum, most := shop(n), 0, 0
		for _, target := range targets(n) {
			taken, _ := stepsOf(p, target)
			sum, most = sum+taken, max(most, taken)
		}
		mean := sum / len(targets(n))
		t.Logf("%5d rules: %d steps, at most %d", n, mean, most)
		if first == 0 {
			first = mean
		}
		// the most where the rules of a gram are looked at
		must.True(t, mean <= 3*first && most <= 12*first, "%d rules: %d steps, at most %d; 10 rules take %d", n, mean, most, first)
	}
}

// TestHeed_WildcardsCostTargetsThatTheyMayMatch has many wildcards in one part of a site,
// and asks about another one.
func TestHeed_WildcardsCostTargetsThatTheyMayMatch(t *testing.T) {
	t.Parallel()
	literal := "User-agent: *\n" + strings.Repeat("Disallow: /catalog/old\n", fewRules) + "Disallow: /shop/x\nDisallow: /about/x\n"
	wild := literal
	for i := range 2000 {
		wild += fmt.Sprintf("Disallow: /shop/*/item%d.html$\n", i)
	}
	target := "/about/people/1234/item1234.html?page=item1234.html"
	without, _ := steps(literal, target)
	with, _ := steps(wild, target)
	// one more beginning of the target is looked up
	must.True(t, with <= without+2*stepsPerNode, "%d steps, %d without the wildcards", with, without)
}

// TestHeed_RulesThatBeginAlikeCostOtherTargetsLittle has rules whose first pieces each begin the
// next, and asks in many readings about a part of the site with none.
func TestHeed_RulesThatBeginAlikeCostOtherTargetsLittle(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range 950 * fewWild {
		fmt.Fprintf(&b, "Disallow: /%s*q%d\n", strings.Repeat("a", i/fewWild+1), i)
	}
	p := NewAs(Strict, Source{State: Available}, []byte(b.String()))
	target := "/b;x=1/c;y=2/%2e%2e;z/%252e/..;/%3b//%5c%2f./%25255c" + strings.Repeat("/x;%2f%255c", 30) + "?q=%2541&b=%26;c"
	taken, d := stepsOf(p, target)
	must.True(t, d.Verdict == Allow && taken <= maxSteps/16, "%d steps, %+v", taken, d)
}

// TestHeed_APlainTargetHasOneReading makes targets at random, of which those that are not
// read in other ways are judged as they are.
func TestHeed_APlainTargetHasOneReading(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"a", "b-1", "~", "/", "/", "/", "//", ".", "/.", "/./", "/..", "%", "%2f", "%2F", "%41", "%5c", "%zz", "\\", ";", ";x=1", "&", "=", "%26", "%3D",
		"?", "?", "??", "/?", "*", "$", "#", "\xf5", "\xfa", "\xff", "é", " ", "|", "+", ":", "@"}
	for _, profile := range []Profile{Standard, Strict, Google, REP1994} {
		e, plain := &engine{file: file{differences: profile.differences()}}, 0
		for range 30_000 {
			target := "/"
			for range r.IntN(6) {
				target += pieces[r.IntN(len(pieces))]
			}
			all := map[string]bool{}
			e.read(new(scratch), target, func(name, reading string) bool {
				all[strings.Clone(reading)] = true
				return true
			})
			if !e.plain(target) {
				continue
			}
			if plain++; len(all) != 1 || !all[target] {
				t.Fatalf("%s: %q is plain, and read as %v", profile, target, all)
			}
		}
		must.True(t, plain >= 1000, "%s: %d plain targets", profile, plain)
	}
}

// TestHeed_AnHonestTargetIsPlain has what most requests ask for.
func TestHeed_AnHonestTargetIsPlain(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/", "/a/b-c_d~e.html", "/wiki/Main_Page", "/item?id=7&page=2", "/a;b?c;d", "/@user/t:1", "/é"} {
		e := (&engine{})
		must.True(t, e.plain(target), "%q", target)
	}
}
