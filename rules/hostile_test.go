package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What a hostile site or client may try: to lose a rule on the way, or to make
// a decision cost more than it may.

// TestHeed_LongEscapedPatternsAreFound has rules that begin with the same
// 48,000 octets of packed text.
func TestHeed_LongEscapedPatternsAreFound(t *testing.T) {
	t.Parallel()
	const count = 40
	var file strings.Builder
	file.WriteString("User-agent: *\n")
	for i := range count {
		fmt.Fprintf(&file, "Disallow: /%s%02d\n", strings.Repeat("\xFF", 16_000), i)
	}
	p := standard(file.String())
	begin := "/" + strings.Repeat("%FF", 16_000)
	for i := range count {
		d := p.Decide(nil, rules.NewTarget(begin+fmt.Sprintf("%02d", i)))
		must.True(t, d.Line == i+2, "rule %d: %v by line %d", i, d.Verdict, d.Line)
	}
	must.Equal(t, p.Decide(nil, rules.NewTarget(begin)).Verdict, rules.Allow, "without the end")
}

// TestHeed_AFileOfOneLineIsNotLostToTheLimit has no line break within the limit:
// what is read of its line is there all the same.
func TestHeed_AFileOfOneLineIsNotLostToTheLimit(t *testing.T) {
	t.Parallel()
	long := "User-agent: * Disallow: /a " + strings.Repeat("x", rules.MaxBytes)
	d := standard(long).Decide(nil, rules.NewTarget("/a%20"+strings.Repeat("x", rules.MaxLine)))
	must.True(t, d.Line == 1, "%v by line %d", d.Verdict, d.Line)
}

// TestHeed_TheLimitCutsNoLineOfUTF16 has a letter whose second octet is that of
// a line feed in the line that the limit cuts.
func TestHeed_TheLimitCutsNoLineOfUTF16(t *testing.T) {
	t.Parallel()
	head := "User-agent: *\nDisallow: /\n"
	head += strings.Repeat("#"+strings.Repeat("x", 1022)+"\n", 2047)
	pad := (rules.MaxBytes-2)/2 - len(head) - len("\nAllow: /\u0A41\u0A41")
	file := utf16(head+strings.Repeat("\n", pad)+"\nAllow: /\u0A41\u0A41\u0A41private\n", false)
	must.Need(t, len(file) >= rules.MaxBytes, "%d octets are too few", len(file))
	for cut := range 6 {
		body := utf16(head+strings.Repeat("\n", pad+cut)+"\nAllow: /\u0A41\u0A41\u0A41private\n", false)
		d := standard(body).Decide(nil, rules.NewTarget("/\u0A41\u0A41x"))
		must.True(t, d.Verdict == rules.Refuse, "cut %d: %v by line %d %q", cut, d.Verdict, d.Line, d.Rule)
	}
}

// TestHeed_NamesOfVeryManyGroupsAreRemembered has names whose lists of groups
// overlap, so that not every one of them can have an index.
func TestHeed_NamesOfVeryManyGroupsAreRemembered(t *testing.T) {
	var file strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&file, "User-agent: n1,n2,n3,n4\nDisallow: /%x$\n", i)
		if i < 4 {
			fmt.Fprintf(&file, "User-agent: n%d\nDisallow: /y\n", i+1)
		}
	}
	p := standard(file.String())
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		agent := rules.Identify(name)
		for target, want := range map[string]rules.Verdict{"/0": rules.Refuse, "/7cf": rules.Refuse, "/y": rules.Refuse, "/z": rules.Allow} {
			must.Equal(t, p.Decide(agent, rules.NewTarget(target)).Verdict, want, "%s, %s", name, target)
		}
		n := testing.AllocsPerRun(10, func() { p.Decide(agent, rules.NewTarget("/z")) })
		must.True(t, n < 1 || testkit.Race, "%s: %v allocations", name, n) // which drops what pools hold
	}
}

// TestHeed_AFileOfTooManyWordsIsNotUsed has names of several words, each of which is
// compared with every new agent.
func TestHeed_AFileOfTooManyWordsIsNotUsed(t *testing.T) {
	t.Parallel()
	line := "User-agent: web spider\nDisallow: /x\n"
	p := standard(strings.Repeat(line, rules.MaxNameWords/2))
	d := p.Decide(rules.Identify("spider/1.0"), rules.NewTarget("/y"))
	must.True(t, d.Verdict == rules.Allow, "%d words: %+v", rules.MaxNameWords, d)
	p = standard(strings.Repeat(line, rules.MaxNameWords/2+1))
	s := p.Source()
	must.True(t, s.State == rules.Unreachable && errors.Is(s.Err, rules.ErrTooManyWords) && s.Note != "", "one more: %+v", s)
	d = p.Decide(rules.Identify("spider/1.0"), rules.NewTarget("/y"))
	must.True(t, d.Reason == rules.ReasonRobotsUnreachable, "one more: %+v", d)
}

// TestHeed_ARuleThatIsWrittenOftenIsMatchedOnce has one pattern with each verdict many
// times: the first line with the better verdict decides.
func TestHeed_ARuleThatIsWrittenOftenIsMatchedOnce(t *testing.T) {
	t.Parallel()
	p := standard("User-agent: *\n" + strings.Repeat("Disallow: /*abc\n", 5000) + strings.Repeat("Allow: /*abc\nDisallow: /*b*c\n", 5000))
	d := p.Decide(nil, rules.NewTarget("/abc"))
	must.True(t, d.Verdict == rules.Allow && d.Line == 5002, "%v by line %d", d.Verdict, d.Line)
	d = p.Decide(nil, rules.NewTarget("/"+strings.Repeat("ab-", 20_000)+"//./&=%26%2f\\%5c"))
	must.True(t, d.Reason == rules.ReasonNoRule, "a target that matches none of two patterns: %s", d.Reason)
}
