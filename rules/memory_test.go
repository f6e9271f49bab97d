//go:build !race

package rules_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// TestHeed_MemoryStaysUnderTwiceTheFile measures what policies hold, and what
// they say they hold.
func TestHeed_MemoryStaysUnderTwiceTheFile(t *testing.T) {
	for _, c := range []struct{ name, file string }{
		{"empty", ""},
		{"small", "User-agent: *\nDisallow: /private/\n"},
		{"realistic", realistic()},
		{"rules=10000", benchRules(10000)},
		{"leading wildcards", leadingWildcards()},
		{"hostile", hostile()},
		{"one path in lists", "User-agent: *\n" + lines("Disallow:", " /", 1<<16)},
		{"two paths in lists", "User-agent: *\n" + lines("Disallow:", " /a /%61", 1<<14)},
		{"one name in lists", lines("User-agent: a", ",a", 1<<16) + "Disallow: /\n"},
		{"odd names in lists", lines("User-agent: a", ",a:.b", 1<<16) + "Disallow: /\n"},
		{"one rule", "User-agent:*\n" + strings.Repeat("Allow:/\n", 1<<16)},
	} {
		held, size := holds(c.file)
		limit := 2*len(c.file) + 2<<10
		t.Logf("%-18s %8d octets of text, %8d held, %8d by Size", c.name, len(c.file), held, size)
		must.True(t, held <= limit && size <= limit+rules.MaxRemembered, "%s: more than %d octets", c.name, limit)
	}
}

// holds returns how many octets a policy of the file holds, and says it does.
func holds(file string) (held, size int) {
	count := max(1, 1<<20/(len(file)+1024))
	policies := make([]*rules.Policy, count)
	before := heap()
	for i := range policies {
		policies[i] = standard(file)
	}
	held = int(heap()-before) / count
	size = policies[0].Size()
	runtime.KeepAlive(policies)
	return held, size
}

// TestHeed_TheDensestFilesAreCounted makes policies of files in which nothing is
// longer than it must be: they hold more than twice the file, and say so.
func TestHeed_TheDensestFilesAreCounted(t *testing.T) {
	var paths, names, short, octets strings.Builder
	for i := range 40_000 {
		word := strconv.FormatInt(int64(i), 36)
		if i%3000 == 0 {
			paths.WriteString("\nUser-agent:*\nDisallow:")
			names.WriteString("\nUser-agent:")
		}
		paths.WriteString("/" + word + " ")
		names.WriteString("a" + word + ",")
		short.WriteString("Allow:/" + word + "\n")
	}
	for i := range 100 {
		octets.WriteString("\nDisallow:/" + strings.Repeat("\xFF", 10_000-i))
	}
	for name, file := range map[string]string{
		"paths in lists": paths.String(), "names in lists": names.String() + "\nAllow:/a", "lines": "User-agent:*\n" + short.String(),
		"octets beyond UTF-8": "User-agent:*" + octets.String(),
	} {
		held, size := holds(file)
		t.Logf("%-20s %7d octets of text, %4.1f times that held, %4.1f times by Size", name, len(file),
			float64(held)/float64(len(file)), float64(size)/float64(len(file)))
		must.True(t, held <= 8*len(file) && size >= held*95/100,
			"%s: %d octets of text, %d held, %d by Size", name, len(file), held, size)
	}
}

// TestHeed_WhatIsRememberedOfAgentsIsBounded lets many agents ask, with names
// that the file has and names that it has not.
func TestHeed_WhatIsRememberedOfAgentsIsBounded(t *testing.T) {
	var file strings.Builder
	for i := range 300 {
		fmt.Fprintf(&file, "User-agent: n%d\nDisallow: /%d\n\n", i, i)
	}
	policies := make([]*rules.Policy, 20)
	for i := range policies {
		policies[i] = standard(file.String() + "User-agent: *\nDisallow: /x\n")
	}
	before := heap()
	most := 0
	for i := range 400 {
		agent := rules.Identify(fmt.Sprintf("n%d/1.0 (compatible; %s)", i, strings.Repeat("x", 1000)))
		for _, p := range policies {
			d := p.Decide(agent, rules.NewTarget(fmt.Sprintf("/%d", i)))
			must.Need(t, (d.Verdict == rules.Refuse) == (i < 300), "n%d: %+v", i, d)
		}
		if i%20 == 0 || i == 399 {
			most = max(most, int(heap())-int(before))
		}
	}
	t.Logf("%d octets for each policy", most/len(policies))
	must.True(t, most/len(policies) <= rules.MaxRemembered,
		"%d octets for each policy, more than %d", most/len(policies), rules.MaxRemembered)
	runtime.KeepAlive(policies)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// lines repeats a piece of a line, with the start of the line where it is long.
func lines(start, piece string, times int) string {
	var b strings.Builder
	for i := range times {
		if i%(rules.MaxLine/2/len(piece)) == 0 {
			b.WriteString("\n" + start)
		}
		b.WriteString(piece)
	}
	return b.String() + "\n"
}
