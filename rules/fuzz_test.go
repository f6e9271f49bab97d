package rules_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/rules"
)

var profiles = []rules.Profile{rules.Standard, rules.Strict, rules.Google, rules.REP1994}

var fuzzSeeds = []string{
	"User-agent: *\nDisallow: /private\nAllow: /private/x$\n",
	"\xEF\xBB\xBFuser-agent: Foo, Bar baz/1.0*\r\ndissallow /a /b\rAllow: /*x%2f*$$\n",
	"User-agent: * Disallow: /x Allow: y User-agent: Mozilla/5.0 (compatible; Q42bot/1; +http://q.test/)",
	"\xFF\xFEU\x00s\x00:\x00", "<html>Allow: /", "Disallow: /\x00\xFF#\nUser-agent\n:\n",
	"User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow:\n\nUser-agent:\nSitemap: x\nDisallow: https://site.test/p?q=/a?b\n",
	"User-agent: *\nDisallow: /%F5%f6%FB*\xF5\xFC%2A%24*$\nAllow: /?a=%26&%3D/index.html\n",
}

var fuzzAgents = []*rules.Agent{
	nil, rules.Identify("Foo/1.0"), rules.Identify("Mozilla/5.0 (compatible; Q42bot/1; +http://q.test/) a"),
	rules.Declare("bar baz", "b"),
}

// FuzzHeed_ParserTakesAnything reads any bytes under every profile, asks about
// them, and prints and reads them again: the second policy decides as the first.
func FuzzHeed_ParserTakesAnything(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s), "/private?x=/y")
	}
	f.Fuzz(func(t *testing.T, body []byte, target string) {
		for _, profile := range profiles {
			checkRoundTrip(t, profile, body, []string{target, "/" + target, "/a", "/private/x"})
		}
		rules.Lint(rules.Standard, site, body)
	})
}

func checkRoundTrip(t *testing.T, profile rules.Profile, body []byte, targets []string) {
	t.Helper()
	source := rules.Source{Origin: site, State: rules.Available}
	p := rules.NewAs(profile, source, body)
	if p.Source().State != rules.Available {
		return
	}
	text := p.String()
	q := rules.NewAs(profile, source, []byte(text))
	// What Google's parser adds to an index.html is added once more.
	if again := q.String(); again != text && profile != rules.Google {
		t.Fatalf("%v prints %q, and that as %q", profile, text, again)
	}
	for _, agent := range fuzzAgents {
		for _, target := range targets {
			a, b := p.Decide(agent, target), q.Decide(agent, target)
			if a.Verdict != b.Verdict || a.Variant != b.Variant || a.Token != b.Token || (a.Line == 0) != (b.Line == 0) {
				t.Fatalf("%v: %q for %+v: %+v, printed %+v; file %q printed\n%s", profile, target, agent, a, b, body, text)
			}
		}
	}
}

// TestHeed_PrintedPoliciesDecideAlike makes files at random from what files are
// made of, and breaks them a little.
func TestHeed_PrintedPoliciesDecideAlike(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := maker{rand.New(rand.NewPCG(seed, 3))}
	rounds := 3000
	if raceDetector {
		rounds = 300
	}
	for range rounds {
		body := []byte(m.file() + m.pick(fuzzSeeds...))
		for range m.IntN(4) {
			at := m.IntN(len(body))
			switch m.IntN(3) {
			case 0:
				body[at] = byte(m.IntN(256))
			case 1:
				body = slices.Delete(body, at, min(len(body), at+1+m.IntN(5)))
			default:
				body = slices.Insert(body, at, []byte(m.pick("\n", "\r", ":", "*", "$", "#", " ", "/", "Allow:", "%", ","))...)
			}
			if len(body) == 0 {
				body = []byte("x")
			}
		}
		for _, profile := range profiles {
			checkRoundTrip(t, profile, body, []string{m.path(false), m.path(false), m.path(false)})
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
		if large > 60*small+10*time.Millisecond {
			t.Errorf("%s: 64 KiB take %v, 512 KiB take %v", name, small, large)
		}
	}
}
