//go:build !race

package rules_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/rules"
)

const raceDetector = false

// The tests here and in memory_test.go measure time and memory, which the race
// detector changes.

// TestHeed_DecisionsAllocateNothing asks again what was asked before: plain,
// escaped and ambiguous targets, agents with and without a name. Under the race
// detector, pools forget at random.
func TestHeed_DecisionsAllocateNothing(t *testing.T) {
	p := standard("User-agent: foo\nUser-agent: bar baz\nAllow: /a\nDisallow: /*%2Fc$\n\nUser-agent: *\nDisallow: /x\n" + strings.Repeat("Disallow: /*y*z\n", 40))
	for _, agent := range []*rules.Agent{nil, rules.Identify(""), rules.Identify("Foo/1.0 (compatible; bar)"), rules.Declare("foo", "other")} {
		for _, target := range []string{"/a", "/a?b=/c", "/%61%2Fc", "//x/../y", "/" + strings.Repeat("y%7A", 3000), "/robots.txt", "*"} {
			p.Decide(agent, target)
			if n := testing.AllocsPerRun(50, func() { p.Decide(agent, target) }); n >= 1 {
				t.Errorf("%d octets for %+v: %v allocations", len(target), agent, n)
			}
		}
	}
}

// TestHeed_ParsingIsLinear reads shapes of files that make careless parsers
// slow, at one size and at eight times it: that takes about eight times as
// long, and never sixty.
func TestHeed_ParsingIsLinear(t *testing.T) {
	for name, unit := range map[string]string{
		"CR": "Disallow: /a\r", "LF": "\n", "NUL": "\x00\n", "colons": ":", "joined": "Disallow: /a ",
		"agents": "User-agent: a ", "blanks": "/ ", "commas": "a,", "words": "a b ", "brackets": "Mozilla/5.0 (a;",
		"groups": "User-agent: a\nDisallow: /\n", "stars": "*a", "escapes": "%2e", "letters": "a", "quotes": "a@b ",
	} {
		took := func(size int) time.Duration {
			body := []byte("User-agent: *\nDisallow: /")
			for len(body) < size {
				body = append(body, bytes.Repeat([]byte(unit), max(1, 8000/len(unit)))...)
				body = append(body, "\nUser-agent: x"...)
			}
			best := time.Hour
			for range 5 {
				start := time.Now()
				rules.New(rules.Source{State: rules.Available}, body).Decide(nil, "/"+strings.Repeat("a", 100))
				best = min(best, time.Since(start))
			}
			return best
		}
		small, large := took(64<<10), took(512<<10)
		for again := 0; again < 5 && large > 60*small+10*time.Millisecond; again++ {
			large = took(512 << 10) // the machine may have been busy all the while
		}
		if large > 60*small+10*time.Millisecond {
			t.Errorf("%s: 64 KiB take %v, 512 KiB take %v", name, small, large)
		}
	}
}

// TestREP1994_ManyNamesForALongAgentTakeNoTime looks for as many names as a file
// can hold in as long a User-Agent as heed takes. One after the other that is
// 80,000,000,000 octets to look at; a second is plenty, and the bound leaves room for
// a busy machine.
func TestREP1994_ManyNamesForALongAgentTakeNoTime(t *testing.T) {
	word := strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j")
	var agent, file strings.Builder
	for i := 0; agent.Len() < 250_000; i++ {
		agent.WriteString(word.Replace(strconv.Itoa(i)) + "/1 ")
	}
	for i := 0; file.Len() < 4_000_000; i++ {
		file.WriteString("user-agent: " + word.Replace(strconv.Itoa(i)) + "k\n")
	}
	file.WriteString("user-agent: jjj\nDisallow: /x\n")
	p := rules.NewAs(rules.REP1994, rules.Source{State: rules.Available}, []byte(file.String()))
	begun := time.Now()
	if d := p.Decide(rules.Identify(agent.String()), "/x"); d.Verdict != rules.Refuse || d.Group != "jjj" {
		t.Errorf("%+v", d)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
