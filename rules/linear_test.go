package rules

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// TestHeed_ParsingIsLinear reads shapes of files that make careless parsers
// slow, at one size and at eight times it: the parser looks at eight times as many octets
// and allocates eight times as much memory, and not sixty-four times.
func TestHeed_ParsingIsLinear(t *testing.T) {
	for name, unit := range map[string]string{
		"CR": "Disallow: /a\r", "LF": "\n", "NUL": "\x00\n", "colons": ":", "joined": "Disallow: /a ",
		"agents": "User-agent: a ", "blanks": "/ ", "commas": "a,", "words": "a b ", "brackets": "Mozilla/5.0 (a;",
		"groups": "User-agent: a\nDisallow: /\n", "stars": "*a", "escapes": "%2e", "letters": "a", "quotes": "a@b ",
		"interrupted": "User-agent: a\nUser-agent: g Disallow: /\nDisallow: /x\n",
	} {
		cost := func(size int) (looked, steps int, allocated uint64) {
			body := []byte("User-agent: *\nDisallow: /")
			for len(body) < size {
				body = append(body, bytes.Repeat([]byte(unit), max(1, 8000/len(unit)))...)
				body = append(body, "\nUser-agent: x"...)
			}
			p := parser{differences: Standard.differences(), file: &file{}}
			text, start, _, _ := read(body)
			p.file.text = text
			p.parse(text, start)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			policy := New(Source{State: Available}, body)
			runtime.ReadMemStats(&after)
			var s scratch
			s.begin(maxSteps)
			if e := policy.engine; e != nil {
				e.decideIn(new(Decision), &s, e.governing(nil), "/"+strings.Repeat("a", 100))
			}
			return p.looked, maxSteps - s.steps, after.TotalAlloc - before.TotalAlloc
		}
		octets, steps, memory := cost(64 << 10)
		octets8, steps8, memory8 := cost(512 << 10)
		t.Logf("%-12s octets %8d %9d, steps %6d %7d, memory %8d %9d", name, octets, octets8, steps, steps8, memory, memory8)
		// lines are shorter than the smaller file
		must.True(t, octets8 <= 6*(512<<10), "%s: 512 KiB are looked at %d times", name, octets8>>19)
		if octets8 > 10*octets || steps8 > 10*steps+1000 || memory8 > 16*memory {
			t.Errorf("%s: eight times the file costs %d octets for %d, %d steps for %d and %d octets of memory for %d", name, octets8, octets, steps8, steps, memory8, memory)
		}
	}
}
