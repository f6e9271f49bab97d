//go:build !race

package rules_test

import (
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// The tests here and in memory_test.go measure memory, which the race
// detector changes.

// TestHeed_DecisionsAllocateNothing asks again what was asked before: plain,
// escaped and ambiguous targets, agents with and without a name. Under the race
// detector, pools forget at random.
func TestHeed_DecisionsAllocateNothing(t *testing.T) {
	p := standard("User-agent: foo\nUser-agent: bar baz\nAllow: /a\nDisallow: /*%2Fc$\n\nUser-agent: *\nDisallow: /x\n" + strings.Repeat("Disallow: /*y*z\n", 40))
	for _, agent := range []*rules.Agent{nil, rules.Identify(""), rules.Identify("Foo/1.0 (compatible; bar)"), rules.Declare("foo", "other")} {
		for _, target := range []string{"/a", "/a?b=/c", "/%61%2Fc", "//x/../y", "/" + strings.Repeat("y%7A", 3000), "/robots.txt", "*"} {
			p.Decide(agent, rules.NewTarget(target))
			n := testing.AllocsPerRun(50, func() { p.Decide(agent, rules.NewTarget(target)) })
			must.True(t, n < 1, "%d octets for %+v: %v allocations", len(target), agent, n)
		}
	}
}
