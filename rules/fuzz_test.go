package rules_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
	"heed/rules/lint"
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

// FuzzHeed_ParserTakesAnything reads any octets under every profile, asks about
// them, and has each decision explained: the steps lead to the decision.
func FuzzHeed_ParserTakesAnything(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s), "/private?x=/y")
	}
	f.Fuzz(func(t *testing.T, body []byte, target string) {
		for _, profile := range profiles {
			checkExplained(t, profile, body, []string{target, "/" + target, "/a", "/private/x"})
		}
		lint.Lint(rules.Standard, site, body)
	})
}

func checkExplained(t *testing.T, profile rules.Profile, body []byte, targets []string) {
	t.Helper()
	p := rules.NewAs(profile, rules.Source{Origin: site, State: rules.Available}, body)
	if p.Source().State != rules.Available {
		return
	}
	for _, agent := range fuzzAgents {
		for _, target := range targets {
			x := p.Explain(agent, rules.NewTarget(target))
			if len(x.Readings) == 0 {
				continue
			}
			refused, variant := false, ""
			for _, r := range x.Readings {
				for _, result := range r.Results {
					if result.Verdict == rules.Refuse {
						refused, variant = true, r.Variant
					}
				}
			}
			if d := x.Decision; refused != (d.Verdict == rules.Refuse) || refused && variant != d.Variant {
				t.Fatalf("%v: %q for %+v: %+v, explained by %+v; file %q", profile, target, agent, d, x.Readings, body)
			}
			for _, g := range x.Governing {
				must.Need(t, len(g.Lines) > 0, "%v: %q is on no line of %q", profile, g.Name, body)
			}
		}
	}
}

// TestHeed_ExplanationsLeadToTheDecision makes files at random from what files are
// made of, and breaks them a little.
func TestHeed_ExplanationsLeadToTheDecision(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := maker{rand.New(rand.NewPCG(seed, 3))}
	for range times(3000) {
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
			checkExplained(t, profile, body, []string{m.path(false), m.path(false), m.path(false)})
		}
	}
}
