package rules_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// times returns how often a random test runs: n in the long form, a thirtieth of it
// otherwise, and a tenth of that under the race detector.
func times(n int) int {
	if !testkit.Full {
		n /= 30
	}
	if testkit.Race {
		n /= 10
	}
	return n
}

// comparisons is the number of questions in
// TestRFC9309_DifferentialAgainstReference; HEED_COMPARISONS sets another one:
//
//	HEED_COMPARISONS=10000000 go test -run Differential -timeout 60m ./rules
func comparisons(t *testing.T) int {
	text := os.Getenv("HEED_COMPARISONS")
	if text == "" {
		return times(1_000_000)
	}
	n, err := strconv.Atoi(text)
	must.OK(t, err, "HEED_COMPARISONS is not a number")
	return n
}

// maker makes random files, agents and targets from few words, so that they
// meet often.
type maker struct{ *rand.Rand }

func (m maker) pick(from ...string) string { return from[m.IntN(len(from))] }

var makerNames = []string{"foobot", "BarBot", "baz-crawl", "Q42bot", "x.y_z"}

// path makes a path, or a pattern when wild is set.
func (m maker) path(wild bool) string {
	var b strings.Builder
	if !wild || m.IntN(12) > 0 {
		b.WriteByte('/')
	} else {
		b.WriteByte('*')
	}
	for range m.IntN(5) {
		switch k := m.IntN(24); {
		case k < 11:
			b.WriteString(m.pick("a", "b", "ab", "c", "a/", "b/"))
		case k < 14:
			b.WriteByte('/')
		case k < 16:
			b.WriteString(m.pick("%61", "%2F", "%2f", "%5c", "%41", "%C3%A9", "é", "%25", "%zz", ":", "%3A", ";", ";", "/;a", "/..;", "/.;b", "\\"))
		case k < 17:
			b.WriteString(m.pick("../", "./", "%2e%2e/", "..", "%2E/", "..%2F"))
		case k < 20:
			b.WriteString(m.pick("?", "?a=", "&", "=", "%26", "%3D", "%3F", "?/"))
		case k < 23 && wild:
			b.WriteByte('*')
		default:
			b.WriteString(m.pick("$", "%24", "%2A", ".html", "~", "%7E"))
		}
	}
	if wild && m.IntN(8) == 0 {
		b.WriteByte('$')
	}
	return b.String()
}

// file makes a robots.txt that both engines read alike.
func (m maker) file() string {
	var b strings.Builder
	for range 1 + m.IntN(5) {
		for range 1 + m.IntN(2) {
			name := "*"
			if m.IntN(3) > 0 {
				name = makerNames[m.IntN(len(makerNames))]
			}
			fmt.Fprintf(&b, "%s: %s\n", m.pick("User-agent", "user-agent", "USER-AGENT "), name)
			b.WriteString(m.pick("", "", "\n", "Crawl-delay: 1\n", "# x\n"))
		}
		rules := m.IntN(7)
		if m.IntN(8) == 0 {
			rules = 30
		}
		for range rules {
			fmt.Fprintf(&b, "%s:%s%s\n", m.pick("Disallow", "Disallow", "Allow", "disallow"), m.pick(" ", "", "\t"), m.path(true))
			b.WriteString(m.pick("", "", "", "\n", "Sitemap: https://site.test/s\n", "Disallow:\n"))
		}
	}
	return b.String()
}

// agent makes a User-Agent string and returns the names in it.
func (m maker) agent() (header string, names []string) {
	for range m.IntN(4) {
		names = append(names, makerNames[m.IntN(len(makerNames))])
	}
	if m.IntN(4) == 0 {
		names = append(names, "Other")
	}
	switch m.IntN(3) {
	case 0:
		return "Mozilla/5.0 (compatible; " + strings.Join(names, "/1.0; ") + "; +http://foobot.test/barbot)", names
	case 1:
		return strings.Join(names, "/2.1 ") + "/3", names
	default:
		return strings.ToUpper(strings.Join(names, ", ")) + " (mail@barbot.test)", names
	}
}

// TestRFC9309_DifferentialAgainstReference holds the engine against a naive one
// on files, agents and targets made at random, of which enough are allowed,
// refused, decided by a wildcard and by several groups. A file serves for few
// comparisons, so that these shares hardly vary from run to run.
func TestRFC9309_DifferentialAgainstReference(t *testing.T) {
	t.Parallel()
	total := comparisons(t)
	seed := rand.Uint64()
	m := maker{rand.New(rand.NewPCG(seed, 1))}
	var allowed, refused, wild, several, done int
	for done < total {
		file := m.file()
		groups := refParse(file)
		policy := rules.New(rules.Source{State: rules.Available}, []byte(file))
		for range 4 {
			target := m.path(false)
			readings := refReadings(target)
			for range 5 {
				header, names := m.agent()
				got := policy.Decide(rules.Identify(header), rules.NewTarget(target))
				want := refDecide(groups, names, readings)
				must.Need(t, (got.Verdict == rules.Allow) == want.allow,
					"seed %d: %q asks for %s: engine says %+v, reference allow=%v; file:\n%s", seed, header, target, got, want.allow, file)
				done++
				if want.allow {
					allowed++
				} else {
					refused++
				}
				if want.wildcard {
					wild++
				}
				if want.groups > 1 {
					several++
				}
			}
		}
	}
	share := func(what string, n, atLeast int) {
		t.Logf("%-14s %5.1f %%", what, 100*float64(n)/float64(done))
		must.True(t, n*100 >= done*atLeast, "only %d of %d comparisons %s, want %d %%", n, done, what, atLeast)
	}
	t.Logf("%d comparisons", done)
	share("allow", allowed, 25)
	share("refuse", refused, 25)
	share("wildcard", wild, 15)
	share("several groups", several, 10)
}
