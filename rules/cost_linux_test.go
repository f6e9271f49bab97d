//go:build !race

package rules

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heed/internal/tools/testkit/must"
)

// times returns how many times the time of a processor that reference takes f takes, the
// sums of some runs in turn: a busy machine makes both slower.
func times(f, reference func(), runs int) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func(f func()) time.Duration {
		var before, after unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before)
		f()
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after)
		return time.Duration(after.Nano() - before.Nano())
	}
	var took, by time.Duration
	for range runs {
		by += used(reference)
		took += used(f)
	}
	return float64(took) / float64(by)
}

// count visits each octet of text, and returns how many are digits.
func count(text string) (n int) {
	for i := range len(text) {
		if c := text[i]; c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

// repeated returns the pieces that f makes for 0, 1, 2 and so on, size octets of them.
func repeated(size int, f func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(f(i))
	}
	return b.String()
}

// TestHeed_TheWholeBudgetIsSoonUsedUp has decisions of each kind of work that is counted,
// of as many steps as there are, and ambiguous targets as long as a request can be: a step
// costs about as much as it does to look at a few octets, whatever it is spent on.
func TestHeed_TheWholeBudgetIsSoonUsedUp(t *testing.T) {
	steps := strings.Repeat("0123456789abcdef", maxSteps/16)
	as, name := strings.Repeat("a", 60_000), func(i int) string {
		return fmt.Sprintf("*%c*%c*%c*%c", 'A'+i%26, 'A'+i/26%26, 'A'+i/676%26, 'A'+i/17576%26)
	}
	for what, c := range map[string]struct {
		rule   func(i int) string
		target string
	}{
		"rules of one gram":   {func(i int) string { return "*aaa*aZ" + name(i) }, as},
		"searches that fail":  {func(i int) string { return "*aaa*" + strings.Repeat("a", 62) + "b" + name(i) }, strings.Repeat(strings.Repeat("a", 61)+"b", 960)},
		"searches hashed":     {func(i int) string { return "*aaa*" + strings.Repeat("a", 69) + "b" + name(i) }, strings.Repeat(strings.Repeat("a", 68)+"b", 850)},
		"pieces":              {func(i int) string { return "*aaa" + strings.Repeat("*a", 4000) + "*Z" + name(i) }, as},
		"stars":               {func(i int) string { return "*aaa" + strings.Repeat("*", 4000) + "Z" + name(i) }, as},
		"prefixes":            {func(i int) string { return strings.Repeat("a", i) }, as},
		"readings":            {func(i int) string { return "*zzz" }, strings.Repeat("a//", 20_000) + "//%2f\\%5c&=%26;x%2541"},
		"readings with dots":  {func(i int) string { return fmt.Sprintf("*%04d", i) }, strings.Repeat("a/../", 12_000) + "//%2f\\%5c&=%26;x%2541"},
		"readings and grams":  {func(i int) string { return fmt.Sprintf("*%04d", i) }, strings.Repeat("0123456789", 6000) + "//./&=%26%2f\\%5c;x%2541"},
		"slashes at the end":  {func(i int) string { return "x" }, strings.Repeat("/", 60_000) + "\\?a=/"},
		"rules of one letter": {func(i int) string { return strings.Repeat("a", i%200) + "*b" }, as + "//./&=%26%2f\\%5c"},
	} {
		file := "User-agent: *\n" + repeated(1<<20, func(i int) string { return "Disallow: /" + c.rule(i) + "\n" })
		p := New(Source{State: Available}, []byte(file))
		var d Decision
		looked := 0
		took := times(func() { d = p.Decide(nil, NewTarget("/"+c.target)) }, func() { looked += count(steps) }, 3)
		t.Logf("%-20s %6.1f times, %s", what, took, d.Reason)
		// at most 5 on an idle machine
		must.True(t, took <= 12, "%s: a decision takes %.1f times as long as to look at %d octets", what, took, maxSteps)
	}
}

// TestHeed_FilesOfTheLargestSizeAreReadInTime has files whose lines refer to many others:
// they take a few times as long as one whose lines do not.
func TestHeed_FilesOfTheLargestSizeAreReadInTime(t *testing.T) {
	agents := []*Agent{Identify("a/1"), Identify(repeated(60_000, func(i int) string { return fmt.Sprintf("a%x ", i) }))}
	size := MaxBytes / 8
	if os.Getenv("HEED_TEST_FULL") != "" {
		size = MaxBytes
	}
	read := func(line func(i int) string) func() {
		file := "User-agent: *\n" + repeated(size, line)
		return func() {
			p := New(Source{State: Available}, []byte(file))
			for _, a := range agents {
				p.Decide(a, NewTarget("/x//y"))
				p.DecideHost(a)
				p.RateHints(a)
				p.Explain(a, NewTarget("/x"))
			}
		}
	}
	plain := read(func(i int) string { return fmt.Sprintf("Disallow: /%x\n", i) })
	for what, line := range map[string]func(i int) string{
		"joined lines": func(i int) string {
			return fmt.Sprintf("User-agent: a%d\nUser-agent: g Disallow: /\nDisallow: /x\n", i)
		},
		"delays of one name": func(i int) string { return fmt.Sprintf("User-agent: a\nCrawl-delay: %d\nDisallow: /\n", i) },
		"delays of many names": func(i int) string {
			return "User-agent: " + repeated(300, func(i int) string { return fmt.Sprintf("a%x,", i%48) }) + fmt.Sprintf("\nCrawl-delay: %d\nDisallow: /%d\n", i, i)
		},
		"rules of many names": func(i int) string {
			if i == 0 {
				return "User-agent: " + repeated(300, func(i int) string { return fmt.Sprintf("a%x,", i%48) }) + "\n"
			}
			return fmt.Sprintf("Disallow:/%x*\n", i)
		},
		"wildcards": func(i int) string { return fmt.Sprintf("Disallow: /*abc*%x\n", i) },
		"names":     func(i int) string { return fmt.Sprintf("user-agent:%x\n", i) },
		"one rule":  func(int) string { return "Disallow: /*abc\n" },
	} {
		took := times(read(line), plain, 1)
		t.Logf("%-20s %4.1f times", what, took)
		// at most 9 on an idle machine
		must.True(t, took <= 30, "%s: the file takes %.1f times as long as a plain one", what, took)
	}
}

// TestREP1994_ManyNamesForALongAgentTakeNoTime looks for as many names as a file
// can hold in as long a User-Agent as heed takes. One after the other that is
// 80,000,000,000 octets to look at: it takes less than one name of 40 does in this way.
func TestREP1994_ManyNamesForALongAgentTakeNoTime(t *testing.T) {
	word := strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j")
	part := 4 // of the largest sizes, in the short form
	if os.Getenv("HEED_TEST_FULL") != "" {
		part = 1
	}
	agent := repeated(250_000/part, func(i int) string { return word.Replace(strconv.Itoa(i)) + "/1 " })
	name := func(i int) string { return word.Replace(strconv.Itoa(i)) + "k" }
	file := repeated(4_000_000/part, func(i int) string { return "user-agent: " + name(i) + "\n" }) + "user-agent: jjj\nDisallow: /x\n"
	p := NewAs(REP1994, Source{State: Available}, []byte(file))
	a := Identify(agent)
	took := times(func() {
		p.engine.agents = agentMemo{}
		d := p.Decide(a, NewTarget("/x"))
		must.True(t, d.Verdict == Refuse && d.Group == "jjj", "%+v", d)
	}, func() {
		for i := 0; i < strings.Count(file, "\n"); i += 40 {
			must.Need(t, !strings.Contains(agent, name(i)), "the agent has the name %s", name(i))
		}
	}, 2)
	t.Logf("%.2f times", took)
	must.True(t, took <= 1, "a decision takes %.1f times as long as to look for one name of 40", took)
}
