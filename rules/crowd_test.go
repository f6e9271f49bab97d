package rules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// TestHeed_CrowdsOfWildcardsAgainstReference holds the engine against the naive
// one where rules are so many and targets so long that the engine searches in
// other ways than for small files.
func TestHeed_CrowdsOfWildcardsAgainstReference(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	m := maker{rand.New(rand.NewPCG(seed, 2))}
	refused := 0
	sizes := []int{9, 20, 60, 120, 300, 3000}
	lengths := []int{3, 30, 300, 700, 700, 700}
	switch {
	case !testkit.Full: // with 120, both ways to search are taken: see fewRules and fewWild
		sizes, lengths = sizes[:4], lengths[:4]
	case testkit.Race:
		sizes = sizes[:5]
	}
	for _, size := range sizes {
		file := m.crowd(size)
		policy := rules.New(rules.Source{State: rules.Available}, []byte(file))
		groups := refParse(file)
		for _, length := range lengths {
			target := m.letters(length)
			got := policy.Decide(nil, rules.NewTarget(target))
			want := refDecide(groups, nil, refReadings(target))
			must.Need(t, (got.Verdict == rules.Allow) == want.allow && got.Line == want.line,
				"seed %d: %s: engine says %+v, reference %+v; file:\n%s", seed, target, got, want, file)
			if !want.allow {
				refused++
			}
		}
	}
	must.True(t, refused != 0, "nothing was refused")
}

// crowd is a file of wildcard rules that begin alike.
func (m maker) crowd(size int) string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for range size {
		b.WriteString(m.pick("Allow", "Disallow") + ": /")
		for range 1 + m.IntN(2) {
			b.WriteString("*" + m.letters(1 + m.IntN(5))[1:])
		}
		b.WriteString(m.pick("", "", "", "*", "$") + "\n")
	}
	return b.String()
}

// letters is a target of n octets from a few letters.
func (m maker) letters(n int) string {
	b := []byte{'/'}
	few := 2 + m.IntN(6)
	for len(b) < n {
		b = append(b, byte('a'+m.IntN(few)))
	}
	return string(b)
}

// TestHeed_NestedPiecesStayBounded asks about a target that every one of many
// rules nearly matches, each piece being the start of the next.
func TestHeed_NestedPiecesStayBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := 1; i < 2000; i++ {
		fmt.Fprintf(&b, "Disallow: /*b*%s\n", strings.Repeat("a", i))
	}
	policy := rules.New(rules.Source{State: rules.Available}, []byte(b.String()))
	must.Equal(t, policy.Decide(nil, rules.NewTarget("/"+strings.Repeat("a", 8192))).Verdict, rules.Allow, "without b")
	d := policy.Decide(nil, rules.NewTarget("/b"+strings.Repeat("a", 8192)))
	must.True(t, d.Line == 2000, "with b: %+v, want the longest rule, on line 2000", d)
}
