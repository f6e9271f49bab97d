//go:build !race

package rules

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpu returns how much time of a processor f takes, the least of some runs.
func cpu(f func(), runs int) time.Duration {
	const ofThread = 1 // RUSAGE_THREAD
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(ofThread, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	least := time.Hour
	for range runs {
		before := used()
		f()
		least = min(least, used()-before)
	}
	return least
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
// of as many steps as there are, and ambiguous targets as long as a request can be.
func TestHeed_TheWholeBudgetIsSoonUsedUp(t *testing.T) {
	const most = 60 * time.Millisecond // 20 on an idle machine
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
		took := cpu(func() { d = p.Decide(nil, "/"+c.target) }, 3)
		t.Logf("%-20s %6.1f ms, %s", what, took.Seconds()*1000, d.Reason)
		if took > most {
			t.Errorf("%s: %v", what, took)
		}
	}
}

// TestHeed_FilesOfTheLargestSizeAreReadInTime has files whose lines refer to many others.
func TestHeed_FilesOfTheLargestSizeAreReadInTime(t *testing.T) {
	const most = 3 * time.Second // a fifth of that on an idle machine
	agents := []*Agent{Identify("a/1"), Identify(repeated(60_000, func(i int) string { return fmt.Sprintf("a%x ", i) }))}
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
		file := "User-agent: *\n" + repeated(MaxBytes, line)
		took := cpu(func() {
			p := New(Source{State: Available}, []byte(file))
			for _, a := range agents {
				p.Decide(a, "/x//y")
				p.DecideHost(a)
				p.RateHints(a)
				p.Explain(a, "/x")
			}
		}, 1)
		t.Logf("%-20s %4.0f ms", what, took.Seconds()*1000)
		if took > most {
			t.Errorf("%s: %v", what, took)
		}
	}
}
